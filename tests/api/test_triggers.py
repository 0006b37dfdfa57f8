"""Triggers over HTTP: made, shown, changed and deleted, with versions, checks and history."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.api.support import Server, event

from penstock.access.token import Scope

_names = itertools.count()


def workflow(api: Server, client: Any = None) -> str:
    """The slug of a new workflow with one step."""
    slug = f"flow-{next(_names)}"
    step = {"id": "one", "name": "One", "type": "function", "handler": "noop"}
    body = {"slug": slug, "name": "A flow", "steps": [step]}
    made = (client or api.admin).post("/workflows", json=body)
    assert made.status_code == 201, made.text
    return slug


def spec(**fields: Any) -> dict[str, Any]:
    return {"name": "on update", "eventType": "metastore.record.updated", **fields}


def make(api: Server, slug: str, **fields: Any) -> dict[str, Any]:
    answered = api.admin.post(f"/workflows/{slug}/triggers", json=spec(**fields))
    assert answered.status_code == 201, answered.text
    found: dict[str, Any] = answered.json()["data"]
    return found


def acts(api: Server, event_type: str) -> list[dict[str, Any]]:
    """The payloads of recorded acts of a type, newest first."""
    found = api.admin.get("/admin/events", params={"type": event_type}).json()["data"]["events"]
    return [each["payload"] for each in found]


def at(slug: str, trigger: dict[str, Any], rest: str = "") -> str:
    return f"/workflows/{slug}/triggers/{trigger['id']}{rest}"


def test_a_trigger_that_is_made_can_be_read_back_and_is_an_event(api: Server) -> None:
    slug = workflow(api)

    answered = api.admin.post(f"/workflows/{slug}/triggers", json=spec(maxConcurrency=3))

    made = answered.json()["data"]
    assert answered.status_code == 201
    assert answered.headers["etag"] == '"1"'
    assert answered.headers["location"] == at(slug, made)
    assert (made["version"], made["status"], made["maxConcurrency"]) == (1, "active", 3)
    flow = api.admin.get(f"/workflows/{slug}").json()["data"]["workflow"]
    assert made["workflowDefinitionId"] == flow["id"]
    assert flow["eventTriggers"] == [made]
    assert api.admin.get(at(slug, made, "/versions")).json()["data"]["versions"] == [made]
    shown = api.admin.get(at(slug, made))
    assert shown.json()["data"] == made
    assert shown.headers["etag"] == '"1"'
    told = acts(api, "penstock.trigger.created")[0]
    assert (told["triggerId"], told["workflowSlug"], told["actor"]) == (made["id"], slug, "admin")


def test_a_list_names_its_workflow_and_narrows_by_status_type_and_source(api: Server) -> None:
    slug = workflow(api)
    plain = make(api, slug)
    shadow = make(api, slug, status="shadow", eventSource="metastore.api")
    glob = make(api, slug, eventType="metastore.**")

    def ids(**parameters: str) -> list[str]:
        data = api.admin.get(f"/workflows/{slug}/triggers", params=parameters).json()["data"]
        assert data["workflow"]["slug"] == slug
        assert set(data["workflow"]) == {"id", "slug", "name"}
        return [each["id"] for each in data["triggers"]]

    assert ids() == [plain["id"], shadow["id"], glob["id"]]
    assert ids(status="shadow") == [shadow["id"]]
    assert ids(status="shadow,active") == ids()
    assert ids(eventType="metastore.**") == [glob["id"]]
    assert ids(eventSource="metastore.api") == [shadow["id"]]
    everywhere = api.admin.get("/v1/triggers").json()["data"]["triggers"]
    assert set(ids()) <= {each["id"] for each in everywhere}
    named = api.admin.get("/v1/triggers", params={"workflow": slug}).json()["data"]["triggers"]
    assert [each["id"] for each in named] == ids()


@pytest.mark.parametrize(
    ("body", "pointer", "field"),
    [
        ({"eventType": "a.b"}, "/name", "name"),
        (spec(eventType="not a type"), "/eventType", "eventType"),
        (spec(nope=1), "/nope", "nope"),
        (spec(throttleCount=5), "/throttleWindowMs", "throttleWindowMs"),
        (spec(predicates=[{"path": "$.a[", "operator": "exists"}]),
         "/predicates/0/path", "predicates"),
        (spec(predicates=[{"path": "$.a", "operator": "regex", "value": "(?=x)"}]),
         "/predicates/0/value", "predicates"),
        (spec(parameterTemplate={"a": "{{ event.payload.id "}),
         "/parameterTemplate/a", "parameterTemplate"),
        (spec(runKeyTemplate="{% include 'x' %}"), "/runKeyTemplate", "runKeyTemplate"),
        (spec(parameterTemplate={"a": "{{ event.payload.id }}"}, sampleEvent={"payload": {}}),
         "/parameterTemplate/a", "parameterTemplate"),
    ],
)  # fmt: skip
def test_a_bad_trigger_is_422_with_pointers_and_with_form_and_field_errors(
    api: Server, body: dict[str, Any], pointer: str, field: str
) -> None:
    slug = workflow(api)

    answered = api.admin.post(f"/workflows/{slug}/triggers", json=body)

    problem = answered.json()
    assert answered.status_code == 422
    assert answered.headers["content-type"] == "application/problem+json"
    assert problem["code"] == "trigger_invalid"
    assert pointer in [each["pointer"] for each in problem["errors"]]
    assert problem["formErrors"] == []
    assert problem["fieldErrors"][field]
    assert api.admin.get(f"/workflows/{slug}/triggers").json()["data"]["triggers"] == []


def test_a_body_that_is_no_object_is_a_form_error(api: Server) -> None:
    answered = api.admin.post(f"/workflows/{workflow(api)}/triggers", json=[1])

    assert answered.status_code == 422
    assert answered.json()["formErrors"]
    assert answered.json()["fieldErrors"] == {}


def test_a_sample_event_is_tried_and_not_kept(api: Server) -> None:
    slug = workflow(api)
    template = {"parameterTemplate": {"key": "{{ event.payload.key }}"}}

    made = make(api, slug, **template, sampleEvent={"payload": {"key": "k"}})

    assert "sampleEvent" not in made
    refused = api.admin.patch(
        at(slug, made), json={"runKeyTemplate": "{{ event.payload.no }}", "sampleEvent": event()}
    )
    assert refused.status_code == 422
    assert refused.json()["fieldErrors"]["runKeyTemplate"]


def test_an_unknown_workflow_has_no_triggers_and_takes_none(api: Server) -> None:
    for answered in (
        api.admin.get("/workflows/nobody/triggers"),
        api.admin.post("/workflows/nobody/triggers", json=spec()),
        api.admin.get("/workflows/nobody/triggers/x"),
        api.admin.get("/workflows/no%00body/triggers"),
    ):
        assert answered.status_code == 404
        assert answered.json()["code"] == "not_found"


def test_a_trigger_is_found_under_its_own_workflow_only(api: Server) -> None:
    slug, other = workflow(api), workflow(api)
    made = make(api, slug)

    for rest in ("", "/versions", "/deliveries"):
        assert api.admin.get(at(other, made, rest)).status_code == 404
        assert api.admin.get(at(slug, made, rest)).status_code == 200
    assert api.admin.patch(at(other, made), json={"name": "x"}).status_code == 404
    assert api.admin.delete(at(other, made)).status_code == 404


def test_a_patch_merges_and_null_takes_a_field_back(api: Server) -> None:
    slug = workflow(api)
    made = make(api, slug, description="why", metadata={"a": {"x": 1, "y": 2}, "b": 3})

    answered = api.admin.patch(
        at(slug, made),
        content=json.dumps({"description": None, "metadata": {"a": {"x": None, "z": 4}}}),
        headers={"Content-Type": "application/merge-patch+json"},
    )

    after = answered.json()["data"]
    assert answered.status_code == 200
    assert answered.headers["etag"] == '"2"'
    assert (after["version"], after["description"]) == (2, None)
    assert after["metadata"] == {"a": {"y": 2, "z": 4}, "b": 3}
    assert sorted(acts(api, "penstock.trigger.updated")[0]["changed"]) == [
        "description", "metadata",
    ]  # fmt: skip


def test_a_patch_that_changes_nothing_makes_no_version(api: Server) -> None:
    slug = workflow(api)
    made = make(api, slug)

    same = api.admin.patch(at(slug, made), json={"name": made["name"]}).json()["data"]

    assert same == made


@pytest.mark.parametrize(
    "changes", [{}, {"nope": None}, {"version": 7}, {"name": None}, {"per": "batch"}, {"id": "x"}]
)
def test_a_patch_that_says_nothing_or_nonsense_is_refused(
    api: Server, changes: dict[str, Any]
) -> None:
    slug = workflow(api)
    made = make(api, slug)

    answered = api.admin.patch(at(slug, made), json=changes)

    assert answered.status_code == 422
    assert answered.json()["code"] == "trigger_invalid"
    assert api.admin.get(at(slug, made)).json()["data"] == made


def test_if_match_with_a_version_that_is_past_is_412(api: Server) -> None:
    slug = workflow(api)
    made = make(api, slug)
    first = {"If-Match": '"1"'}
    assert api.admin.patch(at(slug, made), json={"name": "two"}, headers=first).status_code == 200

    late = api.admin.patch(at(slug, made), json={"name": "three"}, headers=first)
    gone = api.admin.delete(at(slug, made), headers=first)
    odd = api.admin.patch(at(slug, made), json={"name": "x"}, headers={"If-Match": '"abc"'})

    assert {each.status_code for each in (late, gone, odd)} == {412}
    codes = [each.json()["code"] for each in (late, gone, odd)]
    assert codes == ["trigger_conflict", "trigger_conflict", "if_match_unknown"]
    assert api.admin.get(at(slug, made)).json()["data"]["name"] == "two"
    assert api.admin.delete(at(slug, made), headers={"If-Match": '"2"'}).status_code == 204


def test_of_many_who_change_one_version_exactly_one_does(api: Server) -> None:
    slug = workflow(api)
    made = make(api, slug)

    def change(n: int) -> int:
        with api.client("an-admin-token-for-tests-only") as client:
            return client.patch(
                at(slug, made), json={"name": f"n{n}"}, headers={"If-Match": '"1"'}
            ).status_code

    with ThreadPoolExecutor(6) as pool:
        found = sorted(pool.map(change, range(6)))

    assert found == [200, 412, 412, 412, 412, 412]


def test_versions_are_kept_for_ever_and_a_deleted_trigger_keeps_them(api: Server) -> None:
    slug = workflow(api)
    made = make(api, slug)
    api.admin.patch(at(slug, made), json={"name": "second"})

    assert api.admin.delete(at(slug, made)).status_code == 204

    assert api.admin.get(at(slug, made)).status_code == 404
    versions = api.admin.get(at(slug, made, "/versions")).json()["data"]["versions"]
    assert [(each["version"], each["name"]) for each in versions] == [
        (1, "on update"), (2, "second"),
    ]  # fmt: skip
    assert acts(api, "penstock.trigger.deleted")[0]["triggerId"] == made["id"]
    assert api.admin.delete(at(slug, made)).status_code == 404


def test_as_of_shows_the_triggers_as_they_were_defined(api: Server) -> None:
    slug = workflow(api)
    made = make(api, slug)
    then = api.admin.get(at(slug, made)).json()["data"]["updatedAt"]
    before = api.house.history.head().position
    api.admin.post("/v1/events", json=event())  # that position is the newest no longer
    api.admin.patch(at(slug, made), json={"name": "later", "status": "disabled"})
    api.admin.delete(at(slug, made))

    for moment in (then, str(before)):
        found = api.admin.get(f"/workflows/{slug}/triggers", params={"asOf": moment}).json()["data"]
        assert [(each["name"], each["version"]) for each in found["triggers"]] == [("on update", 1)]
        assert found["asOf"]["at"]
        alone = api.admin.get(at(slug, made), params={"asOf": moment}).json()["data"]
        assert (alone["name"], alone["version"], alone["asOf"]) == ("on update", 1, found["asOf"])
    early = api.admin.get(at(slug, made), params={"asOf": "2001-01-01T00:00:00Z"})
    assert (early.status_code, early.json()["code"]) == (404, "not_found")
    filtered = {"asOf": then, "status": "disabled"}
    assert api.admin.get("/v1/triggers", params=filtered).json()["data"]["triggers"] == []
    future = api.admin.get("/v1/triggers", params={"asOf": "2199-01-01T00:00:00Z"})
    assert (future.status_code, future.json()["code"]) == (400, "query_invalid")


@pytest.mark.parametrize(
    "query", ["?status=sleepy", "?colour=red", "?eventType=a.b&eventType=c.d", "?asOf=noon"]
)
def test_a_filter_that_means_nothing_is_refused(api: Server, query: str) -> None:
    answered = api.admin.get(f"/workflows/{workflow(api)}/triggers{query}")

    assert (answered.status_code, answered.json()["code"]) == (400, "query_invalid")


def test_triggers_of_another_tenant_do_not_exist(api: Server) -> None:
    slug = workflow(api)
    made = make(api, slug)
    scopes = (Scope.WORKFLOWS_WRITE, Scope.WORKFLOWS_RUN, Scope.EVENTS_READ)
    with api.as_scopes(*scopes, tenant_id="acme") as stranger:
        workflow_there = workflow(api, stranger)
        assert stranger.get(f"/workflows/{slug}/triggers").status_code == 404
        assert stranger.get("/v1/triggers").json()["data"]["triggers"] == []
        for path in (at(slug, made), at(workflow_there, made)):
            assert stranger.get(path).status_code == 404
            assert stranger.patch(path, json={"name": "mine"}).status_code == 404
            assert stranger.delete(path).status_code == 404
        for verb in ("pause", "resume"):
            assert stranger.post(f"/admin/triggers/{made['id']}/{verb}").status_code == 404
        explained = stranger.get(f"/v1/triggers/{made['id']}/explain?event=x")
        assert explained.status_code == 404
        backtest = stranger.post("/v1/triggers/backtest", json={"triggerId": made["id"]})
        assert backtest.status_code == 404
