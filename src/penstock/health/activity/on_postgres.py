"""Read what triggers and workflows do from PostgreSQL.

The books of the two rooms give most of it; what only health asks (backlogs by kind, totals since
the beginning, schedules as a queue) is asked here. `keep_totals` is for whoever has a timer.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from psycopg.rows import TupleRow

from penstock.base.errors import StoreUnavailable
from penstock.base.on_postgres import Pool, answering
from penstock.envelope.codec import load_stored
from penstock.health.activity.seen import (
    ENTRIES_MAX,
    Activity,
    DeliveryRetry,
    EventRetry,
    Outbox,
    ScheduleFired,
    Schedules,
    Waiting,
)
from penstock.health.totals import DELIVERY_BOUNDS_S, RUN_BOUNDS_S, Totals, histogram
from penstock.sql import query
from penstock.triggers.book.backlog import Backlog
from penstock.triggers.book.figures.on_postgres import FigureBook
from penstock.workflows.book.runs.on_postgres import RunReader

_ROOM = "health"
_DELIVERIES = ("matched", "launched", "throttled", "skipped", "failed", "paused", "dead")
# What is kept in totals: the metric, the query that adds to it, and the bounds of its buckets.
_KEPT = (
    ("workflow_runs", "add_runs", RUN_BOUNDS_S),
    ("deliveries", "add_deliveries", DELIVERY_BOUNDS_S),
)


class ActivityReader:
    """Reads for the pages and the metrics of one house. `pool` plays the owner."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._figures = FigureBook(pool)
        self._runs = RunReader(pool)

    def read(self, tenant_id: str | None) -> Activity:
        """What one tenant's triggers and workflows do, or everybody's.

        StoreUnavailable when PostgreSQL does not answer.
        """
        figures, tenant = self._figures, {"tenant": tenant_id}
        waiting = self._rows("backlog", tenant)
        definitions = self._rows("definitions", tenant)
        return Activity(
            progress=figures.progress(),
            sources=figures.sources(tenant_id),
            triggers=figures.triggers(tenant_id),
            definitions={(tenant, slug): key for tenant, slug, key in definitions},
            paused_sources=figures.paused_sources(tenant_id),
            paused_triggers=figures.paused_triggers(tenant_id),
            waiting={trigger_id: Waiting(*counts) for trigger_id, *counts in waiting},
            events=self._event_retries(tenant_id),
            deliveries=self._delivery_retries(tenant_id),
            steps=self._runs.retries(tenant_id, limit=ENTRIES_MAX),
            judging_wait_ms=self._row("judging_wait")[0],
            jobs=self._runs.queue(),
            workers=self._runs.workers(),
            schedules=self._schedules(tenant_id),
            outbox=Outbox(*self._row("outbox")),
        )

    def totals(self) -> Totals:
        """What has ended since the beginning, on the whole platform."""
        runs = self._rows("run_totals", {"bounds": list(RUN_BOUNDS_S)})
        launches = self._rows("delivery_totals", {"bounds": list(DELIVERY_BOUNDS_S)})
        return Totals(
            deliveries=dict(zip(_DELIVERIES, self._row("delivery_counts"), strict=True)),
            launches=histogram(DELIVERY_BOUNDS_S, ((b, n, s) for _, b, n, s in launches)),
            runs={
                label: histogram(RUN_BOUNDS_S, ((b, n, s) for _, b, n, s in rows))
                for label, rows in groupby(runs, key=lambda row: str(row[0]))
            },
            active_runs=dict(self._rows("active_runs")),
        )

    def backlogs(self) -> dict[str, Backlog]:
        """What waits for another try, everybody's, by the names of the pages."""
        everybody = {"tenant": None}
        steps = self._runs.retries(None, limit=0).summary
        return {
            "events": Backlog(*self._row("event_retries", everybody)),
            "triggers": Backlog(*self._row("delivery_retries", everybody)),
            "workflowSteps": Backlog(steps.total, steps.overdue, steps.next_attempt_at),
        }

    def keep_totals(self) -> None:
        """Add to the totals what has ended and can no longer change."""
        for metric, add, bounds in _KEPT:
            with answering(), self._pool.connection() as connection:
                # Before the snapshot that counts: what began earlier is over, and will be seen.
                until = connection.execute(query(_ROOM, "settled_until")).fetchone()
                with connection.transaction():
                    row = connection.execute(query(_ROOM, "lock_edge"), {"metric": metric})
                    after = row.fetchone()
                    if after is None or until is None or until[0] <= after[0]:
                        continue
                    values = {"metric": metric, "after": after[0], "until": until[0]}
                    connection.execute(query(_ROOM, add), values | {"bounds": list(bounds)})
                    connection.execute(query(_ROOM, "move_edge"), values)

    def _event_retries(self, tenant_id: str | None) -> tuple[Backlog, list[EventRetry]]:
        values = {"tenant": tenant_id, "limit": ENTRIES_MAX}
        entries = [
            EventRetry(*_with_json(row, 8)) for row in self._rows("event_retry_entries", values)
        ]
        return Backlog(*self._row("event_retries", values)), entries

    def _delivery_retries(self, tenant_id: str | None) -> tuple[Backlog, list[DeliveryRetry]]:
        values = {"tenant": tenant_id, "limit": ENTRIES_MAX}
        entries = [
            DeliveryRetry(*_with_json(row, 18))
            for row in self._rows("delivery_retry_entries", values)
        ]
        return Backlog(*self._row("delivery_retries", values)), entries

    def _schedules(self, tenant_id: str | None) -> Schedules:
        values = {"tenant": tenant_id, "limit": ENTRIES_MAX}
        recent = [ScheduleFired(*row) for row in self._rows("recent_schedules", values)]
        found: list[Any] = [*self._row("schedules", values), recent]
        return Schedules(*found)

    def _row(self, name: str, values: Mapping[str, object] | None = None) -> TupleRow:
        rows = self._rows(name, values)
        if not rows:
            raise StoreUnavailable("PostgreSQL gave no figures")
        return rows[0]

    def _rows(self, name: str, values: Mapping[str, object] | None = None) -> list[TupleRow]:
        with answering(), self._pool.connection() as connection:
            return connection.execute(query(_ROOM, name), values).fetchall()


def _with_json(row: TupleRow, place: int) -> list[Any]:
    """The row with the JSON text at that place read."""
    found = list(row)
    found[place] = load_stored(found[place])
    return found
