"""Read what earlier passes have kept, and the definitions that are in force.

    load_kept ──▶ Kept ── State.load ──▶ the state that the last pass left

A host reads this once and goes on with the state in its memory, for as long as no other host has
run a pass in between.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from psycopg import sql
from psycopg.rows import TupleRow

from penstock.base.errors import PenstockError
from penstock.sql import query
from penstock.store.walk.on_postgres import Connection
from penstock.triggers.book.deliveries.on_postgres import columns
from penstock.triggers.book.on_postgres import trigger_of
from penstock.triggers.book.rows import DELIVERY, HELD, delivery_of, held_of, read
from penstock.triggers.compiled import CompiledTrigger, compile_trigger
from penstock.triggers.delivery import Pause, SourcePause
from penstock.triggers.result import ActiveRun, Failure, Kept, SourceWindow
from penstock.triggers.roster import Roster

log = structlog.get_logger(__name__)


def load_kept(connection: Connection) -> Kept:
    """Everything that a state is made of."""
    return Kept(
        deliveries=tuple(delivery_of(row) for row in _rows(connection, "waiting", DELIVERY)),
        held=tuple(held_of(row) for row in _rows(connection, "held", HELD)),
        pauses=tuple(Pause(*row) for row in _rows(connection, "pauses")),
        source_pauses=tuple(source_pause_of(row) for row in _rows(connection, "source_pauses")),
        windows=tuple(
            SourceWindow(tenant_id, source, tuple(zip(at, counts, strict=True)))
            for tenant_id, source, at, counts in _rows(connection, "windows")
        ),
        failures=tuple(Failure(*row) for row in _rows(connection, "failures")),
        active=tuple(ActiveRun(*row) for row in _rows(connection, "active")),
    )


def source_pause_of(row: TupleRow) -> SourcePause:
    """The pause of a source from its columns."""
    tenant_id, source, paused_at, until, reason, details, by = row
    return SourcePause(tenant_id, source, paused_at, until, reason, read(details), by)


def load_roster(connection: Connection, number: int, trigger_id: str | None = None) -> Roster:
    """The definitions that are in force in a pass: all of them, or one."""
    values = {"pass": number, "id": trigger_id}
    rows = connection.execute(query("trigger_passes", "definitions"), values)
    compiled = [_compiled(row) for row in rows if row[9] != "deleted"]
    return Roster(each for each in compiled if each is not None)


def _compiled(row: TupleRow) -> CompiledTrigger | None:
    """A definition, ready to judge; None for one that this program cannot read.

    Definitions are checked before they are kept, so this takes an older program and a newer spec.
    One unreadable definition must not stop all the others.
    """
    try:
        return compile_trigger(trigger_of(row))
    except (PenstockError, ValueError) as error:
        log.error("a trigger cannot be read and judges nothing", id=row[0], error=str(error))
        return None


def _rows(connection: Connection, name: str, names: Sequence[str] | None = None) -> list[TupleRow]:
    text = query("trigger_state", name)
    if names is None:
        return connection.execute(text).fetchall()
    return connection.execute(sql.SQL(text).format(columns=columns(names))).fetchall()
