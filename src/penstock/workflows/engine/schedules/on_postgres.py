"""Fire schedules in PostgreSQL: the slots that are due become runs, once.

    due schedules, locked ── due(schedule, now) ──▶ runs ── cursor moved ── one commit each pass

Two schedulers pass each other's locks, and a slot's run has an id that its schedule and instant
decide. So however many fire it, and whenever one dies, a slot has one run and one event.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg.rows import TupleRow

from penstock.base.errors import PenstockError
from penstock.base.ids import derived_id
from penstock.base.on_postgres import Pool, answering
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject
from penstock.sql import query
from penstock.workflows.book.schedules.on_postgres import kept_schedule
from penstock.workflows.engine.launching.on_postgres import Launching, Made
from penstock.workflows.engine.launching.start import Start
from penstock.workflows.engine.on_postgres import Plans
from penstock.workflows.schedule import Due, Occurrence, Schedule, due

Connection = psycopg.Connection[TupleRow]
_ROOM = "workflows_book"
BATCH = 10


@dataclass(frozen=True, slots=True)
class Fired:
    """What one pass did."""

    schedules: int
    runs: int
    refused: int
    next_s: float | None  # until the next slot, by the database's clock; None: there is none


class PostgresSchedules:
    """The schedules of all tenants, as the scheduler sees them."""

    def __init__(self, pool: Pool, plans: Plans | None = None) -> None:
        self._pool = pool
        self._launching = Launching(plans)

    def fire(self) -> Fired:
        """Launch what is due, of at most ten schedules."""
        runs = refused = 0
        with answering(), self._pool.connection() as connection, connection.transaction():
            rows = connection.execute(query(_ROOM, "due_schedules"), {"limit": BATCH}).fetchall()
            for row in rows:
                made, errors = self._fire(connection, row)
                runs, refused = runs + made, refused + errors
            found = connection.execute(query(_ROOM, "next_schedule")).fetchone()
        return Fired(len(rows), runs, refused, found[0] if found is not None else None)

    def _fire(self, connection: Connection, row: TupleRow) -> tuple[int, int]:
        schedule = kept_schedule(row[:-1]).schedule
        wanted = due(schedule, row[-1])
        starts = [_start(schedule, each) for each in wanted.occurrences]
        made = self._launching.make(connection, starts) if starts else []
        errors = [each for each in made if isinstance(each, PenstockError)]
        self._settle(connection, schedule, wanted, errors[-1].detail if errors else None)
        return sum(isinstance(each, Made) and each.is_new for each in made), len(errors)

    def _settle(
        self, connection: Connection, schedule: Schedule, wanted: Due, error: str | None
    ) -> None:
        window = None
        if wanted.occurrences:
            about = wanted.occurrences[-1].trigger["schedule"]
            window = about["window"] if isinstance(about, dict) else None
        values = {
            "id": schedule.id, "cursor": wanted.cursor, "next": wanted.next_fire_at, "error": error,
            "window": None if window is None else encode(window).decode(),
        }  # fmt: skip
        connection.execute(query(_ROOM, "fired"), values)


def _start(schedule: Schedule, occurrence: Occurrence) -> Start:
    at_ms = int(occurrence.slot_at.timestamp() * 1000)
    trigger: JsonObject = occurrence.trigger
    return Start(
        run_id=derived_id(at_ms, occurrence.event_id),
        tenant_id=schedule.tenant_id,
        workflow_slug=schedule.workflow_slug,
        parameters=occurrence.parameters,
        triggered_by="schedule",
        key=occurrence.run_key,
        trigger=trigger,
        correlation_id=occurrence.event_id,
    )
