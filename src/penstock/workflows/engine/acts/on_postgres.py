"""Do what people ask of runs: start, cancel, replay; call off a step's retry or bring it forward.

    act ── lock the run ── the same pure functions as the worker's ──▶ Changes, one transaction

A retry can be called off or forced only while it is scheduled. Called off, the step fails with what
it failed with last, and its run with it: nothing is left hanging.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import psycopg
from psycopg.rows import TupleRow

from penstock.base.errors import NotFound, PenstockError
from penstock.base.ids import uuid7
from penstock.base.on_postgres import Pool, answering
from penstock.envelope.codec import encode, load_stored
from penstock.envelope.envelope import JsonObject
from penstock.sql import query
from penstock.workflows.advance import advance, cancel
from penstock.workflows.engine.changes import Changes
from penstock.workflows.engine.launching.on_postgres import Launching, Made
from penstock.workflows.engine.launching.start import RunKeyConflict, Start
from penstock.workflows.engine.on_postgres import Plans, read_runs, write
from penstock.workflows.plan import Plan
from penstock.workflows.queue.job import read_step_name
from penstock.workflows.run import Progress, RunState, StepDone
from penstock.workflows.runkey import read_run_key

Connection = psycopg.Connection[TupleRow]
_ROOM = "workflows_engine"
_Decide: TypeAlias = Callable[[Plan, RunState], Progress]


class RunActs:
    """What operators and programs do to runs, over the owner's pool."""

    def __init__(self, pool: Pool, plans: Plans | None = None) -> None:
        self._pool = pool
        self._plans = plans or Plans()
        self._launching = Launching(self._plans)

    def start(
        self,
        tenant_id: str,
        slug: str,
        *,
        parameters: JsonObject | None = None,
        triggered_by: str = "manual",
        trigger: JsonObject | None = None,
        partition_key: str | None = None,
        run_key: str | None = None,
        correlation_id: str | None = None,
        causation_id: str | None = None,
    ) -> str:
        """The id of a new run; RunKeyConflict names the active one that has its key."""
        start = Start(
            uuid7(), tenant_id, slug, parameters or {}, triggered_by,
            key=read_run_key(run_key) if run_key is not None else None,
            trigger=trigger or {"type": "manual"}, partition_key=partition_key,
            correlation_id=correlation_id, causation_id=causation_id,
        )  # fmt: skip
        return self.make(start).run_id

    def make(self, start: Start) -> Made:
        """Make one run; whatever is wrong with it is raised."""
        with answering(), self._pool.connection() as connection, connection.transaction():
            (made,) = self._launching.make(connection, [start])
        if isinstance(made, PenstockError):
            raise made
        if not made.is_new and start.key is not None:
            raise RunKeyConflict(start.key.key, made.run_id)
        return made

    def replay(self, tenant_id: str, run_id: str, *, by: str) -> str:
        """The id of a new run with the same parameters, trigger and partition, without a key."""
        with answering(), self._pool.connection() as connection:
            row = connection.execute(
                query("workflows_book", "replayed"), {"tenant": tenant_id, "id": run_id}
            ).fetchone()
        if row is None:
            raise _no_run(run_id)
        slug, parameters, trigger, partition_key, correlation_id, depth = row
        return self.make(
            Start(
                uuid7(), tenant_id, slug, _object(parameters), by,
                trigger=None if trigger is None else _object(trigger),
                partition_key=partition_key, correlation_id=correlation_id, depth=depth,
                replay_of=run_id,
            )
        ).run_id  # fmt: skip

    def cancel(self, tenant_id: str, run_id: str, *, by: str) -> bool:
        """End a run; False when it had ended already."""
        return self._change(
            tenant_id, run_id, lambda plan, run: cancel(plan, run, f"canceled by {by}")
        )

    def cancel_retry(self, tenant_id: str, step_name: str, *, by: str) -> None:
        """Call off a scheduled retry: the step fails, and its run with it."""
        run_id, address = read_step_name(step_name)
        with answering(), self._pool.connection() as connection, connection.transaction():
            plan, run = self._lock(connection, tenant_id, run_id)
            attempt, reason, detail = self._mark(connection, tenant_id, step_name, "cancelled", by)
            done = StepDone(address, attempt, False, None, reason, detail, retryable=False)
            changes = Changes()
            changes.add(tenant_id, run, advance(plan, run, [done]))
            changes.drop_jobs.append({"run_id": run_id, "address": address})
            write(connection, changes)

    def force_retry(self, tenant_id: str, step_name: str, *, by: str) -> None:
        """Bring a scheduled retry forward to now."""
        run_id, address = read_step_name(step_name)
        with answering(), self._pool.connection() as connection, connection.transaction():
            self._lock(connection, tenant_id, run_id)
            self._mark(connection, tenant_id, step_name, "pending", by)
            place = {"run_id": run_id, "address": address}
            connection.execute(query(_ROOM, "advance_job"), place)
            connection.execute(query("workflows_queue", "wake"), {"word": ""})

    def _change(self, tenant_id: str, run_id: str, decide: _Decide) -> bool:
        with answering(), self._pool.connection() as connection, connection.transaction():
            plan, run = self._lock(connection, tenant_id, run_id)
            progress = decide(plan, run)
            changes = Changes()
            changes.add(tenant_id, run, progress)
            write(connection, changes)
        return progress.outcome is not None

    def _lock(self, connection: Connection, tenant_id: str, run_id: str) -> tuple[Plan, RunState]:
        row = connection.execute(
            query(_ROOM, "lock_run"), {"id": run_id, "tenant": tenant_id}
        ).fetchone()
        if row is None:
            raise _no_run(run_id)
        plan = self._plans.get(connection, row[1], row[2])
        return plan, read_runs(connection, [run_id])[run_id]

    def _mark(
        self, connection: Connection, tenant_id: str, step_name: str, state: str, by: str
    ) -> tuple[int, str | None, str | None]:
        """Note on the step who did it, and tell whoever watches."""
        run_id, address = read_step_name(step_name)
        word = "forced" if state == "pending" else "cancelled"
        given = {
            "tenant": tenant_id, "run_id": run_id, "address": address, "state": state, "by": by,
            "word": word,
        }  # fmt: skip
        row = connection.execute(query(_ROOM, "mark_retry"), given).fetchone()
        if row is None:
            raise NotFound(f"expected a scheduled retry of step {step_name}, found none")
        frame: JsonObject = {
            "type": f"retry.workflow.step.{word}", "id": step_name, "tenantId": tenant_id, "by": by,
        }  # fmt: skip
        notice = encode({"frames": [frame]}).decode()
        connection.execute(query(_ROOM, "tell_retry"), {"notice": notice})
        return row[0], row[1], row[2]


def _no_run(run_id: str) -> NotFound:
    return NotFound(f"expected a run {run_id}, found none")


def _object(text: str) -> JsonObject:
    found = load_stored(text)
    return found if isinstance(found, dict) else {}
