"""The pages of operators show what is: no pause that is over, no worker that is gone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.health.figures import LATER, LINE, NOW, activity, facts, source

from penstock.health.activity.seen import Activity
from penstock.health.pages import event_health, queue_health
from penstock.health.snapshot import PartReport
from penstock.triggers.delivery import Pause, SourcePause
from penstock.workflows.queue.figures import WorkerSeen

OVER = NOW - timedelta(seconds=1)


def page(seen: Activity | None = None, *, whole: bool = True, **said: Any) -> Any:
    return event_health(facts(seen, **said), [LINE], whole=whole)


def test_a_source_whose_pause_is_over_is_not_paused() -> None:
    over = SourcePause("default", "a.b", OVER, OVER, "rate_limit")
    on = SourcePause("default", "c.d", NOW, None, "maintenance", by="ann")

    found = page(activity(paused_sources=[over, on]))["pausedSources"]

    assert [(each["source"], each["until"], each["by"]) for each in found] == [("c.d", None, "ann")]


def test_a_trigger_whose_pause_is_over_is_half_open_until_a_launch_succeeds() -> None:
    pauses = [Pause("t-1", OVER, OVER, "no answer", 5), Pause("t-2", NOW, LATER, "no answer", 5)]

    found = page(activity(paused_triggers=pauses))["pausedTriggers"]

    assert [(each["triggerId"], each["halfOpen"]) for each in found] == [
        ("t-1", True), ("t-2", False),
    ]  # fmt: skip


def test_how_a_source_was_judged_stands_beside_how_it_came_in() -> None:
    (line,) = page()["metrics"]["sources"]

    assert (line["total"], line["lastLagMs"], line["throttled"]) == (10, 30, 2)
    assert line["evaluation"] == {
        "total": 9, "failures": 1, "averageLagMs": 100, "lastLagMs": 50, "maxLagMs": 400,
    }  # fmt: skip


def test_a_source_of_the_same_name_in_another_tenant_is_another_one() -> None:
    (line,) = page(activity(sources=[source(tenant="acme")]))["metrics"]["sources"]

    assert (line["throttled"], line["evaluation"]) == (0, None)


@pytest.mark.parametrize(("silent_s", "active"), [(1, True), (60, True), (61, False)])
def test_the_scheduler_is_active_while_a_worker_lives(silent_s: int, active: bool) -> None:
    heard = NOW - timedelta(seconds=silent_s)

    found = page(activity(workers=[WorkerSeen(1, "here:1", heard, heard, 0)]))

    assert found["workflowScheduler"]["leader"]["active"] is active


def test_what_schedulers_report_is_added_up_over_living_workers() -> None:
    def said(name: str, runs: int, age_s: float) -> PartReport:
        return PartReport(name, {"runsCreated": runs}, NOW, age_s)

    parts = {
        "scheduler:a": said("scheduler:a", 3, 1.0), "scheduler:b": said("scheduler:b", 4, 5.0),
        "scheduler:dead": said("scheduler:dead", 100, 90.0), "worker": said("worker", 100, 1.0),
    }  # fmt: skip

    found = page(parts=parts)["workflowScheduler"]["schedules"]

    assert found["runsCreated"] == 7


def test_figures_of_the_platform_are_kept_from_other_tenants() -> None:
    found = page(whole=False)

    assert [queue["counts"] for queue in found["queues"].values()] == [None, None]
    assert found["ingress"] is None
    assert found["workflowScheduler"]["workers"] is None
    assert "runsCreated" not in found["workflowScheduler"]["schedules"]


def test_every_queue_has_its_depth_and_its_latency() -> None:
    found: Any = queue_health(facts(), "my_queue")

    told = {each["key"]: (each["counts"]["waiting"], each["metrics"]) for each in found["queues"]}
    assert told == {
        "event": (5, {"processingAvgMs": 0.0, "waitingAvgMs": 250}),
        "eventTrigger": (10, {"processingAvgMs": None, "waitingAvgMs": 12.0}),
        "workflow": (4, {"processingAvgMs": 20.0, "waitingAvgMs": 5.0}),
        "schedule": (1, {"processingAvgMs": None, "waitingAvgMs": 800.0}),
        "outbox": (7, {"processingAvgMs": None, "waitingAvgMs": 250.0}),
    }
