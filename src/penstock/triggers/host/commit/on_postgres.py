"""Write what a pass has changed, in a handful of statements, whatever the number of rows.

New deliveries and history go in by COPY, changes by arrays. Of the changed ones, those that let go
of an idempotency key are written first: the unique index of keys is checked row by row, and a key
may pass from one delivery to another in one pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from psycopg import sql

from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonValue
from penstock.sql import query
from penstock.store.walk.on_postgres import Connection
from penstock.triggers.book.rows import (
    DELIVERY,
    HELD,
    HISTORY,
    Row,
    delivery_row,
    held_row,
    history_row,
    write,
)
from penstock.triggers.delivery import Delivery, Held, Pause, Role, RunEnd, SourcePause, Status
from penstock.triggers.result import Failure, PassResult, SourceTally, SourceWindow, TriggerTally

_FIXED = frozenset(
    (
        "tenant_id", "trigger_id", "workflow_slug", "event_id", "event_position", "event_type",
        "event_source", "correlation_id", "created_at", "first_pass",
    )
)  # fmt: skip
_SMALL = 50  # rows; above, COPY is quicker, but needs round trips of its own
_TRIGGER_COUNTS = (
    "workflow_slug", "filtered", "matched", "launched", "throttled", "skipped", "failed", "paused",
    "dead", "last_status", "last_error",
)  # fmt: skip
_SOURCE_COUNTS = (
    "total", "throttled", "dropped", "failures", "total_lag_ms", "last_lag_ms", "max_lag_ms",
    "last_event_at",
)  # fmt: skip


def is_small(result: PassResult) -> bool:
    """Whether so little changed that no COPY is used, and all can go in one round trip."""
    return len(result.deliveries) <= _SMALL


def keep(connection: Connection, result: PassResult, run_ends: Sequence[RunEnd]) -> None:
    """Write everything that the next pass, and people, will want to know of this one."""
    _keep_deliveries(connection, result)
    _keep_held(connection, result.held, result.judged_at)
    _keep_active(connection, result.deliveries, run_ends)
    _keep_pauses(connection, result.pauses)
    _keep_source_pauses(connection, result.source_pauses)
    _keep_windows(connection, result.windows)
    _keep_failures(connection, result.failures)
    _count_triggers(connection, result.triggers, result.judged_at)
    _count_sources(connection, result.sources)


def _keep_deliveries(connection: Connection, result: PassResult) -> None:
    made, freed, taken = list[Row](), list[Row](), list[Row]()
    for delivery in result.deliveries:
        if delivery.id in result.created_ids:
            made.append(delivery_row(delivery))
        else:
            (taken if delivery.holds_key else freed).append(delivery_row(delivery))
    for rows in (freed, taken):
        if rows:
            values = _arrays(DELIVERY, rows, without=_FIXED)
            connection.execute(query("trigger_state", "change_deliveries"), values)
    _add(connection, "workflow_trigger_deliveries", DELIVERY, made)
    entries = [history_row(entry) for entry in result.history()]
    _add(connection, "workflow_trigger_delivery_history", HISTORY, entries)


def _keep_held(connection: Connection, held: Sequence[Held], judged_at: datetime) -> None:
    if held:
        values = _arrays(HELD, [held_row(each) for each in held]) | {"judged_at": judged_at}
        connection.execute(query("trigger_state", "keep_held"), values)


def _keep_active(
    connection: Connection, deliveries: Sequence[Delivery], run_ends: Sequence[RunEnd]
) -> None:
    if run_ends:
        ended = {"run_ids": [end.run_id for end in run_ends]}
        connection.execute(query("trigger_state", "drop_active"), ended)
    started = [
        d
        for d in deliveries
        if d.status is Status.LAUNCHED and d.role is Role.TRIGGERED and not d.shadow
    ]
    if started:
        values = {
            "run_ids": [d.run_id for d in started],
            "triggers": [d.trigger_id for d in started],
            "groups": [d.group_key for d in started],
        }
        connection.execute(query("trigger_state", "keep_active"), values)


def _keep_pauses(connection: Connection, pauses: Mapping[str, Pause | None]) -> None:
    if pauses:
        connection.execute(query("trigger_state", "drop_pauses"), {"triggers": list(pauses)})
    for pause in pauses.values():
        if pause is not None:
            values = {
                "trigger_id": pause.trigger_id, "paused_at": pause.paused_at, "until": pause.until,
                "reason": pause.reason, "failures": pause.failures, "by": pause.by,
            }  # fmt: skip
            connection.execute(query("trigger_state", "keep_pause"), values)


def _keep_source_pauses(
    connection: Connection, pauses: Mapping[tuple[str, str], SourcePause | None]
) -> None:
    for (tenant_id, source), pause in pauses.items():
        name = {"tenant_id": tenant_id, "source": source}
        connection.execute(query("trigger_state", "drop_source_pause"), name)
        if pause is not None:
            values = name | {
                "paused_at": pause.paused_at, "until": pause.until, "reason": pause.reason,
                "details": write(pause.details), "by": pause.by,
            }  # fmt: skip
            connection.execute(query("trigger_state", "keep_source_pause"), values)


def _keep_windows(connection: Connection, windows: Mapping[tuple[str, str], SourceWindow]) -> None:
    for (tenant_id, source), window in windows.items():
        values: dict[str, Any] = {"tenant_id": tenant_id, "source": source}
        if window.counts:
            at, counts = zip(*window.counts, strict=True)
            values |= {"at": list(at), "counts": list(counts)}
        name = "keep_window" if window.counts else "drop_window"
        connection.execute(query("trigger_state", name), values)


def _keep_failures(connection: Connection, failures: Mapping[str, tuple[Failure, ...]]) -> None:
    if not failures:
        return
    connection.execute(query("trigger_state", "drop_failures"), {"triggers": list(failures)})
    rest = [failure for each in failures.values() for failure in each]
    if rest:
        values = {
            "triggers": [failure.trigger_id for failure in rest],
            "ats": [failure.failed_at for failure in rest],
            "reasons": [failure.reason for failure in rest],
        }
        connection.execute(query("trigger_state", "keep_failures"), values)


def _count_triggers(
    connection: Connection, tallies: Mapping[str, TriggerTally], judged_at: datetime
) -> None:
    if tallies:
        # In one order everywhere: rows are locked as they are counted.
        rows = [
            {"trigger_id": name} | {each: getattr(tally, each) for each in _TRIGGER_COUNTS}
            for name, tally in sorted(tallies.items())
        ]
        values = {"tallies": encode(cast("JsonValue", rows)).decode(), "judged_at": judged_at}
        connection.execute(query("trigger_state", "count_triggers"), values)


def _count_sources(connection: Connection, tallies: Mapping[tuple[str, str], SourceTally]) -> None:
    if tallies:
        names = sorted(tallies)
        values: dict[str, Any] = {
            name: [getattr(tallies[key], name) for key in names] for name in _SOURCE_COUNTS
        }
        values["tenants"] = [tenant_id for tenant_id, _ in names]
        values["sources"] = [source for _, source in names]
        connection.execute(query("trigger_state", "count_sources"), values)


def _add(connection: Connection, table: str, names: Sequence[str], rows: Sequence[Row]) -> None:
    if not rows:
        return
    words = {
        "table": sql.Identifier(table),
        "columns": sql.SQL(", ").join(map(sql.Identifier, names)),
        "values": sql.SQL(", ").join(sql.Placeholder() * len(names)),
    }
    with connection.cursor() as cursor:
        if len(rows) <= _SMALL:
            cursor.executemany(sql.SQL(query("trigger_state", "insert")).format(**words), rows)
            return
        with cursor.copy(sql.SQL(query("trigger_state", "copy")).format(**words)) as copy:
            for row in rows:
                copy.write_row(row)


def _arrays(
    names: Sequence[str], rows: Sequence[Row], *, without: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Rows as one array for each column."""
    columns = zip(*rows, strict=True)
    return {
        name: list(column)
        for name, column in zip(names, columns, strict=True)
        if name not in without
    }
