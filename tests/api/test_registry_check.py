"""A new version is checked against schemas and stored events, and a breaking one needs a reason."""

from __future__ import annotations

import itertools
from typing import Any

import httpx
import pytest
from tests.api.support import Server

from penstock.access.token import Scope

_counter = itertools.count()
ONE = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "total": {"type": "integer"}},
    "required": ["id"],
}
WITH_NOTE = {**ONE, "properties": {**ONE["properties"], "note": {"type": "string"}}}  # type: ignore[dict-item]
TOTAL_NEEDED = {**ONE, "required": ["id", "total"]}
RETYPED = {**ONE, "properties": {"id": {"type": "string"}, "total": {"type": "string"}}}


def name() -> str:
    return f"shop.order.n{next(_counter)}"


def register(api: Server, event_type: str, schema: Any, **more: Any) -> httpx.Response:
    body = {"eventType": event_type, "schema": schema, **more}
    return api.admin.post("/admin/event-schemas", json=body)


def check(api: Server, event_type: str, schema: Any, **more: Any) -> Any:
    body = {"eventType": event_type, "schema": schema, **more}
    answered = api.admin.post("/admin/event-schemas/check", json=body)
    assert answered.status_code == 200, answered.text
    return answered.json()["data"]


def publish(api: Server, event_type: str, *payloads: Any, source: str = "shop.api") -> None:
    events = [{"type": event_type, "source": source, "payload": each} for each in payloads]
    assert api.admin.post("/v1/events", json=events).status_code == 202


@pytest.fixture
def event_type(api: Server) -> str:
    """A type with one version and a few stored events, some without a total."""
    found = name()
    assert register(api, found, ONE).status_code == 201
    publish(api, found, *({"id": str(n), "total": n} for n in range(4)))
    publish(api, found, {"id": "a"}, {"id": "b"}, source="shop.worker")
    return found


def test_a_breaking_version_is_409_and_says_what_breaks(api: Server, event_type: str) -> None:
    answered = register(api, event_type, TOTAL_NEEDED)

    problem = answered.json()
    assert (answered.status_code, problem["code"]) == (409, "schema_breaking")
    assert {"pointer": "/total", "detail": "is required now"} in problem["errors"]
    assert {
        "pointer": "/total",
        "detail": "expected a required field, found nothing, in 2 events stored",
    } in problem["errors"]
    assert "of 6 events of the last 30 days 2 would fail" in problem["detail"]
    assert "override" in problem["remedy"]
    listed = api.admin.get("/admin/event-schemas", params={"eventType": event_type}).json()
    assert listed["data"]["total"] == 1


def test_an_override_with_a_reason_registers_it_and_is_kept_and_told(
    api: Server, event_type: str
) -> None:
    answered = register(
        api, event_type, TOTAL_NEEDED, override=True, reason="every shop sends it since May"
    )

    assert answered.status_code == 201
    record = answered.json()["data"]["metadata"]["override"]
    assert record["reason"] == "every shop sends it since May"
    assert record["breaks"][0] == "/total is required now"
    assert "2 would fail" in record["breaks"][1]
    (act,) = [
        each["payload"]
        for each in api.admin.get(
            "/admin/events", params={"type": "penstock.schema.registered", "limit": 200}
        ).json()["data"]["events"]
        if each["payload"]["eventType"] == event_type and each["payload"]["version"] == 2
    ]
    assert act["override"] == record
    assert act["actor"] == "admin"


def test_registering_the_overridden_version_again_changes_nothing(
    api: Server, event_type: str
) -> None:
    first = register(api, event_type, TOTAL_NEEDED, override=True, reason="meant")

    again = register(api, event_type, TOTAL_NEEDED)

    assert again.status_code == 201
    assert again.json() == first.json()


@pytest.mark.parametrize(
    "more", [{"override": True}, {"override": True, "reason": "  "}, {"override": "yes"}]
)
def test_an_override_without_a_reason_is_422(
    api: Server, event_type: str, more: dict[str, Any]
) -> None:
    answered = register(api, event_type, TOTAL_NEEDED, **more)

    assert (answered.status_code, answered.json()["code"]) == (422, "body_invalid")


def test_a_compatible_version_needs_no_word(api: Server, event_type: str) -> None:
    answered = register(api, event_type, WITH_NOTE)

    assert (answered.status_code, answered.json()["data"]["version"]) == (201, 2)
    publish(api, event_type, {"id": "c", "note": "new"})


def test_a_draft_is_free_and_publishing_it_is_not(api: Server, event_type: str) -> None:
    assert register(api, event_type, RETYPED, status="draft").status_code == 201

    answered = register(api, event_type, RETYPED, version=2, status="active")

    assert (answered.status_code, answered.json()["code"]) == (409, "schema_breaking")


