"""Make up figures with one of everything, for tests of what is told from them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.health.activity.seen import Activity, Outbox, Schedules, Waiting
from penstock.health.snapshot import Facts
from penstock.health.totals import RUN_BOUNDS_S, Totals, histogram
from penstock.store.ledger.account import LedgerReport, SourceLine
from penstock.triggers.book.backlog import Backlog
from penstock.triggers.book.figure import Progress, SourceFigures, TriggerFigures
from penstock.triggers.delivery import Pause, SourcePause
from penstock.triggers.limits import SourceLimit
from penstock.workflows.book.figures import RetryBacklog
from penstock.workflows.book.views import RetrySummary
from penstock.workflows.queue.figures import QueueFigures, WorkerSeen

NOW = datetime(2026, 1, 31, 10, 30, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
LINE = SourceLine("default", "metastore.api", 7, 2, 1, 40, 30, 90, NOW)
LIMIT = SourceLimit("metastore.api", 200, 60_000, 60_000)


@dataclass(frozen=True, slots=True)
class Depth:
    messages: int = 5
    bytes: int = 900
    oldest_ms: int | None = int(NOW.timestamp() * 1000) - 250


def source(name: str = "metastore.api", *, tenant: str = "default", **said: Any) -> SourceFigures:
    fields = {
        "total": 9, "throttled": 2, "dropped": 0, "failures": 1, "total_lag_ms": 900,
        "last_lag_ms": 50, "max_lag_ms": 400, "last_event_at": NOW,
    }  # fmt: skip
    return SourceFigures(tenant, name, **(fields | said))


def trigger(
    key: str = "t-1", name: str = "on update", *, slug: str = "sync", **said: Any
) -> TriggerFigures:
    counts = dict.fromkeys(
        ("filtered", "matched", "launched", "throttled", "skipped", "failed", "paused", "dead"), 1
    )
    last = {"last_status": "launched", "last_updated_at": NOW, "last_error": None}
    return TriggerFigures("default", key, name, slug, **(counts | last | said))


def activity(**said: Any) -> Activity:
    """One of everything; a field that is given replaces its like."""
    fields: dict[str, Any] = {
        "progress": Progress(7, 90, 100, NOW, LATER, NOW),
        "sources": [source()],
        "triggers": [trigger()],
        "definitions": {("default", "sync"): "wf-1"},
        "paused_sources": [SourcePause("default", "metastore.api", NOW, LATER, "rate_limit")],
        "paused_triggers": [Pause("t-1", NOW, LATER, "no such workflow", 5)],
        "waiting": {"t-1": Waiting(6, 4, 1)},
        "events": (Backlog(3, 1, NOW - timedelta(seconds=40)), ()),
        "deliveries": (Backlog(5, 0, LATER), ()),
        "steps": RetryBacklog(RetrySummary(2, 0, LATER), ()),
        "judging_wait_ms": 12.0,
        "jobs": QueueFigures(4, 2, 1, 50, 3, 1_500.0, 20.0, 5.0),
        "workers": [WorkerSeen(1, "here:1", NOW, NOW, 2)],
        "schedules": Schedules(1, 2, 3, 1, LATER, 800.0),
        "outbox": Outbox(7, 250.0, 1),
    }
    return Activity(**(fields | said))


def totals() -> Totals:
    return Totals(
        deliveries={"launched": 8, "skipped": 1},
        runs={"succeeded": histogram(RUN_BOUNDS_S, [(0, 3, 0.06), (13, 1, 90_000.0)])},
        active_runs={"running": 2},
    )


def facts(seen: Activity | None = None, **said: Any) -> Facts:
    """Facts of a house that uses a queue."""
    ledger = LedgerReport(15, 7, 2, 1, 5, 3, 0, [LINE])
    fields: dict[str, Any] = {
        "dead_letters": {"type_unknown": 1}, "depth": Depth(), "activity": seen or activity(),
        "totals": totals(), "limits": (LIMIT,),
    }  # fmt: skip
    return Facts(NOW, "spool", ledger, **(fields | said))
