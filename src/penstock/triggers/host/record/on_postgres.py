"""Explain verdicts, and check them, by what passes recorded.

    explain(trigger, event) ──▶ the delivery and its history, or the verdict that left none
    backtest(trigger)       ──▶ all its passes run again, and where that differs from the record

A verdict that left no delivery (the trigger did not want the event, or its predicates refused it)
follows from the version in force and the event, so it is worked out again, and is the same. So is a
delivery that is no longer kept: its passes are run again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, NoReturn

from psycopg import IsolationLevel, sql
from psycopg.rows import TupleRow

from penstock.base.errors import NotFound
from penstock.base.on_postgres import Pool, answering
from penstock.envelope.envelope import Stored
from penstock.sql import query
from penstock.store.on_postgres import read_events
from penstock.store.walk.on_postgres import Connection
from penstock.triggers.book.deliveries.on_postgres import columns
from penstock.triggers.book.on_postgres import trigger_of
from penstock.triggers.book.rows import (
    DELIVERY,
    HELD,
    HISTORY,
    delivery_of,
    held_of,
    history_of_row,
)
from penstock.triggers.compiled import CompiledTrigger, compile_trigger
from penstock.triggers.delivery import Delivery, Held
from penstock.triggers.explain import Explanation
from penstock.triggers.host.compare import RecordedBacktest, compare
from penstock.triggers.host.replay.on_postgres import replay_trigger
from penstock.triggers.host.why import of_delivery, of_held, of_nothing
from penstock.triggers.trigger import TriggerStatus
from penstock.triggers.words import RetryState

_NEWEST = 2**62  # a pass after all there can be


class TriggerRecord:
    """What passes recorded, for one tenant at a time."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def explain(
        self, tenant_id: str, trigger_id: str, event_id: str, *, recompute: bool = False
    ) -> Explanation:
        """Why the event did, or did not, start something; NotFound when there is no such thing.

        With `recompute`, and when the delivery is no longer kept, its passes are run again.
        """
        with self._snapshot() as connection:
            newest = _newest(connection, tenant_id, trigger_id)
            stored = _event(connection, tenant_id, event_id)
            if recompute:
                found = _again(connection, newest, stored)
            else:
                found = _kept(connection, trigger_id, stored)
            if found is not None:
                return found
            held = _held(connection, tenant_id, event_id)
            if held is not None and not _was_let_through(held):
                return of_held(trigger_id, newest.trigger.version, stored, held)
            verdict = _verdict(connection, newest, stored, held)
            return verdict or _again(connection, newest, stored) or _lost(stored)

    def backtest(
        self, tenant_id: str, trigger_id: str, *, after: int = 0, until: datetime | None = None
    ) -> RecordedBacktest:
        """Run the trigger's own past again, and compare it with what is on record.

        All passes by the instant are run, because each goes on from the one before it; only what
        they came to for events after the position is compared and counted.
        """
        with self._snapshot() as connection:
            _newest(connection, tenant_id, trigger_id)
            row = connection.execute(query("trigger_record", "last_pass"), {"until": until})
            last = (row.fetchone() or (0,))[0]
            replayed = replay_trigger(connection, tenant_id, trigger_id, last=last)
            values = {"trigger": trigger_id, "last": last}
            settled = _rows(connection, "trigger_record", "settled", DELIVERY, values)
            history = _rows(connection, "trigger_record", "history_up_to", HISTORY, values)
        return compare(
            trigger_id,
            [delivery_of(each) for each in settled],
            [history_of_row(each) for each in history],
            replayed,
            after=after,
        )

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        """A transaction in which everything is of one moment, whatever passes do meanwhile."""
        with answering(), self._pool.connection() as connection:
            connection.isolation_level = IsolationLevel.REPEATABLE_READ
            try:
                with connection.transaction():
                    yield connection
            finally:
                connection.isolation_level = None


def _newest(connection: Connection, tenant_id: str, trigger_id: str) -> CompiledTrigger:
    values = {"tenant": tenant_id, "trigger": trigger_id}
    row = connection.execute(query("trigger_record", "newest"), values).fetchone()
    if row is None:
        raise NotFound(f"expected a trigger by the id {trigger_id[:60]!r}, found none")
    return compile_trigger(trigger_of(row))


