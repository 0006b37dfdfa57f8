"""Hold the queue in PostgreSQL, as one worker sees it, over one connection of its own.

    turn(ended, limit) ── one transaction: complete · write history · queue what follows · claim

The connection holds a session lock on the worker's number. It goes when the process or the
connection does, and any peer then frees what the worker held. Whoever was declared dead by mistake
finds its fences raised: what it says about its jobs is discarded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import psycopg
from psycopg.rows import TupleRow

from penstock.base.errors import StoreUnavailable
from penstock.envelope.codec import encode, load_stored
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.sql import query
from penstock.workflows.engine.on_postgres import Engine
from penstock.workflows.plan import WorkPlan
from penstock.workflows.port import Failure, Waiting
from penstock.workflows.queue.figures import QueueFigures, WorkerSeen
from penstock.workflows.queue.job import QUEUE, BatchRefused, Claimed, Ended
from penstock.workflows.run import RunStatus

Connection = psycopg.Connection[TupleRow]
_ROOM = "workflows_queue"
_SPACE = 0x776F726B  # "work": the first half of the workers' session locks
_CONNECT_S = 5


@dataclass(frozen=True, slots=True)
class Turn:
    """What one transaction did."""

    claimed: list[tuple[Claimed, WorkPlan]]
    dropped: Sequence[tuple[str, str]] = ()  # run and address of what is to be stopped
    fenced: int = 0  # ends that came too late to count
    delay_ms: int | None = None  # until the first of what was queued for later


class WorkerQueue:
    """The queue of one worker. Not for several threads; a broken connection is opened again."""

    def __init__(self, dsn: str, engine: Engine, *, name: str, lease_s: float = 60.0) -> None:
        self._dsn = dsn
        self._engine = engine
        self._name = name
        self._lease_s = lease_s
        self._connection: Connection | None = None
        self.worker = 0

    @property
    def is_open(self) -> bool:
        return self._connection is not None and not self._connection.closed

    def open(self, held: Sequence[Claimed] = ()) -> set[int]:
        """Connect under a new number, and say which of the held jobs are still this worker's."""
        self.close()
        try:
            connection = psycopg.connect(
                self._dsn, connect_timeout=_CONNECT_S, application_name=f"worker {self._name}"[:60]
            )
            connection.execute(query(_ROOM, "settle_in"))
            row = connection.execute(query(_ROOM, "register"), {"name": self._name}).fetchone()
            self.worker = int(row[0]) if row is not None else 0
            # Held before its row can be seen, so nobody takes a new worker for a dead one.
            connection.execute(query(_ROOM, "hold"), {"space": _SPACE, "worker": self.worker})
            rows: list[JsonValue] = [{"id": each.id, "fence": each.fence} for each in held]
            kept = connection.execute(
                query(_ROOM, "adopt"), {"worker": self.worker, "rows": _text(rows)}
            ).fetchall()
            connection.commit()
        except psycopg.Error as error:
            raise StoreUnavailable("PostgreSQL does not answer") from error
        self._connection = connection
        return {row[0] for row in kept}

    def turn(self, ended: Sequence[Ended], limit: int) -> Turn:
        """Say what ended, and take up to `limit` new jobs: all of it or nothing."""
        over = [each for each in ended if not isinstance(each.result, Waiting)]
        with self._transaction() as connection:
            self._postpone(connection, ended)
            advanced = self._engine.advance(connection, over)
            claimed = self._claim(connection, limit) if limit > 0 else []
        self._engine.committed(advanced)
        return Turn(claimed, advanced.dropped, advanced.fenced, advanced.delay_ms)

    def heartbeat(self) -> bool:
        """Say that this worker lives; False when its peers think otherwise."""
        with self._transaction() as connection:
            parameters = {"worker": self.worker}
            return connection.execute(query(_ROOM, "heartbeat"), parameters).fetchone() is not None

    def reap(self) -> int:
        """Free what dead workers held; how many jobs that was."""
        freed = 0
        parameters = {"worker": self.worker, "space": _SPACE, "lease_s": self._lease_s}
        with self._transaction() as connection:
            found = connection.execute(query(_ROOM, "overdue"), parameters, prepare=True).fetchall()
            for reason, gone in ((Failure.WORKER_LOST, True), (Failure.HEARTBEAT_TIMEOUT, False)):
                workers = [worker for worker, is_gone in found if is_gone is gone]
                if workers:
                    row = connection.execute(
                        query(_ROOM, "reap"), {"workers": workers, "reason": reason.value}
                    ).fetchone()
                    freed += row[0] if row is not None else 0
            freed += connection.execute(query(_ROOM, "orphans"), prepare=True).rowcount
        return freed

    def called_off(self) -> set[int]:
        """The jobs that this worker runs although their run is over."""
        with self._transaction() as connection:
            found = connection.execute(
                query(_ROOM, "called_off"), {"worker": self.worker}, prepare=True
            ).fetchall()
        return {row[0] for row in found}

    def leave(self) -> None:
        """Give back what is held, and go."""
        if self.is_open:
            with self._transaction() as connection:
                connection.execute(query(_ROOM, "leave"), {"worker": self.worker})
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _postpone(self, connection: Connection, ended: Sequence[Ended]) -> None:
        rows: list[JsonValue] = [
            {
                "id": each.claimed.id, "fence": each.claimed.fence, "token": each.result.token,
                "delay_ms": max(1, round(each.result.poll_after_s * 1000)),
            }
            for each in ended
            if isinstance(each.result, Waiting)
        ]  # fmt: skip
        if rows:
            connection.execute(query(_ROOM, "postpone"), {"rows": _text(rows)}, prepare=True)

    def _claim(self, connection: Connection, limit: int) -> list[tuple[Claimed, WorkPlan]]:
        parameters = {"queue": QUEUE, "worker": self.worker, "limit": limit}
        found = connection.execute(query(_ROOM, "claim"), parameters, prepare=True)
        return [(each, self._work(connection, each)) for each in map(_claimed, found.fetchall())]

    def _work(self, connection: Connection, claimed: Claimed) -> WorkPlan:
        plans = self._engine.plans
        plan = plans.get(connection, claimed.definition_id, claimed.definition_version)
        return plan.work_at(claimed.address)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        connection = self._connection
        if connection is None or connection.closed:
            raise StoreUnavailable("the worker has no connection")
        try:
            with connection.transaction():
                yield connection
        except psycopg.OperationalError as error:
            if connection.broken:
                self.close()
            raise StoreUnavailable(f"PostgreSQL does not answer: {error}") from error
        except psycopg.Error as error:
            raise BatchRefused(f"expected rows that can be stored, found: {error}") from error


