"""Workflows are made, changed and started over HTTP; whatever is wrong with them is named."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from tests.api.support import Server

from penstock.access.token import Scope


def slug() -> str:
    return f"wf-{uuid.uuid4().hex[:8]}"


def step(step_id: str, *after: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": step_id, "type": "function", "handler": "echo", "dependsOn": [*after], **fields,
    }  # fmt: skip


def document(name: str, *steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"slug": name, "name": name.title(), "steps": [*steps] or [step("a")], **fields}


def make(api: Server, *steps: dict[str, Any], **fields: Any) -> str:
    name = slug()
    answered = api.admin.post("/workflows", json=document(name, *steps, **fields))
    assert answered.status_code == 201, answered.text
    return name


def started(api: Server, name: str, **body: Any) -> dict[str, Any]:
    answered = api.admin.post(f"/workflows/{name}/run", json=body)
    assert answered.status_code == 202, answered.text
    found: dict[str, Any] = answered.json()["data"]["run"]
    return found


def acts(api: Server, event_type: str) -> list[dict[str, Any]]:
    found = api.admin.get("/admin/events", params={"type": event_type, "limit": 200}).json()
    return [each["payload"] for each in found["data"]["events"]]


def pointers(answered: httpx.Response) -> list[str]:
    return [each["pointer"] for each in answered.json()["errors"]]


NEEDS_PATH = {
    "type": "object", "required": ["path"], "properties": {"path": {"type": "string"}},
}  # fmt: skip


# Definitions.


def test_a_workflow_is_shown_as_it_was_made_with_its_graph(api: Server) -> None:
    name = make(api, step("a"), step("b", "a"), metadata={"team": "data"})

    shown = api.admin.get(f"/workflows/{name}").json()["data"]

    assert shown["workflow"]["version"] == 1
    assert shown["workflow"]["metadata"] == {"team": "data"}
    assert shown["workflow"]["dag"]["roots"] == ["a"]
    assert (shown["workflow"]["schedules"], shown["workflow"]["eventTriggers"]) == ([], [])
    assert [each["version"] for each in shown["versions"]] == [1]


def test_a_change_is_a_new_version_and_the_old_one_stays(api: Server) -> None:
    name = make(api, description="first")

    changed = api.admin.patch(f"/workflows/{name}", json={"description": "second"})

    assert changed.json()["data"]["workflow"]["version"] == 2
    shown = api.admin.get(f"/workflows/{name}", params={"version": 1}).json()["data"]
    assert shown["workflow"]["description"] == "first"
    assert [each["version"] for each in shown["versions"]] == [2, 1]


def test_a_change_that_changes_nothing_is_no_version(api: Server) -> None:
    name = make(api, description="same")

    changed = api.admin.patch(f"/workflows/{name}", json={"description": "same"})

    assert changed.json()["data"]["workflow"]["version"] == 1


def test_null_takes_a_field_away(api: Server) -> None:
    name = make(api, description="gone soon")

    changed = api.admin.patch(f"/workflows/{name}", json={"description": None})

    assert "description" not in changed.json()["data"]["workflow"]


def test_if_match_with_a_version_that_is_past_is_412(api: Server) -> None:
    place = f"/workflows/{make(api)}"
    first = {"If-Match": api.admin.get(place).headers["etag"]}
    changed = api.admin.patch(place, json={"description": "newer"}, headers=first)
    assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')

    late = api.admin.patch(place, json={"description": "x"}, headers=first)
    switched = api.admin.patch(place, json={"status": "disabled"}, headers=first)
    gone = api.admin.delete(place, headers=first)
    odd = api.admin.patch(place, json={"description": "x"}, headers={"If-Match": "yesterday"})

    assert {each.status_code for each in (late, switched, gone, odd)} == {412}
    codes = [each.json()["code"] for each in (late, switched, gone, odd)]
    assert codes == ["workflow_changed"] * 3 + ["if_match_unknown"]
    assert api.admin.get(place).json()["data"]["workflow"]["description"] == "newer"
    assert api.admin.delete(place, headers={"If-Match": '"2"'}).status_code == 204


def test_of_many_who_change_one_version_exactly_one_does(api: Server) -> None:
    place = f"/workflows/{make(api)}"

    def change(n: int) -> int:
        with api.client("an-admin-token-for-tests-only") as client:
            said, first = {"description": f"n{n}"}, {"If-Match": '"1"'}
            return client.patch(place, json=said, headers=first).status_code

    with ThreadPoolExecutor(6) as pool:
        answers = sorted(pool.map(change, range(6)))

    assert answers == [200] + [412] * 5


def test_a_merge_patch_reaches_inside_the_fields(api: Server) -> None:
    kinds = {"Content-Type": "application/merge-patch+json"}
    place = f"/workflows/{make(api, metadata={'team': 'ana', 'room': {'a': 1, 'b': 2}})}"

    deep = api.admin.patch(place, content='{"metadata": {"room": {"a": null}}}', headers=kinds)
    bogus = api.admin.patch(place, content='{"bogus": null}', headers=kinds)
    whole = api.admin.patch(place, json={"metadata": {"room": {"a": 3}}})

    assert deep.json()["data"]["workflow"]["metadata"] == {"team": "ana", "room": {"b": 2}}
    assert [each["pointer"] for each in bogus.json()["errors"]] == ["/bogus"]
    assert whole.json()["data"]["workflow"]["metadata"] == {"room": {"a": 3}}


def test_a_change_of_nothing_is_422(api: Server) -> None:
    answered = api.admin.patch(f"/workflows/{make(api)}", json={})

    assert (answered.status_code, answered.json()["code"]) == (422, "body_invalid")


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"bogus": None}, "/bogus"), ({"bogus": 1}, "/bogus"), ({"slug": "another"}, "/slug"),
        ({"status": "sleepy"}, "/status"), ({"version": 1}, "/version"),
        ({"steps": []}, "/steps"),
    ],
)  # fmt: skip
def test_a_change_that_does_not_fit_names_the_place(
    api: Server, body: dict[str, Any], place: str
) -> None:
    answered = api.admin.patch(f"/workflows/{make(api)}", json=body)

    assert answered.status_code == 422
    assert pointers(answered) == [place]


def test_a_slug_that_is_taken_is_409(api: Server) -> None:
    name = make(api)

    answered = api.admin.post("/workflows", json=document(name))

    assert (answered.status_code, answered.json()["code"]) == (409, "workflow_conflict")


@pytest.mark.parametrize(
    ("steps", "place"),
    [
        ([step("a", "b"), step("b", "a")], "/steps"),
        ([step("a", "nobody")], "/steps/0/dependsOn/0"),
        ([step("a"), step("a")], "/steps/1/id"),
        ([step("a", timeoutMs=1)], "/steps/0/timeoutMs"),
        ([{"id": "a", "type": "teleport"}], "/steps/0"),
    ],
)
def test_steps_that_cannot_be_run_are_422_with_the_place(
    api: Server, steps: list[dict[str, Any]], place: str
) -> None:
    answered = api.admin.post("/workflows", json=document(slug(), *steps))

    assert (answered.status_code, answered.json()["code"]) == (422, "workflow_invalid")
    assert answered.headers["content-type"] == "application/problem+json"
    assert pointers(answered)[0].startswith(place)


def test_a_body_that_is_no_object_is_422(api: Server) -> None:
    assert api.admin.post("/workflows", json=["a"]).json()["code"] == "body_invalid"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/run"), ("GET", "/stats"),
        ("GET", "/run-metrics"), ("GET", "/timeline"), ("GET", "/schedules"),
        ("POST", "/schedules"),
    ],
)  # fmt: skip
def test_an_unknown_workflow_is_404_by_its_name(api: Server, method: str, path: str) -> None:
    body = {"name": "n", "cron": "0 0 * * *"} if path == "/schedules" else {}
    body = {"description": "x"} if method == "PATCH" else body
    for name in ("nobody-knows", "odd%00name", "x" * 600):
        sent: dict[str, Any] = {} if method in ("GET", "DELETE") else {"json": body}
        answered = api.admin.request(method, f"/workflows/{name}{path}", **sent)

        assert (answered.status_code, answered.json()["code"]) == (404, "not_found")


def test_a_version_that_never_was_is_404(api: Server) -> None:
    name = make(api)

    for version in ("2", "0", "99999999999999999"):
        answered = api.admin.get(f"/workflows/{name}", params={"version": version})
        assert answered.status_code == 404


def test_a_deleted_workflow_is_gone_and_its_runs_stay(api: Server) -> None:
    name = make(api)
    run = started(api, name)

    assert api.admin.delete(f"/workflows/{name}").status_code == 204

    assert api.admin.get(f"/workflows/{name}").status_code == 404
    assert api.admin.post(f"/workflows/{name}/run", json={}).status_code == 404
    assert api.admin.get(f"/workflow-runs/{run['id']}").status_code == 200


def test_workflows_are_listed_by_status(api: Server) -> None:
    name = make(api, status="disabled")

    def listed(**query: str) -> list[str]:
        found = api.admin.get("/workflows", params=query).json()["data"]["workflows"]
        return [each["slug"] for each in found]

    assert name in listed()
    assert name in listed(status="disabled")
    assert name not in listed(status="active")
    assert api.admin.get("/workflows", params={"status": "odd"}).status_code == 400
    assert api.admin.get("/workflows", params={"stauts": "active"}).status_code == 400


def test_another_tenant_sees_none_of_it(api: Server) -> None:
    name = make(api)
    run = started(api, name)
    with api.as_scopes(Scope.WORKFLOWS_WRITE, Scope.WORKFLOWS_RUN, tenant_id="acme") as other:
        assert other.get("/workflows").json()["data"]["workflows"] == []
        assert other.get(f"/workflows/{name}").status_code == 404
        assert other.get(f"/workflow-runs/{run['id']}").status_code == 404
        assert other.post(f"/workflow-runs/{run['id']}/cancel").status_code == 404
        assert other.get("/workflow-runs").json()["data"]["runs"] == []
        assert other.post("/workflows", json=document(name)).status_code == 201


def test_whoever_writes_or_runs_may_read_and_a_reader_may_do_neither(api: Server) -> None:
    name = make(api)
    with (
        api.as_scopes(Scope.WORKFLOWS_WRITE) as writer,
        api.as_scopes(Scope.WORKFLOWS_RUN) as runner,
        api.as_scopes(Scope.WORKFLOWS_READ) as reader,
    ):
        for client in (writer, runner, reader):
            assert client.get(f"/workflows/{name}").status_code == 200
        assert writer.post(f"/workflows/{name}/run", json={}).status_code == 403
        assert runner.patch(f"/workflows/{name}", json={"description": "x"}).status_code == 403
        assert reader.post(f"/workflows/{name}/run", json={}).status_code == 403
        assert runner.post(f"/workflows/{name}/run", json={}).status_code == 202


# Starting runs.


def test_a_started_run_is_pending_and_says_who_started_it(api: Server) -> None:
    name = make(api)

    run = started(api, name, parameters={"n": 1}, correlationId="order 12/7")

    assert (run["status"], run["triggeredBy"]) == ("pending", "admin")
    assert (run["parameters"], run["correlationId"]) == ({"n": 1}, "order 12/7")
    assert run["trigger"] == {"type": "manual"}


def test_a_run_key_that_is_taken_is_409_with_the_existing_run(api: Server) -> None:
    name = make(api)
    first = started(api, name, runKey="Orders-2026")

    answered = api.admin.post(f"/workflows/{name}/run", json={"runKey": "orders--2026"})

    assert (answered.status_code, answered.json()["code"]) == (409, "run_key_conflict")
    assert answered.headers["content-type"] == "application/problem+json"
    assert answered.json()["run"]["id"] == first["id"]


@pytest.mark.parametrize(
    ("body", "code", "place"),
    [
        ({"parameters": {"path": 7}}, "parameters_invalid", "/parameters/path"),
        ({"parameters": {}}, "parameters_invalid", "/parameters/path"),
        ({"parameters": []}, "body_invalid", "/parameters"),
        ({"parameters": {"path": "p"}, "runKey": "a b"}, "run_key_invalid", "/runKey"),
        ({"parameters": {"path": "p"}, "runKey": "-"}, "run_key_invalid", "/runKey"),
        ({"parameters": {"path": "p"}, "runkey": "x"}, "body_invalid", "/runkey"),
        ({"parameters": {"path": "p"}, "run_key": "x"}, "body_invalid", "/run_key"),
        ({"parameters": {"path": "p"}, "correlationId": "\n"}, "body_invalid", "/correlationId"),
    ],
)
def test_a_run_that_cannot_start_says_where_it_is_wrong(
    api: Server, body: dict[str, Any], code: str, place: str
) -> None:
    name = make(api, parametersSchema=NEEDS_PATH)

    answered = api.admin.post(f"/workflows/{name}/run", json=body)

    assert (answered.status_code, answered.json()["code"]) == (422, code)
    assert place in pointers(answered)


def test_a_disabled_workflow_starts_nothing(api: Server) -> None:
    name = make(api)
    api.admin.patch(f"/workflows/{name}", json={"status": "disabled"})

    answered = api.admin.post(f"/workflows/{name}/run", json={})

    assert (answered.status_code, answered.json()["code"]) == (409, "workflow_disabled")


# Every act is an event.


def test_every_act_on_a_workflow_is_an_event(api: Server) -> None:
    name = make(api)
    api.admin.patch(f"/workflows/{name}", json={"status": "disabled"})
    api.admin.patch(f"/workflows/{name}", json={"status": "active"})
    run = started(api, name)
    api.admin.post(f"/workflow-runs/{run['id']}/cancel")
    again = api.admin.post(f"/workflow-runs/{run['id']}/replay").json()["data"]["run"]
    api.admin.delete(f"/workflows/{name}")

    def told(event_type: str) -> list[dict[str, Any]]:
        return [each for each in acts(api, event_type) if each["workflowSlug"] == name]

    assert [each["actor"] for each in told("penstock.workflow.created")] == ["admin"]
    assert [e["status"] for e in told("penstock.workflow.updated")] == ["active", "disabled"]
    assert told("penstock.run.started")[0]["workflowRunId"] == run["id"]
    assert told("penstock.run.cancelled")[0]["workflowRunId"] == run["id"]
    assert told("penstock.run.replayed")[0]["workflowRunId"] == again["id"]
    assert told("penstock.run.replayed")[0]["replayOf"] == run["id"]
    assert len(told("penstock.workflow.deleted")) == 1
