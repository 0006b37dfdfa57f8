"""What seed 001 says about health, each sentence as a test with its words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.api.support import Server, database_of, opened, running, settings_for
from tests.health.scene import NOISY, Scene, busy_scene
from tests.triggers.on_postgres.support import (
    TableLauncher,
    await_that,
    host_of,
    prepare_runs,
    runs,
    settle,
    spec,
    store,
)

from penstock.base.on_postgres import EmbeddedPostgres, open_pool
from penstock.base.settings import load_settings
from penstock.health.activity.on_postgres import ActivityReader
from penstock.house.acting import limits_of
from penstock.triggers.book.on_postgres import TriggerBook

SEED_LIMITS = '[{"source":"metastore.api","limit":200,"intervalMs":60000,"pauseMs":60000}]'


@pytest.fixture(scope="module")
def scene(server: EmbeddedPostgres, template: str) -> Iterator[Scene]:
    with database_of(server, template) as database, busy_scene(database) as found:
        yield found


@pytest.fixture(scope="module")
def api(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("seed")
    limits = '[{"source": "noisy.api", "limit": 2, "intervalMs": 60000}]'
    settings = settings_for(scene.dsn, folder, event_source_rate_limits=limits)
    with opened(settings) as house, running(house, scene.dsn) as found:
        found.admin.post(
            "/v1/events",
            json={
                "type": "metastore.record.updated",
                "source": "metastore.api",
                "payload": {"namespace": "feature-flags", "key": "frontend-search", "version": 12},
            },
        )
        yield found


def health(api: Server) -> Any:
    return api.admin.get("/admin/event-health").json()["data"]


def prometheus(api: Server) -> dict[str, dict[tuple[str, ...], float]]:
    """Every series: its name, its values of labels in the order of their names, its value."""
    text = api.admin.get("/metrics/prometheus").text
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            values = tuple(value for _, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[values] = sample.value
    return found


class TestEventHealthSurfaces:
    """GET /admin/event-health surfaces …"""

    def test_queue_depth(self, api: Server) -> None:
        queues = health(api)["queues"]

        counts = ("waiting", "active", "completed", "failed", "delayed", "paused")
        assert tuple(queues["ingress"]["counts"]) == counts
        assert tuple(queues["triggers"]["counts"]) == counts
        assert queues["triggers"]["counts"]["completed"] == 5
        assert queues["triggers"]["counts"]["delayed"] > 4
        assert queues["triggers"]["metrics"]["waitingAvgMs"] >= 0

    def test_metrics_per_source_lag(self, api: Server) -> None:
        (line,) = (s for s in health(api)["metrics"]["sources"] if s["source"] == "metastore.api")

        assert line["averageLagMs"] >= 0
        assert line["lastLagMs"] >= 0
        assert line["maxLagMs"] >= line["lastLagMs"]

    def test_metrics_trigger_success_and_failure_counters(self, api: Server, scene: Scene) -> None:
        found = {each["triggerId"]: each for each in health(api)["metrics"]["triggers"]}

        launches = found[scene.triggers["launches"]]
        assert (launches["counts"]["launched"], launches["counts"]["failed"]) == (5, 0)
        assert (launches["lastStatus"], launches["lastError"]) == ("launched", None)
        assert launches["workflowDefinitionId"] == "wf-sync"
        fails = found[scene.triggers["fails"]]
        assert fails["counts"]["failed"] >= 2
        assert "broken" in fails["lastError"]
        assert set(fails["counts"]) >= {
            "filtered", "matched", "launched", "throttled", "skipped", "failed", "paused",
        }  # fmt: skip

    def test_current_rate_limit_configuration(self, api: Server) -> None:
        assert health(api)["rateLimits"] == [NOISY.wire()]

    def test_paused_sources_and_triggers(self, api: Server, scene: Scene) -> None:
        found = health(api)

        paused = {each["source"]: each for each in found["pausedSources"]}
        assert paused["slow.api"]["reason"] == "maintenance"
        assert (paused["slow.api"]["until"], paused["slow.api"]["by"]) == (None, "ann")
        assert paused["noisy.api"]["reason"] == "rate_limit"
        assert paused["noisy.api"]["details"] == {"limit": 2, "intervalMs": 60_000}
        (trigger,) = found["pausedTriggers"]
        assert (trigger["triggerId"], trigger["failures"]) == (scene.triggers["fails"], 2)
        assert trigger["until"] is not None


def test_queue_health_enumerates_all_queues_with_live_depth_and_latency_readings(
    api: Server,
) -> None:
    data = api.admin.get("/admin/queue-health").json()["data"]

    queues = {each["key"]: each for each in data["queues"]}
    assert set(queues) == {"event", "eventTrigger", "workflow", "schedule", "outbox"}
    for queue in queues.values():
        assert set(queue["counts"]) == {
            "waiting", "active", "completed", "failed", "delayed", "paused",
        }  # fmt: skip
        assert {"label", "queueName", "mode", "metrics"} <= set(queue)
    workflow = queues["workflow"]["counts"]
    assert (workflow["waiting"], workflow["active"], workflow["delayed"]) == (1, 1, 1)
    assert queues["schedule"]["metrics"]["waitingAvgMs"] > 50_000
    assert queues["outbox"]["counts"]["failed"] == 1
    assert queues["event"]["queueName"] == "apphub_event_ingress_queue"
    assert queues["eventTrigger"]["queueName"] == "apphub_event_trigger_queue"


def test_the_data_also_feeds_the_prometheus_endpoint(api: Server) -> None:
    data = api.admin.get("/admin/queue-health").json()["data"]
    series = prometheus(api)

    told = {
        (queue["key"], state): count
        for queue in data["queues"]
        for state, count in queue["counts"].items()
    }
    assert series["penstock_queue_jobs"] == told
    assert series["penstock_queue_latency_seconds"][("schedule", "waiting")] > 50


def test_set_event_source_rate_limits_to_throttle_noisy_publishers(database: str) -> None:
    limits = limits_of(load_settings({"EVENT_SOURCE_RATE_LIMITS": SEED_LIMITS}))
    prepare_runs(database)
    with open_pool(database, "owner", size_max=2) as pool:
        TriggerBook(pool).create(spec(), workflow_slug="sync", by="ann")
        host = host_of(database, TableLauncher(), limits)
        store(database, 210, source="metastore.api")
        store(database, 10, source="quiet.api")
        settle(host)
        host.close()
        found = ActivityReader(pool).read(None)

    assert len(runs(database)) == 210
    assert {each.source: each.throttled for each in found.sources} == {
        "metastore.api": 10, "quiet.api": 0,
    }  # fmt: skip
    assert {each.source: each.dropped for each in found.sources} == {
        "metastore.api": 0, "quiet.api": 0,
    }  # fmt: skip
    assert found.events[0].total == 10  # they wait, and are judged when the pause is over


def test_default_is_unlimited() -> None:
    assert limits_of(load_settings({})).sources == ()


def test_trigger_auto_pausing_is_controlled_by_threshold_and_window() -> None:
    breaker = limits_of(load_settings({})).breaker
    assert (breaker.threshold, breaker.window_ms) == (5, 300_000)

    said = {"EVENT_TRIGGER_ERROR_THRESHOLD": "2", "EVENT_TRIGGER_ERROR_WINDOW_MS": "1000"}
    breaker = limits_of(load_settings(said)).breaker
    assert (breaker.threshold, breaker.window_ms) == (2, 1_000)


def test_it_resumes_after_event_trigger_pause_ms(database: str) -> None:
    assert limits_of(load_settings({})).breaker.pause_ms == 300_000
    said = {"EVENT_TRIGGER_ERROR_THRESHOLD": "2", "EVENT_TRIGGER_PAUSE_MS": "100"}
    prepare_runs(database)
    launcher = TableLauncher()
    launcher.is_broken = True
    with open_pool(database, "owner", size_max=2) as pool:
        made = TriggerBook(pool).create(spec(), workflow_slug="sync", by="ann")
        host = host_of(database, launcher, limits_of(load_settings(said)))
        reader = ActivityReader(pool)
        store(database, 3)
        settle(host)
        assert [each.trigger_id for each in reader.read(None).paused_triggers] == [made.id]

        launcher.is_broken = False
        store(database, 1)
        await_that(lambda: bool(settle(host)) and bool(runs(database)))
        found = reader.read(None)
        host.close()

    assert not [each for each in found.paused_triggers if each.is_open(found.at)]


def test_per_source_lag_average_latest_and_maximum_plus_throttled_and_dropped_counts(
    api: Server,
) -> None:
    found = health(api)["metrics"]["sources"]

    (line,) = (each for each in found if each["source"] == "metastore.api")
    assert tuple(line)[:9] == (
        "source", "total", "throttled", "dropped", "failures", "averageLagMs", "lastLagMs",
        "maxLagMs", "lastEventAt",
    )  # fmt: skip
    assert (line["throttled"], line["dropped"]) == (0, 0)
    outcomes = prometheus(api)["penstock_source_events_total"]
    assert outcomes[("throttled", "noisy.api")] == 2
    assert outcomes[("dropped", "noisy.api")] == 0


def test_retry_backlog_summaries_with_total_and_overdue_counts_plus_the_next_attempt(
    api: Server,
) -> None:
    retries = health(api)["retries"]

    assert set(retries) == {"events", "triggers", "workflowSteps"}
    for kind in retries.values():
        assert set(kind["summary"]) == {"total", "overdue", "nextAttemptAt"}
        assert kind["summary"]["total"] == len(kind["entries"]) > 0
        assert kind["summary"]["overdue"] == 0
        assert kind["summary"]["nextAttemptAt"] is not None
    assert {
        "eventId", "source", "eventType", "eventSource", "attempts", "nextAttemptAt", "overdue",
        "retryState", "lastError", "metadata", "createdAt", "updatedAt",
    } <= set(retries["events"]["entries"][0])  # fmt: skip
    assert {
        "deliveryId", "triggerId", "workflowDefinitionId", "workflowSlug", "triggerName",
        "eventType", "eventSource", "attempts", "retryAttempts", "nextAttemptAt", "overdue",
        "retryState", "lastError", "workflowRunId", "dedupeKey",
    } <= set(retries["triggers"]["entries"][0])  # fmt: skip
    assert {
        "workflowRunStepId", "workflowRunId", "workflowDefinitionId", "workflowSlug", "stepId",
        "status", "attempt", "retryAttempts", "nextAttemptAt", "overdue", "retryState",
        "retryCount", "retryMetadata", "errorMessage", "updatedAt",
    } <= set(retries["workflowSteps"]["entries"][0])  # fmt: skip


def test_paused_routing_lets_operators_see_why_certain_events_are_not_progressing(
    api: Server,
) -> None:
    found = health(api)

    waiting = {each["eventSource"] for each in found["retries"]["events"]["entries"]}
    assert waiting <= {each["source"] for each in found["pausedSources"]}


def test_the_data_matches_what_dashboards_show(api: Server) -> None:
    found, series = health(api), prometheus(api)

    kinds = {"events": "event", "triggers": "trigger", "workflowSteps": "workflow_step"}
    for name, kind in kinds.items():
        summary = found["retries"][name]["summary"]
        assert series["penstock_retry_backlog"][(kind,)] == summary["total"]
        assert series["penstock_retry_overdue"][(kind,)] == summary["overdue"]
    for each in found["metrics"]["triggers"]:
        name, workflow = each["name"], each["workflowSlug"]
        for verdict, count in each["counts"].items():
            assert series["penstock_trigger_verdicts_total"][name, verdict, workflow] == count
        assert series["penstock_trigger_backlog_events"][name, workflow] == each["waiting"]
    paused = {each["source"] for each in found["pausedSources"]}
    assert {s for (s,), value in series["penstock_source_paused"].items() if value} == paused
    names = {each["name"] for each in found["pausedTriggers"]}
    assert {n for (n, _), value in series["penstock_trigger_paused"].items() if value} == names


def test_the_workflow_scheduler_has_the_shape_that_overlays_know(api: Server) -> None:
    found = health(api)["workflowScheduler"]

    assert set(found["leader"]) == {
        "attempts", "acquired", "released", "contention", "keepaliveFailures", "errors", "active",
        "ownerId", "acquiredAt", "releasedAt",
    }  # fmt: skip
    assert found["leader"]["active"] is True
    assert {
        "lockAcquired", "lockContention", "optimisticConflicts", "processed", "skipped", "errors",
        "runsCreated",
    } <= set(found["schedules"])  # fmt: skip
    assert [each["name"] for each in found["recent"]] == ["hourly"]