def test_stored_events_alone_can_make_a_version_breaking(api: Server, event_type: str) -> None:
    publish(api, event_type, {"id": "x", "note": 5})

    answered = register(api, event_type, WITH_NOTE)

    assert answered.status_code == 409
    assert "1 would fail: /note expected string, found integer (1)" in answered.json()["detail"]


def test_a_check_reports_everything_and_registers_nothing(api: Server, event_type: str) -> None:
    found = check(api, event_type, RETYPED)

    assert (found["version"], found["comparedWith"]) == (2, 1)
    assert (found["verdict"], found["breaking"]) == ("none", True)
    assert found["differences"] == [
        {
            "pointer": "/total",
            "change": "retyped",
            "detail": "was integer, is now string",
            "breaksBackward": True,
            "breaksForward": True,
        }
    ]
    stored = found["storedEvents"]
    assert (stored["examined"], stored["failing"], stored["complete"]) == (6, 4, True)
    (group,) = stored["groups"]
    assert (group["pointer"], group["events"]) == ("/total", 4)
    assert group["sources"] == [{"source": "shop.api", "events": 4}]
    sample = api.admin.get(f"/admin/events/{group['samples'][0]['id']}").json()["data"]["event"]
    assert sample["position"] == group["samples"][0]["position"]
    assert found["readers"] == []
    assert api.admin.get(f"/admin/event-schemas/{event_type}/2").status_code == 404


def test_a_check_of_a_new_type_has_nothing_to_compare_with(api: Server) -> None:
    found = check(api, name(), ONE)

    assert (found["verdict"], found["breaking"], found["comparedWith"]) == ("first", False, None)


def test_a_check_sees_events_of_its_own_tenant_only(api: Server, event_type: str) -> None:
    with api.as_scopes(Scope.EVENTS_READ, tenant_id="acme") as stranger:
        body = {"eventType": event_type, "schema": RETYPED}
        found = stranger.post("/admin/event-schemas/check", json=body).json()["data"]

    assert found["storedEvents"]["examined"] == 0
    assert found["breaking"] is True


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"eventType": "a.b", "schema": {"type": "nonsense"}}, "schema_invalid"),
        ({"eventType": "Bad Name", "schema": {}}, "schema_invalid"),
        ({"eventType": "a.b", "schema": {}, "days": 0}, "body_invalid"),
        ({"eventType": "a.b", "schema": {}, "override": True}, "body_invalid"),
        ({"eventType": "a.b"}, "body_invalid"),
        ([], "body_invalid"),
    ],
)
def test_a_check_that_makes_no_sense_is_422(api: Server, body: Any, code: str) -> None:
    answered = api.admin.post("/admin/event-schemas/check", json=body)

    assert (answered.status_code, answered.json()["code"]) == (422, code)


# What is known about a type.


def test_a_type_is_shown_with_all_that_its_page_says(api: Server, event_type: str) -> None:
    register(api, event_type, WITH_NOTE, metadata={"purpose": "An order.", "consumers": ["bills"]})

    shown = api.admin.get(f"/admin/event-schemas/{event_type}").json()["data"]

    assert (shown["eventType"], shown["version"], shown["purpose"]) == (event_type, 2, "An order.")
    assert shown["consumers"] == ["bills"]
    assert [field["path"] for field in shown["fields"]] == ["id", "total", "note"]
    assert [v["changes"] for v in shown["versions"]] == [[], ["/note was added"]]
    assert shown["schema"] == WITH_NOTE


def test_a_declared_type_is_shown_with_meanings_and_an_example(api: Server) -> None:
    shown = api.admin.get("/admin/event-schemas/metastore.record.updated").json()["data"]

    assert shown["vocabulary"] == "platform"
    assert shown["example"]["namespace"] == "feature-flags"
    assert all(field["meaning"] for field in shown["fields"])


def test_a_type_nobody_registered_is_404_with_the_nearest_name(api: Server) -> None:
    answered = api.admin.get("/admin/event-schemas/metastore.record.updatd")

    assert answered.status_code == 404
    assert "metastore.record.updated" in answered.json()["detail"]


# The registry as it was.


def states(api: Server, event_type: str, as_of: str | None = None) -> list[tuple[int, str]]:
    params = {"eventType": event_type} | ({} if as_of is None else {"asOf": as_of})
    data = api.admin.get("/admin/event-schemas", params=params).json()["data"]
    return [(each["version"], each["status"]) for each in data["schemas"]]


def head(api: Server) -> str:
    newest = api.admin.get("/admin/events", params={"limit": 1}).json()["data"]["events"][0]
    return str(newest["position"])