def _again(connection: Connection, newest: CompiledTrigger, stored: Stored) -> Explanation | None:
    """The explanation that running the passes again gives; None when they leave no delivery."""
    trigger = newest.trigger
    replayed = replay_trigger(connection, trigger.tenant_id, trigger.id, last=_NEWEST)
    for delivery in replayed.deliveries.values():
        if delivery.event_position == stored.position:
            history = [e for e in replayed.history if e.delivery_id == delivery.id]
            compiled = _judge_of(connection, delivery)
            return replace(of_delivery(compiled, stored, delivery, history), recomputed=True)
    return None


def _was_let_through(held: Held) -> bool:
    return held.released_pass is not None and held.retry_state is RetryState.COMPLETED


def _lost(stored: Stored) -> NoReturn:
    raise AssertionError(f"a pass judged position {stored.position} and its replay did not")


def _judge_of(connection: Connection, delivery: Delivery) -> CompiledTrigger:
    """The version that judged a delivery last."""
    values = {
        "tenant": delivery.tenant_id,
        "trigger": delivery.trigger_id,
        "version": delivery.trigger_version,
    }
    row = connection.execute(query("trigger_record", "version"), values).fetchone()
    if row is None:
        raise AssertionError("versions are kept for ever")
    return compile_trigger(trigger_of(row))


def _kept(connection: Connection, trigger_id: str, stored: Stored) -> Explanation | None:
    """The explanation of the delivery, if there is one."""
    values = {"trigger": trigger_id, "position": stored.position}
    found = _rows(connection, "trigger_record", "delivery_at", DELIVERY, values)
    if not found:
        return None
    delivery = delivery_of(found[0])
    history = _rows(connection, "trigger_deliveries", "history", HISTORY, {"id": delivery.id})
    compiled = _judge_of(connection, delivery)
    return of_delivery(compiled, stored, delivery, [history_of_row(each) for each in history])


def _verdict(
    connection: Connection, newest: CompiledTrigger, stored: Stored, held: Held | None
) -> Explanation | None:
    """The verdict that left no delivery, of the pass that judged the event."""
    trigger = newest.trigger
    judged = _judged(connection, stored, held)
    if judged is None:
        is_past = _cursor(connection) >= stored.position  # stored before there were triggers
        return of_nothing(trigger.id, None if is_past else newest, stored, None)
    number, judged_at = judged
    then = _version(connection, trigger.tenant_id, trigger.id, number)
    if then is not None and then.spec.status is TriggerStatus.DISABLED:
        then = None
    return of_nothing(trigger.id, then, stored, judged_at)


def _judged(
    connection: Connection, stored: Stored, held: Held | None
) -> tuple[int, datetime] | None:
    """Which pass judged an event, and when; None when none has come to it."""
    name, values = "pass_of", {"position": stored.position}
    if held is not None and held.released_pass is not None:
        name, values = "pass_at", {"pass": held.released_pass}
    row = connection.execute(query("trigger_record", name), values).fetchone()
    return None if row is None else (row[0], row[1])


def _version(
    connection: Connection, tenant_id: str, trigger_id: str, number: int
) -> CompiledTrigger | None:
    """The version of a trigger that was in force in a pass; a deleted one was not."""
    values = {"pass": number, "id": trigger_id}
    row = connection.execute(query("trigger_passes", "definitions"), values).fetchone()
    if row is None or row[1] != tenant_id or row[9] == "deleted":
        return None
    return compile_trigger(trigger_of(row))


def _cursor(connection: Connection) -> int:
    row = connection.execute(query("trigger_record", "cursor")).fetchone()
    return 0 if row is None else int(row[0])


def _held(connection: Connection, tenant_id: str, event_id: str) -> Held | None:
    values = {"tenant": tenant_id, "event_id": event_id}
    rows = _rows(connection, "trigger_deliveries", "held_event", HELD, values)
    return held_of(rows[0]) if rows else None


def _event(connection: Connection, tenant_id: str, event_id: str) -> Stored:
    walk = sql.SQL(query("store", "by_id"))
    found = read_events(connection, walk, {"tenant": tenant_id, "id": event_id})
    if not found:
        raise NotFound(f"expected an event by the id {event_id[:60]!r}, found none")
    return found[0]


def _rows(
    connection: Connection, room: str, name: str, names: Sequence[str], values: dict[str, Any]
) -> list[TupleRow]:
    text = sql.SQL(query(room, name)).format(columns=columns(names))
    return connection.execute(text, values).fetchall()
