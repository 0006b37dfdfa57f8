"""Health is told from facts: what waits, what lags, and whether to send requests here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from penstock.envelope.envelope import JsonObject
from penstock.health.pages import event_health, queue_health
from penstock.health.snapshot import (
    Facts,
    Mode,
    PartReport,
    ingress_figure,
    readiness,
)
from penstock.store.ledger.account import LedgerReport, SourceLine

NOW = datetime(2026, 1, 31, 10, 30, tzinfo=UTC)
LINE = SourceLine("default", "metastore.api", 7, 2, 1, 40, 30, 90, NOW)


@dataclass(frozen=True, slots=True)
class Waiting:
    messages: int = 5
    bytes: int = 900
    oldest_ms: int | None = int(NOW.timestamp() * 1000) - 250


def ledger() -> LedgerReport:
    return LedgerReport(
        accepted=15, stored=7, duplicates=2, dead_lettered=1, in_flight=5, refused=3,
        unexplained=0, sources=[LINE],
    )  # fmt: skip


def facts(mode: Mode = "spool", **report: object) -> Facts:
    parts = {}
    if report:
        said: JsonObject = report  # type: ignore[assignment]
        parts = {"ingress": PartReport("ingress", said, NOW, age_s=1.0)}
    return Facts(NOW, mode, ledger(), parts, {"type_unknown": 1}, Waiting())


def at(found: JsonObject, *path: str) -> object:
    value: object = found
    for step in path:
        assert isinstance(value, dict)
        value = value[step]
    return value


def test_the_queue_shows_what_waits_what_is_done_and_what_failed() -> None:
    found = event_health(facts(lastBatchMs=12), [LINE], whole=True)

    assert at(found, "queues", "ingress") == {
        "mode": "queue",
        "counts": {
            "waiting": 5, "active": 0, "completed": 9, "failed": 1, "delayed": 0, "paused": 0,
        },
        "metrics": {"processingAvgMs": 12.0, "waitingAvgMs": 250},
    }  # fmt: skip


def test_a_source_shows_its_lag_and_its_failures() -> None:
    found = event_health(facts(), [LINE], whole=True)

    assert at(found, "metrics", "sources") == [
        {
            "source": "metastore.api", "total": 10, "throttled": 0, "dropped": 0, "failures": 1,
            "averageLagMs": 40, "lastLagMs": 30, "maxLagMs": 90,
            "lastEventAt": "2026-01-31T10:30:00.000Z", "evaluation": None,
        }
    ]  # fmt: skip


def test_where_nobody_asked_about_triggers_their_part_is_there_and_empty() -> None:
    found = event_health(facts(), [], whole=True)

    assert at(found, "queues", "triggers", "mode") == "disabled"
    for name in ("pausedSources", "pausedTriggers", "rateLimits"):
        assert found[name] == []
    for name in ("events", "triggers", "workflowSteps"):
        assert at(found, "retries", name, "entries") == []


def test_who_may_not_see_the_platform_sees_no_figure_of_it() -> None:
    found = event_health(facts(pid=1), [], whole=False)

    assert at(found, "queues", "ingress", "counts") is None
    assert found["ingress"] is None


def test_the_queue_is_named_and_its_mode_told() -> None:
    queue = queue_health(facts("inline"), "my_queue")

    assert queue["inlineMode"] is True
    assert isinstance(queue["queues"], list)
    assert at({"q": queue["queues"][0]}, "q", "queueName") == "my_queue"


@pytest.mark.parametrize(
    ("report", "figure"), [({}, 0.0), ({"n": 3}, 3.0), ({"n": "3"}, 0.0), ({"n": None}, 0.0)]
)
def test_a_figure_the_ingress_does_not_give_is_zero(
    report: dict[str, object], figure: float
) -> None:
    assert ingress_figure(facts(**report), "n") == figure


@pytest.mark.parametrize(
    ("mode", "store", "spool", "age_s", "ready"),
    [
        ("inline", True, True, None, True),
        ("inline", False, True, None, False),
        ("spool", True, True, 1.0, True),
        ("spool", True, True, 15.0, True),
        ("spool", True, True, 15.1, False),
        ("spool", True, True, None, False),
        ("spool", True, False, 1.0, False),
        ("spool", False, True, None, False),
    ],
)
def test_ready_means_that_every_part_of_the_mode_answers(
    mode: Mode, store: bool, spool: bool, age_s: float | None, ready: bool
) -> None:
    found = readiness(mode, store=store, spool=spool, ingress_age_s=age_s)

    assert found.ready is ready
    assert (set(found.parts.values()) == {"ok"}) is ready