def test_the_registry_is_listed_as_of_a_position(api: Server, event_type: str) -> None:
    first = head(api)
    publish(api, event_type, {"id": "between"})
    register(api, event_type, WITH_NOTE)
    second = head(api)
    publish(api, event_type, {"id": "between"})
    register(api, event_type, WITH_NOTE, status="deprecated")

    assert states(api, event_type, "0") == []
    assert states(api, event_type, first) == [(1, "active")]
    assert states(api, event_type, second) == [(1, "active"), (2, "active")]
    assert states(api, event_type, head(api)) == [(1, "active"), (2, "deprecated")]
    assert states(api, event_type) == [(1, "active"), (2, "deprecated")]


def test_the_registry_is_listed_as_of_an_instant(api: Server, event_type: str) -> None:
    versions = register(api, event_type, WITH_NOTE).json()["data"]
    publish(api, event_type, {"id": "later"})

    answered = api.admin.get(
        "/admin/event-schemas", params={"eventType": event_type, "asOf": versions["createdAt"]}
    ).json()["data"]

    assert [each["version"] for each in answered["schemas"]] == [1, 2]
    assert answered["asOf"]["at"] == versions["createdAt"]
    assert states(api, event_type, "2020-01-01T00:00:00Z") == []


@pytest.mark.parametrize("as_of", ["yesterday", "-1", "999999999", "2999-01-01T00:00:00Z", ""])
def test_a_moment_that_cannot_be_known_is_400(api: Server, as_of: str) -> None:
    answered = api.admin.get("/admin/event-schemas", params={"asOf": as_of})

    assert (answered.status_code, answered.json()["code"]) == (400, "query_invalid")
    assert answered.json()["errors"][0]["pointer"] == "asOf"


def test_a_check_names_the_triggers_templates_and_steps_that_read_a_removed_field(
    api: Server, event_type: str
) -> None:
    slug = f"ship-{event_type.rpartition('.')[2]}"
    tell = {
        "id": "tell",
        "type": "webhook",
        "url": "https://example.org/hook",
        "body": {"total": "{{ run.trigger.event.payload.total }}"},
    }
    workflow = {"slug": slug, "name": slug, "steps": [tell]}
    trigger = {
        "name": "big",
        "eventType": event_type,
        "predicates": [{"path": "$.payload.total", "operator": "gt", "value": 10}],
        "parameterTemplate": {"total": "{{ event.payload.total }}"},
    }
    assert api.admin.post("/workflows", json=workflow).status_code == 201
    assert api.admin.post(f"/workflows/{slug}/triggers", json=trigger).status_code == 201
    without = {**ONE, "properties": {"id": {"type": "string"}}}
    body = {"eventType": event_type, "schema": without}

    ours = check(api, event_type, without)
    refused = register(api, event_type, without).json()
    stranger = api.as_scopes(Scope.EVENTS_READ, tenant_id="acme")
    theirs = stranger.post("/admin/event-schemas/check", json=body)

    kinds = {"trigger": f"{slug}/big", "template": f"{slug}/big", "step": f"{slug}/tell"}
    assert ours["readers"] == [
        {"kind": kind, "name": name, "pointer": "/total"} for kind, name in kinds.items()
    ]
    assert f"the step {slug}/tell reads /total" in ours["sentences"]
    assert f"the trigger {slug}/big reads /total" in refused["detail"]
    assert theirs.json()["data"]["breaking"] is True
    assert {each["name"] for each in theirs.json()["data"]["readers"]} == {"of another tenant"}
    assert slug not in theirs.text


def test_one_type_and_its_versions_are_shown_as_of_a_moment_too(
    api: Server, event_type: str
) -> None:
    place = f"/admin/event-schemas/{event_type}"
    first = head(api)
    publish(api, event_type, {"id": "between"})
    register(api, event_type, WITH_NOTE)

    def shown(path: str, **params: str) -> tuple[int, Any]:
        answered = api.admin.get(path, params=params)
        return answered.status_code, answered.json().get("data")

    status, entry = shown(place, asOf=first)
    assert (status, entry["version"], len(entry["versions"])) == (200, 1, 1)
    assert entry["asOf"]["position"] == first
    assert shown(place)[1]["version"] == 2
    assert shown(f"{place}/latest", asOf=first)[1]["version"] == 1
    assert shown(f"{place}/latest")[1]["version"] == 2
    assert shown(f"{place}/2", asOf=first)[0] == 404
    assert shown(f"{place}/2")[0] == 200
    assert shown(place, asOf="0")[0] == 404
    for path in (place, f"{place}/latest", f"{place}/1"):
        assert shown(path, asOf="yesterday")[0] == 400
        assert shown(path, asof=first)[0] == 400, "a parameter that is passed over misleads"
