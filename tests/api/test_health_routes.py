"""The house says how it is: alive to anybody, ready in words, balanced in figures."""

from __future__ import annotations

import re

from prometheus_client.parser import text_string_to_metric_families
from tests.api.support import Server, event

from penstock.access.token import Scope
from penstock.health.on_postgres import ReportBook
from penstock.triggers.trigger import TriggerSpec


def publish_some(api: Server) -> None:
    api.admin.post("/v1/events", json=[event(), event(), event(type="no.such.type")])


def test_alive_tells_a_stranger_nothing_else(api: Server) -> None:
    assert api.stranger.get("/healthz").json() == {"status": "ok"}


def test_ready_names_its_parts_in_words(api: Server) -> None:
    answered = api.stranger.get("/readyz")

    assert answered.status_code == 200
    assert answered.json() == {"ready": True, "parts": {"postgres": "ok"}}


def test_the_ledger_balances(api: Server) -> None:
    publish_some(api)

    data = api.admin.get("/admin/ledger").json()["data"]

    assert {
        "accepted", "stored", "duplicates", "deadLettered", "inFlight", "unexplained", "sources",
    } <= set(data)  # fmt: skip
    explained = data["stored"] + data["duplicates"] + data["deadLettered"] + data["inFlight"]
    assert data["accepted"] == explained
    assert data["unexplained"] == 0
    (line,) = (each for each in data["sources"] if each["source"] == "metastore.api")
    assert line["stored"] >= 2


def test_event_health_has_the_shape_operators_know(api: Server) -> None:
    publish_some(api)

    data = api.admin.get("/admin/event-health").json()["data"]

    assert data["queues"]["ingress"]["mode"] == "inline"
    counts = ("waiting", "active", "completed", "failed", "delayed", "paused")
    for queue in data["queues"].values():
        assert tuple(queue["counts"]) == counts
    (line,) = (s for s in data["metrics"]["sources"] if s["source"] == "metastore.api")
    assert tuple(line) == (
        "source", "total", "throttled", "dropped", "failures", "averageLagMs", "lastLagMs",
        "maxLagMs", "lastEventAt", "evaluation",
    )  # fmt: skip
    assert data["pausedSources"] == data["pausedTriggers"] == data["rateLimits"] == []
    assert data["retries"]["events"]["summary"] == {
        "total": 0, "overdue": 0, "nextAttemptAt": None,
    }  # fmt: skip


def test_event_health_shows_what_the_ingress_says_of_itself(api: Server) -> None:
    ReportBook(api.house.owner).write("ingress", {"pid": 4711, "lastBatchMs": 12})

    data = api.admin.get("/admin/event-health").json()["data"]

    assert (data["ingress"]["pid"], data["ingress"]["alive"]) == (4711, True)
    assert data["queues"]["ingress"]["metrics"]["processingAvgMs"] == 12


def test_queue_health_names_the_queue(api: Server) -> None:
    data = api.admin.get("/admin/queue-health").json()["data"]

    assert data["inlineMode"] is True
    assert data["queues"][0]["queueName"] == "apphub_event_ingress_queue"
    assert [queue["key"] for queue in data["queues"]] == [
        "event", "eventTrigger", "workflow", "schedule", "outbox",
    ]  # fmt: skip


def test_metrics_are_in_the_prometheus_format_under_our_names(api: Server) -> None:
    publish_some(api)

    answered = api.admin.get("/metrics/prometheus")

    assert answered.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(answered.text)}
    assert {
        "penstock_events_received", "penstock_ingest_duration_seconds",
        "penstock_ingest_lag_seconds", "penstock_quarantine_events", "penstock_stream_clients",
        "penstock_ledger_unexplained_events", "penstock_http_requests",
        "penstock_http_request_duration_seconds", "process_resident_memory_bytes",
    } <= set(families)  # fmt: skip
    received = {s.labels["outcome"]: s.value for s in families["penstock_events_received"].samples}
    assert received["accepted"] >= 2
    assert received["rejected"] >= 1
    assert families["penstock_ledger_unexplained_events"].samples[0].value == 0
    assert api.admin.get("/metrics").text.count("penstock_") > 20


def test_a_tenant_hears_of_its_own_triggers_and_of_no_figure_of_the_platform(api: Server) -> None:
    book = api.house.trigger_book
    for tenant in ("default", "acme"):
        said = TriggerSpec.model_validate({"name": f"of {tenant}", "eventType": "a.b"})
        book.create(said, workflow_slug="sync", by="ann", tenant_id=tenant)

    with api.as_scopes(Scope.EVENTS_READ, tenant_id="acme") as acme:
        data = acme.get("/admin/event-health").json()["data"]

    assert [each["name"] for each in data["metrics"]["triggers"]] == ["of acme"]
    assert [queue["counts"] for queue in data["queues"].values()] == [None, None]
    assert (data["ingress"], data["workflowScheduler"]["workers"]) == (None, None)
    everything = api.admin.get("/admin/event-health").json()["data"]["metrics"]["triggers"]
    assert {each["name"] for each in everything} == {"of default", "of acme"}


def test_figures_of_triggers_and_workflows_are_among_the_metrics(api: Server) -> None:
    found = text_string_to_metric_families(api.admin.get("/metrics").text)

    assert {
        "penstock_trigger_verdicts", "penstock_deliveries", "penstock_delivery_duration_seconds",
        "penstock_trigger_backlog_events", "penstock_trigger_paused", "penstock_workflow_runs",
        "penstock_workflow_jobs", "penstock_retry_backlog", "penstock_retry_overdue",
        "penstock_source_paused",
    } <= {family.name for family in found}  # fmt: skip


def test_labels_are_bounded_whatever_strangers_ask_for(api: Server) -> None:
    for n in range(50):
        api.stranger.get(f"/no/such/path/{n}")
        api.admin.get(f"/admin/events/no-such-id-{n}")

    text = api.admin.get("/metrics").text

    assert "no/such" not in text
    assert "no-such-id" not in text
    assert 'route="/admin/events/{event_id}"' in text
    assert len(set(re.findall(r'route="([^"]*)"', text))) < 40


def test_figures_of_the_platform_need_its_own_tenant(api: Server) -> None:
    with api.as_scopes(Scope.ADMIN, tenant_id="acme") as acme:
        for path in ("/admin/ledger", "/admin/queue-health", "/metrics", "/metrics/prometheus"):
            answered = acme.get(path)
            assert (answered.status_code, answered.json()["code"]) == (403, "access_denied")
