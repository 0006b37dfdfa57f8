"""The acting product in one process, inline: nothing is lost or done twice, and it lives on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.house.inline import TYPE, InProcess, acting, record, step

from penstock.base.on_postgres import EmbeddedPostgres

FAST = {"maxAttempts": 1}


@pytest.fixture(scope="module")
def product(
    server: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InProcess]:
    """One product for all tests of the module; each has workflows and sources of its own."""
    with acting(server, template, tmp_path_factory.mktemp("acting")) as found:
        yield found


def names(product: InProcess, slug: str) -> list[str]:
    """The keys that the runs of a workflow were given, in the order of their launches."""
    return [run["parameters"]["key"] for run in product.runs(slug)]


def echoing(product: InProcess, name: str, **spec: Any) -> str:
    """A workflow and a trigger of one name, for the events of a source of that name."""
    product.workflow(name, step("a", parameters={"key": "{{ parameters.key }}"}))
    said = {"eventSource": name, "parameterTemplate": {"key": "{{ event.payload.key }}"}}
    return product.trigger(name, **said | spec)


def test_event_to_run_to_event_is_one_trace(product: InProcess) -> None:
    echoing(product, "chain")
    (event_id,) = product.publish(record("a", "chain", correlationId="order-1"))
    (run,) = product.ended("chain", 1)

    def told() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = product.get("/admin/events", correlationId="order-1")[
            "events"
        ]
        return found

    product.until(lambda: len(told()) == 5)
    caused = {each["type"]: each["causationId"] for each in told()[:-1]}
    assert caused == dict.fromkeys(
        (
            "workflow.run.pending", "workflow.run.running", "job.run.succeeded",
            "workflow.run.succeeded",
        ),
        event_id,
    )  # fmt: skip
    assert (run["correlationId"], run["causationId"]) == ("order-1", event_id)
    trace = product.get("/v1/traces/order-1")
    assert run["id"] in json.dumps(trace)
    assert event_id in json.dumps(trace)


@pytest.mark.parametrize("what", ["triggers", "sources"])
def test_events_that_arrive_while_it_is_paused_are_all_judged_in_order_after_a_restart_and_resume(
    server: EmbeddedPostgres, template: str, tmp_path: Any, what: str
) -> None:
    with acting(server, template, tmp_path) as product:
        trigger_id = echoing(
            product, "paused", maxConcurrency=1,
            predicates=[
                {"type": "jsonPath", "path": "$.payload.version", "operator": "lt", "value": 3}
            ],
        )  # fmt: skip
        target = trigger_id if what == "triggers" else "paused"
        product.publish(record("before", "paused"))
        product.ended("paused", 1)

        product.post(f"/admin/{what}/{target}/pause", {"reason": "maintenance"})
        events = [record(f"k{n}", "paused", version=n % 4) for n in range(40)]
        product.publish(*events[:20])
        product.again()
        ids = product.publish(*events[20:])
        product.until(lambda: product.house.trigger_figures.progress().waiting == 0)
        assert names(product, "paused") == ["before"]
        assert product.explain(trigger_id, ids[-1])["verdict"] == "pending"
        product.again()

        product.post(f"/admin/{what}/{target}/resume")
        product.publish(record("after", "paused"))

        product.ended("paused", 32)
        wanted = [f"k{n}" for n in range(40) if n % 4 < 3]
        assert names(product, "paused") == ["before", *wanted, "after"]
        skipped = product.deliveries("paused", trigger_id, status="skipped")
        assert len(skipped) == (10 if what == "triggers" else 0)  # a source's leave no delivery
        assert product.explain(trigger_id, ids[-1])["stage"] == "predicates"
        assert product.house.trigger_record.backtest("default", trigger_id).equals_record


def test_the_third_fourth_and_tenth_duplicate_of_an_idempotency_key_are_all_skipped(
    server: EmbeddedPostgres, template: str, tmp_path: Any
) -> None:
    with acting(server, template, tmp_path) as product:
        trigger_id = echoing(product, "once", idempotencyKeyExpression="{{ event.payload.key }}")
        product.publish(record("a", "once"), record("b", "once"), record("a", "once"))
        first = {run["parameters"]["key"]: run["id"] for run in product.ended("once", 2)}
        product.publish(*(record("a", "once") for _ in range(4)))
        product.again()
        product.publish(*(record("a", "once") for _ in range(4)))

        product.until(lambda: len(product.deliveries("once", trigger_id)) == 11)
        found = product.deliveries("once", trigger_id, dedupeKey="a")
        assert [d["status"] for d in found] == ["launched", *["skipped"] * 9]
        assert {d["reason"] for d in found[1:]} == {"duplicate_key"}
        assert {d["workflowRunId"] for d in found} == {first["a"]}
        assert len(product.runs("once")) == 2


@pytest.mark.parametrize(
    ("name", "event_type", "launches"),
    [("ouroboros", "workflow.run.succeeded", 17), ("hydra", "workflow.run.*", 100)],
)
def test_a_workflow_whose_run_events_trigger_itself_stops_with_one_incident_event(
    product: InProcess, name: str, event_type: str, launches: int
) -> None:
    product.workflow(name, step("a"))
    about_itself = {
        "type": "jsonPath", "path": "$.payload.workflowSlug", "operator": "equals", "value": name,
    }  # fmt: skip
    trigger_id = product.trigger(name, eventType=event_type, predicates=[about_itself])

    product.post(f"/workflows/{name}/run", {"correlationId": name}, expect=202)

    def incidents() -> list[dict[str, Any]]:
        found = product.get("/admin/events", type="penstock.loop.stopped", correlationId=name)
        return list(found["events"])

    product.until(lambda: incidents() and "skipped loop" in product.said(name, trigger_id))
    runs = product.ended(name, 1 + launches, within_s=60)
    product.until(lambda: product.house.trigger_figures.progress().waiting == 0)
    assert len(product.ended(name, 1)) == len(runs) == 1 + launches
    (incident,) = incidents()
    assert incident["severity"] == "error"
    assert incident["payload"]["triggerId"] == trigger_id
    assert incident["payload"]["workflowSlug"] == name


def test_two_workflows_that_start_each_other_stop_with_one_incident_event(
    server: EmbeddedPostgres, template: str, tmp_path: Any
) -> None:
    # In a product of its own: the job that publishes belongs to the newest house of a process.
    with acting(server, template, tmp_path) as product:
        for name, other in (("ping", "pong"), ("pong", "ping")):
            payload = {"namespace": "flags", "key": "ball", "version": 1}
            said = {"type": TYPE, "source": other, "payload": payload}
            product.workflow(name, step("a", "penstock.publish", parameters=said))
            product.trigger(name, eventSource=name)

        product.publish(record("ball", "ping", correlationId="match"))

        def incidents() -> list[dict[str, Any]]:
            asked = {"type": "penstock.loop.stopped", "correlationId": "match"}
            return list(product.get("/admin/events", **asked)["events"])

        product.until(incidents)
        runs = [*product.ended("ping", 9), *product.ended("pong", 8)]
        assert len(runs) == 17
        assert {run["correlationId"] for run in runs} == {"match"}
        assert len(incidents()) == 1


def test_an_event_whose_time_to_live_has_passed_is_kept_and_launches_nothing(
    product: InProcess,
) -> None:
    trigger_id = echoing(product, "stale")
    stale = record("old", "stale", ttl=1_000, occurredAt="2026-01-01T00:00:00Z")

    old, _ = product.publish(stale, record("new", "stale", ttl=86_400_000))

    product.ended("stale", 1)
    assert names(product, "stale") == ["new"]
    assert product.said("stale", trigger_id) == ["skipped expired", "launched"]
    assert product.explain(trigger_id, old)["stage"] == "expired"


def test_an_unknown_workflow_ends_the_delivery_with_its_reason_and_the_worker_lives_on(
    product: InProcess,
) -> None:
    trigger_id = echoing(product, "gone", maxAttempts=1)
    echoing(product, "kept", eventSource="gone")
    assert product.client.delete("/workflows/gone").status_code == 204

    (event_id,) = product.publish(record("a", "gone"))

    product.ended("kept", 1)
    found = product.explain(trigger_id, event_id)
    assert (found["verdict"], found["reason"]) == ("dead", "launch_refused")
    assert "expected a workflow 'gone', found none" in json.dumps(found)


def run_once(product: InProcess, slug: str, handler: str, **fields: Any) -> dict[str, Any]:
    """The one step of a run that an event started, once the run has ended."""
    product.workflow(slug, step("a", handler, **fields))
    product.trigger(slug, eventSource=slug)
    product.publish(record("a", slug))
    (run,) = product.ended(slug, 1)
    found: dict[str, Any] = product.steps(run["id"])["a"]
    assert found["status"] == run["status"]
    return found | {"run": run}


@pytest.mark.parametrize("kind", ["function", "subprocess"])
@pytest.mark.parametrize("handler", ["never", "spin"])
def test_a_handler_that_never_returns_is_a_failed_step_with_its_reason(
    product: InProcess, kind: str, handler: str
) -> None:
    slug = f"{handler}-{kind}"

    found = run_once(product, slug, f"prove.{handler}", type=kind, timeoutMs=1_000)

    assert found["status"] == "failed"
    assert found["failureReason"] == "timed_out"
    assert "within 1 s" in found["errorMessage"]
    assert found["run"]["errorMessage"]
    assert run_once(product, f"{slug}-after", "penstock.echo")["status"] == "succeeded"


@pytest.mark.parametrize("kind", ["function", "subprocess"])
def test_a_handler_that_prints_megabytes_costs_64_kb_and_says_how_much_is_missing(
    product: InProcess, kind: str
) -> None:
    found = run_once(product, f"print-{kind}", "prove.print", type=kind)

    assert found["status"] == "succeeded"
    assert found["output"] == "printed"
    assert len(found["logs"]) <= 65 * 1024
    assert found["logs"].endswith("more bytes were printed and dropped\n")


def test_a_subprocess_that_kills_itself_is_a_failed_step_with_the_signal_named(
    product: InProcess, tmp_path: Any
) -> None:
    parameters = {"file": str(tmp_path / "marks")}

    found = run_once(product, "suicide", "prove.die", type="subprocess", parameters=parameters)

    assert found["status"] == "failed"
    assert "SIGKILL" in found["errorMessage"]
    assert run_once(product, "suicide-after", "penstock.echo")["status"] == "succeeded"


@pytest.mark.parametrize(
    "bad",
    [
        {"predicates": [{"type": "jsonPath", "path": "$.a[", "operator": "exists"}]},
        {
            "predicates": [
                {"type": "jsonPath", "path": "$.a", "operator": "regex", "value": "(a)\\1"}
            ]
        },
        {"parameterTemplate": {"a": "{% for x in %}"}},
        {"eventType": "not a type"},
    ],
)
def test_a_trigger_that_cannot_be_judged_is_refused_when_it_is_saved(
    product: InProcess, bad: dict[str, Any]
) -> None:
    if product.client.get("/workflows/refusing").status_code == 404:
        product.workflow("refusing", step("a"))

    body = {"name": "bad", "eventType": TYPE, **bad}
    problem = product.post("/workflows/refusing/triggers", body, expect=422)

    assert problem["code"] == "trigger_invalid"
    assert problem["errors"][0]["pointer"].startswith("/" + next(iter(bad)))


def test_a_catastrophic_regex_is_judged_in_no_time(product: InProcess) -> None:
    predicate = {
        "type": "jsonPath", "path": "$.payload.key", "operator": "regex", "value": "^(a+)+$",
    }  # fmt: skip
    trigger_id = echoing(product, "regex", predicates=[predicate])
    begun = time.monotonic()

    (event_id,) = product.publish(record("a" * 5_000 + "!", "regex"))

    product.until(lambda: product.explain(trigger_id, event_id)["verdict"] == "filtered")
    assert time.monotonic() - begun < 5


def test_a_template_with_a_loop_bomb_fails_its_delivery_and_nothing_else(
    product: InProcess,
) -> None:
    bomb = "{% for a in (1..9999) %}{% for b in (1..9999) %}x{% endfor %}{% endfor %}"
    trigger_id = echoing(product, "bomb", parameterTemplate={"key": bomb}, maxAttempts=1)
    echoing(product, "bystander", eventSource="bomb")

    (event_id,) = product.publish(record("a", "bomb"))

    product.ended("bystander", 1)
    found = product.explain(trigger_id, event_id)
    assert (found["verdict"], found["reason"]) == ("dead", "parameters_failed")


def test_cyclic_steps_are_refused_by_name(product: InProcess) -> None:
    steps = [step("a", "penstock.echo", "b"), step("b", "penstock.echo", "a")]

    body = {"slug": "circle", "name": "circle", "steps": steps}
    problem = product.post("/workflows", body, expect=422)

    assert problem["code"] == "workflow_invalid"
    assert "circle" in problem["detail"] or "a" in json.dumps(problem["errors"])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254"])
def test_a_webhook_to_a_private_address_is_a_failed_step_with_its_reason(
    product: InProcess, host: str
) -> None:
    url, slug = f"http://{host}/", f"hook-{abs(hash(host))}"
    hook = {"id": "a", "type": "webhook", "url": url, "retryPolicy": FAST}
    product.workflow(slug, hook)
    product.trigger(slug, eventSource=slug)

    product.publish(record("a", slug))

    (run,) = product.ended(slug, 1)
    found = product.steps(run["id"])["a"]
    assert (run["status"], found["status"]) == ("failed", "failed")
    assert found["failureReason"] == "address_refused"


def test_a_backtest_of_everything_that_happened_here_equals_the_record(
    product: InProcess,
) -> None:
    product.until(lambda: product.house.trigger_figures.progress().waiting == 0)
    for trigger in product.house.trigger_book.list("default"):
        found = product.house.trigger_record.backtest("default", trigger.id)
        assert list(found.differences) == [], trigger.spec.name