def queue_figures(connection: Connection, *, window_s: float = 300.0) -> QueueFigures:
    """How the queue is, for health."""
    counts = connection.execute(query(_ROOM, "counts"), {"queue": QUEUE}).fetchone()
    recent = connection.execute(query(_ROOM, "recent"), {"window_s": window_s}).fetchone()
    if counts is None or recent is None:
        raise StoreUnavailable("PostgreSQL gave no figures")
    waiting, active, delayed, oldest_ms = counts
    completed, failed, processing_ms, waiting_ms = recent
    ended = (completed, failed, float(oldest_ms or 0), processing_ms, waiting_ms)
    return QueueFigures(waiting, active, delayed, *ended)


def workers(connection: Connection) -> list[WorkerSeen]:
    """Who works, for health."""
    return [WorkerSeen(*row) for row in connection.execute(query(_ROOM, "workers"))]


def _claimed(row: TupleRow) -> Claimed:
    (
        job_id, fence, run_id, address, attempt, number, lost, token, queued_at, started_at,
        claimed_at, step_id, given, tenant_id, status, definition_id, version, run_key,
        correlation_id, causation_id,
    ) = row  # fmt: skip
    return Claimed(
        job_id, fence, run_id, address, attempt, number, lost,
        None if token is None else load_stored(token), queued_at, started_at, claimed_at, step_id,
        {} if given is None else cast("JsonObject", load_stored(given)), tenant_id,
        RunStatus(status), definition_id, version, run_key, correlation_id, causation_id,
    )  # fmt: skip


def _text(rows: list[JsonValue]) -> str:
    return encode(rows).decode()
