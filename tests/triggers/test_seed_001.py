"""The event bus page, on triggers, workflow context and limits: each sentence through real parts.

The product runs in inline mode on real PostgreSQL, its settings read from the variables that the
page names; one test has the dedicated worker as a process of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.support import ADMIN
from tests.house.inline import InProcess, acting, environment_for, record, step
from tests.prove.acting import Crew

from penstock.base.on_postgres import EmbeddedPostgres
from penstock.base.settings import load_settings
from penstock.house.acting import limits_of

FIELDS = ("workflowDefinitionId", "workflowRunId", "workflowRunStepId", "jobRunId", "jobSlug")
LIMITS = [
    {"source": "metastore.api", "limit": 200, "intervalMs": 60_000, "pauseMs": 60_000},
    {"source": "noisy.api", "limit": 5, "intervalMs": 2_000, "pauseMs": 1_500},
]
INLINE = {"REDIS_URL": "inline", "APPHUB_ALLOW_INLINE_MODE": "true"}
SEEDS = {
    **INLINE,
    "EVENT_SOURCE_RATE_LIMITS": json.dumps(LIMITS),
    "EVENT_TRIGGER_PAUSE_MS": "5000",
}


@pytest.fixture(scope="module")
def product(
    server: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InProcess]:
    """One product for all tests of the module; each has workflows and sources of its own."""
    with acting(server, template, tmp_path_factory.mktemp("seed"), environment=SEEDS) as found:
        yield found


def following(product: InProcess, slug: str, **spec: Any) -> str:
    """A workflow that is started, with their keys, by the events of a source of its name."""
    product.workflow(slug, step("a"))
    said = {
        "eventSource": slug.replace("-", "."),
        "parameterTemplate": {"key": "{{ event.payload.key }}"},
    }
    return product.trigger(slug, **said | spec)


def keys(product: InProcess, slug: str) -> list[str]:
    """The keys of the events that launched, in order of position."""
    found = product.house.trigger_book.list("default", workflow_slug=slug)
    return [
        event_key(product, each["eventId"])
        for each in product.deliveries(slug, found[0].id, status="launched")
    ]


def event_key(product: InProcess, event_id: str) -> str:
    return str(product.get(f"/admin/events/{event_id}")["event"]["payload"]["key"])


# Event Bus & Workflow Event Ingress


def test_workflow_scheduling_can_react_to_cross_service_changes_without_polling(
    product: InProcess,
) -> None:
    following(product, "reacts")

    (event_id,) = product.publish(record("a", "reacts"))

    (run,) = product.ended("reacts", 1)
    assert (run["status"], run["parameters"]) == ("succeeded", {"key": "a"})
    assert (run["triggeredBy"], run["causationId"]) == ("event-trigger", event_id)


# Runtime Configuration


def test_events_mode_inline_keeps_publishing_synchronous_and_skips_the_dedicated_worker(
    product: InProcess,
) -> None:
    following(product, "inline")

    (event_id,) = product.publish(record("a", "inline"))

    assert product.get(f"/admin/events/{event_id}")["event"]["id"] == event_id  # it is stored
    product.ended("inline", 1)  # and acted on, though no other process exists


# Workflow Event Context


@pytest.fixture(scope="module", params=["function", "subprocess"])
def executed(request: pytest.FixtureRequest, product: InProcess) -> dict[str, Any]:
    """A run whose jobs say their context and publish, in-process and in the sandbox."""
    kind = str(request.param)
    slug = f"context-{kind}"
    said = {"url": product.server.url, "token": ADMIN}
    product.workflow(
        slug,
        step("look", "prove.context", type=kind),
        step("tell", "prove.publish", "look", type=kind, parameters=said),
    )
    product.trigger(slug, eventSource=slug)
    product.publish(record("a", slug, correlationId=slug))
    (run,) = product.ended(slug, 1)
    assert run["status"] == "succeeded", run["errorMessage"]
    found = product.get(f"/workflow-runs/{run['id']}/steps")
    jobs = {each["workflowRunStepId"]: each["id"] for each in found["jobRuns"]}
    return {"kind": kind, "run": run, "steps": product.steps(run["id"]), "jobs": jobs}


def wanted_context(executed: dict[str, Any], step_id: str, slug: str) -> dict[str, Any]:
    run, found = executed["run"], executed["steps"][step_id]
    return {
        "workflowDefinitionId": run["workflowDefinitionId"],
        "workflowRunId": run["id"],
        "workflowRunStepId": found["id"],
        "jobRunId": found["jobRunId"],
        "jobSlug": slug,
        "workflowRunKey": run["runKey"],
    }


def told(product: InProcess, executed: dict[str, Any], which: str) -> dict[str, Any]:
    event_id = executed["steps"]["tell"]["output"][which]
    event: dict[str, Any] = product.get(f"/admin/events/{event_id}")["event"]
    return event


def test_workflow_job_executions_carry_a_lightweight_context_payload(
    executed: dict[str, Any],
) -> None:
    found = executed["steps"]["look"]["output"]["given"]

    assert set(FIELDS) <= set(found)
    assert found == wanted_context(executed, "look", "prove.context")


def test_handlers_can_call_get_workflow_event_context_to_read_the_current_store(
    executed: dict[str, Any],
) -> None:
    found = executed["steps"]["look"]["output"]

    assert found["here"] == found["task"] == found["thread"] == found["given"]


def test_sandbox_adapters_serialize_the_same_payload_into_the_environment_variable(
    executed: dict[str, Any],
) -> None:
    found = executed["steps"]["look"]["output"]

    if executed["kind"] == "subprocess":
        assert json.loads(found["variable"]) == found["given"]
    else:
        assert found["variable"] is None  # in-process, it would be everybody's


def test_the_sandbox_context_object_also_exposes_workflow_event_context_for_convenience(
    executed: dict[str, Any],
) -> None:
    found = executed["steps"]["look"]["output"]

    assert found["offered"] == found["given"]


def test_context_is_injected_automatically_so_publishers_can_link_events_back_to_their_topology(
    product: InProcess, executed: dict[str, Any]
) -> None:
    event = told(product, executed, "plain")

    assert event["metadata"]["__apphubWorkflow"] == wanted_context(
        executed, "tell", "prove.publish"
    )
    assert event["correlationId"] == executed["run"]["correlationId"]
    assert event["causationId"] == executed["run"]["causationId"]
    assert executed["run"]["workflowDefinitionId"] in event["links"]["workflowDefinitionIds"]


def test_publishers_that_set_the_block_manually_keep_their_values_with_strings_normalized(
    product: InProcess, executed: dict[str, Any]
) -> None:
    found = told(product, executed, "manual")["metadata"]["__apphubWorkflow"]

    assert found["jobSlug"] == "mine"
    assert found["workflowRunId"].strip() == executed["run"]["id"]


def test_payloads_larger_than_2_kb_are_dropped_to_protect_downstream_storage(
    product: InProcess, executed: dict[str, Any]
) -> None:
    assert "__apphubWorkflow" not in told(product, executed, "huge")["metadata"]


# Ingress Worker & Persistence


def test_in_local_inline_mode_both_ingress_and_trigger_processing_happen_in_process(
    product: InProcess, tmp_path: Path
) -> None:
    trigger_id = following(product, "local")
    seen = tmp_path / "marks"
    product.workflow("pid", step("a", "prove.mark", parameters={"file": str(seen)}))
    product.trigger("pid", eventSource="local")

    product.publish(record("a", "local"))

    product.ended("pid", 1)
    assert int(seen.read_text().split()[1]) == os.getpid()
    assert product.said("local", trigger_id) == ["launched"]


def test_the_event_trigger_worker_evaluates_predicates_records_delivery_history_and_enqueues(
    server: EmbeddedPostgres, template: str, tmp_path: Path
) -> None:
    predicate = {
        "type": "jsonPath", "path": "$.payload.version", "operator": "gte", "value": 2,
    }  # fmt: skip
    with acting(server, template, tmp_path, acts=False, environment=INLINE) as product:
        trigger_id = following(product, "process", predicates=[predicate])
        small, large = product.publish(record("a", "process"), record("b", "process", version=2))
        clean = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
        crew = Crew(tmp_path, clean | environment_for(product.database, tmp_path) | INLINE, 1)
        try:
            (run,) = product.ended("process", 1)
        finally:
            codes = crew.close()

        assert codes == [0], crew.talk()
        assert (run["status"], run["parameters"]) == ("succeeded", {"key": "b"})
        filtered = product.explain(trigger_id, small)
        assert (filtered["verdict"], filtered["stage"]) == ("filtered", "predicates")
        launched = product.explain(trigger_id, large)
        assert (launched["verdict"], launched["workflowRunId"]) == ("launched", run["id"])
        assert [each["status"] for each in launched["history"]] == ["launched"]


# Monitoring & Health: what throttles and pauses


def test_source_rate_limits_throttle_noisy_publishers_and_what_waited_catches_up_in_order(
    product: InProcess,
) -> None:
    following(product, "noisy-api")
    ids = product.publish(*(record(f"k{n:02}", "noisy.api") for n in range(12)))
    trigger_id = product.house.trigger_book.list("default", workflow_slug="noisy-api")[0].id
    product.until(lambda: len(product.runs("noisy-api")) >= 5)

    waiting = product.explain(trigger_id, ids[-1])

    assert (waiting["verdict"], waiting["stage"]) == ("pending", "source")
    assert product.get(f"/admin/events/{ids[-1]}")["event"]["id"] == ids[-1]  # stored at once
    runs = product.ended("noisy-api", 12)
    assert keys(product, "noisy-api") == [f"k{n:02}" for n in range(12)]
    batches = sorted({run["createdAt"] for run in runs})
    assert len(batches) >= 3  # five, then five, then two
    by_instant = [[r["parameters"]["key"] for r in runs if r["createdAt"] == at] for at in batches]
    assert [max(batch) for batch in by_instant] == sorted(max(batch) for batch in by_instant)


def test_an_entry_of_200_events_a_minute_lets_200_through_and_holds_the_rest(
    product: InProcess,
) -> None:
    following(product, "metastore-api")
    product.publish(*(record(f"k{n}") for n in range(230)))

    product.until(lambda: product.house.trigger_figures.progress().waiting == 0)

    assert len(product.ended("metastore-api", 200)) == 200
    backlog, _ = product.house.trigger_desk.held("default")
    assert backlog.total == 30


def test_the_default_is_unlimited(product: InProcess) -> None:
    following(product, "quiet-api")

    product.publish(*(record(f"k{n}", "quiet.api") for n in range(250)))

    assert len(product.ended("quiet-api", 250)) == 250
    assert limits_of(load_settings({})).sources == ()


def test_trigger_auto_pausing_defaults_to_5_failures_within_300000_ms_for_300000_ms() -> None:
    breaker = limits_of(load_settings({})).breaker
    assert (breaker.threshold, breaker.window_ms, breaker.pause_ms) == (5, 300_000, 300_000)

    said = {
        "EVENT_TRIGGER_ERROR_THRESHOLD": "3",
        "EVENT_TRIGGER_ERROR_WINDOW_MS": "1000",
        "EVENT_TRIGGER_PAUSE_MS": "2000",
    }
    breaker = limits_of(load_settings(said)).breaker
    assert (breaker.threshold, breaker.window_ms, breaker.pause_ms) == (3, 1_000, 2_000)


def test_a_trigger_is_paused_after_5_failures_and_resumes_after_event_trigger_pause_ms(
    product: InProcess,
) -> None:
    trigger_id = following(product, "failing", maxAttempts=1)
    off = product.client.patch("/workflows/failing", json={"status": "disabled"})
    assert off.status_code == 200, off.text

    product.publish(*(record(f"bad{n}", "failing") for n in range(5)))
    product.until(lambda: product.said("failing", trigger_id) == ["dead launch_refused"] * 5)
    product.publish(*(record(f"good{n}", "failing") for n in range(3)))
    product.until(lambda: len(product.deliveries("failing", trigger_id)) == 8)

    assert product.said("failing", trigger_id)[5:] == ["pending paused"] * 3
    (pause,) = product.house.trigger_figures.paused_triggers("default")
    assert (pause.trigger_id, pause.failures, pause.by) == (trigger_id, 5, None)
    on = product.client.patch("/workflows/failing", json={"status": "active"})
    assert on.status_code == 200, on.text
    assert len(product.ended("failing", 3)) == 3
    assert product.said("failing", trigger_id)[5:] == ["launched"] * 3
    assert keys(product, "failing") == ["good0", "good1", "good2"]
    assert product.house.trigger_figures.paused_triggers("default") == []


# Publishing Checklist


def test_a_stable_type_and_source_drive_trigger_routing(product: InProcess) -> None:
    exact = following(product, "routed-a")
    product.workflow("routed-glob", step("a"))
    glob = product.trigger("routed-glob", eventType="metastore.*.updated", eventSource="routed.b")
    deleted = record("c", "routed.a") | {"type": "metastore.record.deleted"}

    product.publish(record("a", "routed.a"), record("b", "routed.b"), deleted)

    product.ended("routed-a", 1)
    product.ended("routed-glob", 1)
    product.until(lambda: product.house.trigger_figures.progress().waiting == 0)
    assert keys(product, "routed-a") == ["a"]
    assert keys(product, "routed-glob") == ["b"]
    assert product.said("routed-a", exact) == ["launched"]
    assert product.said("routed-glob", glob) == ["launched"]


def test_deterministic_payloads_replayed_yield_the_same_evaluation_result(
    product: InProcess,
) -> None:
    predicate = {"type": "jsonPath", "path": "$.payload.key", "operator": "regex", "value": "^a"}
    trigger_id = following(product, "replayed", predicates=[predicate])
    first = product.publish(*(record(key, "replayed") for key in ("a1", "b", "a2")))
    again = product.publish(*(record(key, "replayed") for key in ("a1", "b", "a2")))
    product.ended("replayed", 4)
    product.until(lambda: product.house.trigger_figures.progress().waiting == 0)

    verdicts = [
        [product.explain(trigger_id, each)["verdict"] for each in ids] for ids in (first, again)
    ]

    assert verdicts == [["launched", "filtered", "launched"]] * 2
    assert product.house.trigger_record.backtest("default", trigger_id).equals_record
