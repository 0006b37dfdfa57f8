"""Schedules and services of workflows are kept over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.support import Server
from tests.api.test_workflows import acts, make, pointers, slug

from penstock.access.token import Scope

NIGHTLY = {"name": "nightly", "cron": "30 2 * * *", "timezone": "Europe/Berlin"}


def scheduled(api: Server, name: str, **fields: Any) -> dict[str, Any]:
    answered = api.admin.post(f"/workflows/{name}/schedules", json={**NIGHTLY, **fields})
    assert answered.status_code == 201, answered.text
    found: dict[str, Any] = answered.json()["data"]["schedule"]
    return found


def test_a_schedule_says_when_it_fires_next(api: Server) -> None:
    name = make(api)

    made = scheduled(api, name, parameters={"path": "/in"})

    assert (made["workflowSlug"], made["catchUp"], made["isActive"]) == (name, "last", True)
    assert made["nextRunAt"] is not None
    listed = api.admin.get(f"/workflows/{name}/schedules").json()["data"]
    assert [each["id"] for each in listed["schedules"]] == [made["id"]]
    assert listed["workflow"]["slug"] == name
    everywhere = api.admin.get("/workflow-schedules", params={"workflow": name}).json()["data"]
    assert everywhere["schedules"] == listed["schedules"]
    assert api.admin.get(f"/workflows/{name}").json()["data"]["workflow"]["schedules"]


def test_a_change_keeps_what_it_does_not_name(api: Server) -> None:
    made = scheduled(api, make(api), description="at night")

    changed = api.admin.patch(
        f"/workflow-schedules/{made['id']}", json={"isActive": False, "description": None}
    ).json()["data"]["schedule"]

    assert (changed["cron"], changed["isActive"]) == ("30 2 * * *", False)
    assert "description" not in changed
    assert changed["nextRunAt"] is None
    assert changed["version"] == made["version"] + 1


def test_a_change_that_changes_nothing_is_no_version(api: Server) -> None:
    made = scheduled(api, make(api), startWindow="2026-03-01T00:00:00+01:00", catchUp=True)
    path = f"/workflow-schedules/{made['id']}"

    same = api.admin.patch(path, json={"catchUp": "all", "startWindow": "2026-02-28T23:00:00Z"})

    assert (same.status_code, same.json()["data"]["schedule"]) == (200, made)


def test_if_match_with_a_version_that_is_past_is_412(api: Server) -> None:
    path = f"/workflow-schedules/{scheduled(api, make(api))['id']}"
    first = {"If-Match": api.admin.get(path).headers["etag"]}
    changed = api.admin.patch(path, json={"cron": "0 3 * * *"}, headers=first)
    assert changed.status_code == 200

    late = api.admin.patch(path, json={"cron": "0 4 * * *"}, headers=first)
    gone = api.admin.delete(path, headers=first)

    for refused in (late, gone):
        assert (refused.status_code, refused.json()["code"]) == (412, "workflow_changed")
    shown = api.admin.get(path)
    assert shown.json()["data"] == changed.json()["data"]
    assert shown.headers["etag"] == changed.headers["etag"]
    assert api.admin.delete(path, headers={"If-Match": shown.headers["etag"]}).status_code == 204
    assert api.admin.get(path).status_code == 404


def test_a_merge_patch_of_a_schedule_reaches_inside_its_parameters(api: Server) -> None:
    made = scheduled(api, make(api), parameters={"path": "/in", "keep": True})

    changed = api.admin.patch(
        f"/workflow-schedules/{made['id']}",
        content='{"parameters": {"path": null, "since": "{{ schedule.window.start }}"}}',
        headers={"Content-Type": "application/merge-patch+json"},
    ).json()["data"]["schedule"]

    assert changed["parameters"] == {"keep": True, "since": "{{ schedule.window.start }}"}


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"cron": "every day"}, "/cron"), ({"timezone": "Mars/Olympus"}, "/timezone"),
        ({"crom": "0 0 * * *"}, "/crom"), ({"catchUp": "some"}, "/catchUp"),
        ({"startWindow": "soon"}, "/startWindow"), ({"parameters": 7}, "/parameters"),
    ],
)  # fmt: skip
def test_a_schedule_that_means_nothing_is_422_with_the_place(
    api: Server, fields: dict[str, Any], place: str
) -> None:
    name = make(api)

    answered = api.admin.post(f"/workflows/{name}/schedules", json={**NIGHTLY, **fields})

    assert (answered.status_code, answered.json()["code"]) == (422, "schedule_invalid")
    assert pointers(answered) == [place]


def test_a_deleted_schedule_is_gone(api: Server) -> None:
    made = scheduled(api, make(api))
    path = f"/workflow-schedules/{made['id']}"

    assert api.admin.delete(path).status_code == 204

    assert api.admin.delete(path).status_code == 404
    assert api.admin.patch(path, json={"isActive": True}).status_code == 404


def test_every_act_on_a_schedule_is_an_event(api: Server) -> None:
    name = make(api)
    made = scheduled(api, name)
    api.admin.patch(f"/workflow-schedules/{made['id']}", json={"isActive": False})
    api.admin.delete(f"/workflow-schedules/{made['id']}")

    for word in ("created", "updated", "deleted"):
        told = [a for a in acts(api, f"penstock.schedule.{word}") if a["workflowSlug"] == name]
        assert [each["scheduleId"] for each in told] == [made["id"]], word


# Services.


def test_a_service_is_registered_changed_and_forgotten(api: Server) -> None:
    path = f"/workflow-services/{slug()}"
    body = {"baseUrl": "https://metastore.example/api", "displayName": "Metastore"}

    first = api.admin.put(path, json=body)
    second = api.admin.put(path, json=body | {"headers": {"authorization": {"secret": "token"}}})

    assert (first.status_code, second.status_code) == (201, 200)
    shown = api.admin.get(path).json()["data"]["service"]
    assert shown["headers"] == {"authorization": {"secret": "token"}}
    assert (shown["baseUrl"], shown["status"]) == (body["baseUrl"], "unknown")
    assert api.admin.delete(path).status_code == 204
    assert api.admin.get(path).status_code == 404
    assert api.admin.delete(path).status_code == 404


def test_what_is_known_of_a_service_stays_until_it_moves(api: Server) -> None:
    path = f"/workflow-services/{slug()}"
    api.admin.put(path, json={"baseUrl": "https://a.example", "status": "healthy"})

    stayed = api.admin.put(path, json={"baseUrl": "https://a.example", "displayName": "A"})
    moved = api.admin.put(path, json={"baseUrl": "https://b.example"})

    assert stayed.json()["data"]["service"]["status"] == "healthy"
    assert moved.json()["data"]["service"]["status"] == "unknown"


@pytest.mark.parametrize(
    "url",
    [
        "", "metastore", "ftp://metastore.example", "https://", "https://user:pw@a.example",
        "https://a.example?x=1", "https://a.example/#x", "https://a.example:99999",
        "https://a .example", "https://[::1", "javascript:alert(1)", 7, None,
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_422(api: Server, url: Any) -> None:
    answered = api.admin.put(f"/workflow-services/{slug()}", json={"baseUrl": url})

    assert (answered.status_code, answered.json()["code"]) == (422, "body_invalid")
    assert pointers(answered) == ["/baseUrl"]


@pytest.mark.parametrize("name", ["authorization", "Cookie", "x-api-key", "X-Auth-Token"])
def test_a_credential_must_be_a_secret_and_is_not_repeated(api: Server, name: str) -> None:
    body = {"baseUrl": "https://a.example", "headers": {name: "hunter2"}}

    answered = api.admin.put(f"/workflow-services/{slug()}", json=body)

    assert answered.status_code == 422
    assert "hunter2" not in answered.text


@pytest.mark.parametrize(
    "headers", [{"bad header": "x"}, {"x": "a\r\nb: c"}, {"x": 7}, {"x": {"secret": ""}}]
)
def test_headers_that_could_not_be_sent_are_422(api: Server, headers: Any) -> None:
    body = {"baseUrl": "https://a.example", "headers": headers}

    assert api.admin.put(f"/workflow-services/{slug()}", json=body).status_code == 422


def test_services_belong_to_their_tenant(api: Server) -> None:
    name = slug()
    api.admin.put(f"/workflow-services/{name}", json={"baseUrl": "https://a.example"})
    with api.as_scopes(Scope.WORKFLOWS_WRITE, tenant_id="acme") as other:
        assert other.get(f"/workflow-services/{name}").status_code == 404
        assert other.delete(f"/workflow-services/{name}").status_code == 404
        assert name not in other.get("/workflow-services").text
    assert name in api.admin.get("/workflow-services").text


def test_every_act_on_a_service_is_an_event(api: Server) -> None:
    name = slug()
    for url in ("https://a.example", "https://b.example"):
        api.admin.put(f"/workflow-services/{name}", json={"baseUrl": url})
    api.admin.delete(f"/workflow-services/{name}")

    for word in ("registered", "updated", "deleted"):
        told = [a for a in acts(api, f"penstock.service.{word}") if a["serviceSlug"] == name]
        assert len(told) == 1, word
