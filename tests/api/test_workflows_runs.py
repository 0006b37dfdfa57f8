"""Runs that a real worker works on are shown, compared, canceled and replayed over HTTP."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.support import Server, database_of, opened, running, settings_for, wait_until
from tests.api.test_workflows import acts, make, started, step

from penstock.base.on_postgres import EmbeddedPostgres

ECHO, PUBLISH = "penstock.echo", "penstock.publish"
SLOWLY = {"maxAttempts": 3, "strategy": "fixed", "initialDelayMs": 600_000}
LATER: dict[str, Any] = {
    # A service that nobody registered fails for good; one that is unhealthy is tried again.
    "type": "service", "serviceSlug": "sick", "requireHealthy": True, "retryPolicy": SLOWLY,
}  # fmt: skip


@pytest.fixture(scope="module")
def api(
    server: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server that judges and runs in its own process."""
    folder = tmp_path_factory.mktemp("runs")
    with (
        database_of(server, template) as database,
        opened(settings_for(database, folder)) as house,
    ):
        house.act_here()
        with running(house, database) as found:
            found.admin.put("/workflow-services/sick", json={"baseUrl": "https://sick.example"})
            yield found


def shown(api: Server, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = api.admin.get(f"/workflow-runs/{run_id}").json()["data"]["run"]
    return found


def ended(api: Server, run: dict[str, Any]) -> dict[str, Any]:
    def is_over() -> bool:
        return shown(api, run["id"])["status"] not in ("pending", "running")

    wait_until(is_over, within_s=20)
    return shown(api, run["id"])


def steps_of(api: Server, run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = api.admin.get(f"/workflow-runs/{run['id']}/steps").json()["data"]
    return {each["stepId"]: each for each in found["steps"]}


def waiting(api: Server) -> dict[str, Any]:
    """A run whose step waits ten minutes for its second try."""
    name = make(api, {"id": "call", **LATER})
    run = started(api, name)
    wait_until(lambda: steps_of(api, run)["call"]["retryState"] == "scheduled", within_s=20)
    return run


@pytest.fixture(scope="module")
def chain(api: Server) -> str:
    """A workflow of two steps, the second with the first one's output."""
    return make(
        api,
        step("a", handler=ECHO, parameters={"n": "{{ parameters.n }}"}),
        step("b", "a", handler=ECHO, parameters={"n": "{{ steps.a.output.n }}"}),
    )


def test_a_run_is_shown_with_its_context_steps_executions_and_history(
    api: Server, chain: str
) -> None:
    run = ended(api, started(api, chain, parameters={"n": 7}))

    assert (run["status"], run["output"]) == ("succeeded", {"b": {"n": 7}})
    assert run["context"]["steps"]["a"] == {"status": "succeeded", "output": {"n": 7}}
    found = api.admin.get(f"/workflow-runs/{run['id']}/steps").json()["data"]
    assert [each["stepId"] for each in found["steps"]] == ["a", "b"]
    assert [each["status"] for each in found["jobRuns"]] == ["succeeded", "succeeded"]
    history = api.admin.get(f"/workflow-runs/{run['id']}/history").json()["data"]
    assert "step.succeeded" in [each["eventType"] for each in history["history"]]


def test_history_is_read_page_by_page(api: Server, chain: str) -> None:
    run = ended(api, started(api, chain, parameters={"n": 1}))
    path, seen, cursor = f"/workflow-runs/{run['id']}/history", list[str](), None

    while True:
        query = {"limit": "1"} | ({"cursor": cursor} if cursor else {})
        data = api.admin.get(path, params=query).json()["data"]
        seen += [each["id"] for each in data["history"]]
        cursor = data["page"]["nextCursor"]
        if cursor is None:
            break

    whole = api.admin.get(path).json()["data"]["history"]
    assert seen == [each["id"] for each in whole]


def test_two_runs_are_compared_place_by_place(api: Server, chain: str) -> None:
    one = ended(api, started(api, chain, parameters={"n": 1}))
    two = ended(api, started(api, chain, parameters={"n": 2}))

    data = api.admin.get(
        f"/workflow-runs/{one['id']}/diff", params={"compareTo": two["id"]}
    ).json()["data"]

    changed = {each["pointer"]: (each["before"], each["after"]) for each in data["changes"]}
    assert changed["/parameters/n"] == changed["/output/b/n"] == (1, 2)
    assert changed["/steps/a/output/n"] == (1, 2)
    assert (data["base"]["id"], data["compareTo"]["id"]) == (one["id"], two["id"])
    same = api.admin.get(f"/workflow-runs/{one['id']}/diff", params={"compareTo": one["id"]})
    assert same.json()["data"]["changes"] == []


def test_a_comparison_needs_another_run(api: Server, chain: str) -> None:
    run = started(api, chain, parameters={"n": 1})
    path = f"/workflow-runs/{run['id']}/diff"

    assert api.admin.get(path).json()["errors"][0]["pointer"] == "compareTo"
    assert api.admin.get(path, params={"compareTo": "nobody"}).status_code == 404


def test_runs_are_listed_newest_first_and_page_by_page(api: Server) -> None:
    name = make(api, step("a", handler=ECHO))
    made = [started(api, name)["id"] for _ in range(5)]

    first = api.admin.get("/workflow-runs", params={"workflow": name, "limit": 2})
    page = first.json()["data"]["page"]
    rest = api.admin.get(
        "/workflow-runs", params={"workflow": name, "cursor": page["nextCursor"]}
    ).json()["data"]

    seen = [each["id"] for each in first.json()["data"]["runs"] + rest["runs"]]
    assert seen == made[::-1]
    assert (page["hasMore"], rest["page"]["hasMore"]) == (True, False)
    assert f"workflow={name}" in first.headers["link"]


@pytest.mark.parametrize(
    "query", ["cursor=nobody", "status=odd", "limit=many", "from=yesterday", "staus=failed"]
)
def test_a_list_that_cannot_be_made_is_400(api: Server, query: str) -> None:
    answered = api.admin.get(f"/workflow-runs?{query}")

    assert (answered.status_code, answered.json()["code"]) == (400, "query_invalid")


@pytest.mark.parametrize("rest", ["", "/steps", "/history", "/diff?compareTo=x"])
def test_an_unknown_run_is_404(api: Server, rest: str) -> None:
    for run_id in ("nobody", "odd%00id"):
        assert api.admin.get(f"/workflow-runs/{run_id}{rest}").status_code == 404


# Cancel, replay, retries.


def test_a_canceled_run_is_over_and_cancelling_it_again_is_harmless(api: Server) -> None:
    run = waiting(api)

    first = api.admin.post(f"/workflow-runs/{run['id']}/cancel")
    second = api.admin.post(f"/workflow-runs/{run['id']}/cancel")

    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json()["data"]["run"]["status"] == "canceled"
    told = [a for a in acts(api, "penstock.run.cancelled") if a["workflowRunId"] == run["id"]]
    assert len(told) == 1


def test_a_run_that_ended_cannot_be_canceled(api: Server, chain: str) -> None:
    run = ended(api, started(api, chain, parameters={"n": 1}))

    answered = api.admin.post(f"/workflow-runs/{run['id']}/cancel")

    assert (answered.status_code, answered.json()["code"]) == (409, "run_ended")


def test_a_replay_is_a_new_run_with_the_same_parameters_and_no_key(api: Server, chain: str) -> None:
    run = ended(api, started(api, chain, parameters={"n": 3}, runKey=uuid.uuid4().hex))

    answered = api.admin.post(f"/workflow-runs/{run['id']}/replay")

    again = answered.json()["data"]["run"]
    assert answered.status_code == 202
    assert (again["replayOf"], again["runKey"]) == (run["id"], None)
    assert ended(api, again)["output"] == run["output"]


def test_a_forced_retry_is_tried_at_once(api: Server) -> None:
    run = waiting(api)
    step_id = steps_of(api, run)["call"]["id"]

    answered = api.admin.post(f"/admin/retries/workflow-steps/{step_id}/force")

    assert answered.status_code == 202
    wait_until(lambda: steps_of(api, run)["call"]["attempt"] == 3, within_s=20)
    told = [a for a in acts(api, "penstock.retry.forced") if a["targetId"] == step_id]
    assert told[0]["target"] == "workflow-steps"
    assert told[0]["workflowRunId"] == run["id"]


def test_a_cancelled_retry_fails_the_step_and_its_run(api: Server) -> None:
    run = waiting(api)
    step_id = steps_of(api, run)["call"]["id"]

    answered = api.admin.post(f"/admin/retries/workflow-steps/{step_id}/cancel")

    assert answered.status_code == 200
    assert answered.json()["data"]["step"]["retryState"] == "cancelled"
    assert shown(api, run["id"])["status"] == "failed"


def test_only_a_scheduled_retry_can_be_cancelled_or_forced(api: Server, chain: str) -> None:
    run = ended(api, started(api, chain, parameters={"n": 1}))
    step_id = steps_of(api, run)["a"]["id"]

    for key in (step_id, "nobody", "run.step", "odd%00id"):
        for word in ("cancel", "force"):
            answered = api.admin.post(f"/admin/retries/workflow-steps/{key}/{word}")
            assert (answered.status_code, answered.json()["code"]) == (404, "not_found")


# Figures.


def test_stats_count_runs_by_status_and_name_the_reasons_of_failure(api: Server) -> None:
    name = make(api, step("a", handler="nobody"))
    ended(api, started(api, name))

    stats = api.admin.get(f"/workflows/{name}/stats").json()["data"]

    assert (stats["totalRuns"], stats["statusCounts"]) == (1, {"failed": 1})
    assert stats["failureReasons"] == [{"reason": "handler_unknown", "count": 1}]


def test_run_metrics_have_every_bucket_silent_ones_included(api: Server, chain: str) -> None:
    started(api, chain, parameters={"n": 1})

    data = api.admin.get(
        f"/workflows/{chain}/run-metrics", params={"range": "1h", "buckets": "12"}
    ).json()["data"]

    assert (len(data["buckets"]), data["bucketSeconds"]) == (12, 300)
    assert data["buckets"][0]["total"] == 0
    assert data["buckets"][-1]["total"] >= 1


def test_a_timeline_merges_runs_and_deliveries_newest_first(api: Server) -> None:
    name = make(api, step("a", handler=ECHO))
    run = ended(api, started(api, name))

    body = api.admin.get(f"/workflows/{name}/timeline", params={"range": "1h"}).json()

    assert [each["id"] for each in body["data"]["entries"]] == [run["id"]]
    assert body["meta"]["counts"] == {"run": 1, "trigger": 0, "scheduler": 0}
    none = api.admin.get(f"/workflows/{name}/timeline", params={"status": "failed,dead"}).json()
    assert none["data"]["entries"] == []


@pytest.mark.parametrize(
    "query",
    [
        "range=2h", "from=x", "range=1h&from=2026-01-01T00:00:00Z", "status=odd", "buckets=x",
        "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "to=1970-01-01T00:00:00Z",
    ],
)  # fmt: skip
def test_a_stretch_that_means_nothing_is_400(api: Server, chain: str, query: str) -> None:
    path = "run-metrics" if "buckets" in query else "timeline"

    assert api.admin.get(f"/workflows/{chain}/{path}?{query}").status_code == 400


# Traces.


def test_event_trigger_run_step_and_event_are_one_trace(api: Server) -> None:
    kind, correlation = f"orders.o{uuid.uuid4().hex[:8]}.placed", f"order-{uuid.uuid4()}"
    shipped = kind.replace(".placed", ".shipped")
    for each in (kind, shipped):
        api.admin.post("/admin/event-schemas", json={"eventType": each, "schema": {}})
    name = make(
        api, step("tell", handler=PUBLISH, parameters={"type": shipped, "source": "orders.api"})
    )
    spec = {"name": "on order", "eventType": kind}
    assert api.admin.post(f"/workflows/{name}/triggers", json=spec).status_code == 201
    published = {"type": kind, "source": "orders.api", "correlationId": correlation}
    first = api.admin.post("/v1/events", json=published).json()["data"]["event"]["id"]

    def trace() -> dict[str, Any]:
        found: dict[str, Any] = api.admin.get(f"/v1/traces/{correlation}").json()["data"]
        return found

    wait_until(lambda: "workflow.run.succeeded" in str(trace()["tree"]), within_s=20)
    wait_until(lambda: "job.run.succeeded" in str(trace()["tree"]), within_s=20)
    found = trace()
    (root,) = found["tree"]
    (delivery,) = root["children"]
    (run,) = delivery["children"]
    steps = [each for each in run["children"] if each["kind"] == "step"]
    states = [each["type"] for each in run["children"] if each["kind"] == "event"]
    assert (root["id"], root["kind"]) == (first, "event")
    assert (delivery["kind"], delivery["status"]) == ("delivery", "launched")
    assert (run["kind"], run["workflowSlug"]) == ("run", name)
    assert sorted(e["type"] for e in steps[0]["children"]) == ["job.run.succeeded", shipped]
    assert "workflow.run.pending" in states
    assert found["complete"] is True


def test_a_run_that_nobody_correlated_is_a_trace_under_its_own_id(api: Server, chain: str) -> None:
    run = ended(api, started(api, chain, parameters={"n": 1}))

    found = api.admin.get(f"/v1/traces/{run['correlationId']}").json()["data"]

    assert run["correlationId"] == run["id"]
    assert found["tree"][0]["id"] == run["id"]
    assert found["counts"]["steps"] == 2


def test_a_correlation_id_with_a_slash_is_asked_for_as_a_parameter(api: Server, chain: str) -> None:
    correlation = f"orders/{uuid.uuid4()}"
    run = ended(api, started(api, chain, parameters={"n": 1}, correlationId=correlation))

    found = api.admin.get("/v1/traces", params={"correlationId": correlation}).json()["data"]

    assert found["tree"][0]["id"] == run["id"]
    assert api.admin.get("/v1/traces").status_code == 400


def test_a_trace_of_nothing_is_404(api: Server) -> None:
    for key in ("nothing", "odd%00id"):
        assert api.admin.get(f"/v1/traces/{key}").status_code == 404
