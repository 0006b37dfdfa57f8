"""Schemas, dead letters and tokens are administered over HTTP, and every act is an event."""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any

import httpx
import pytest
from tests.api.support import ADMIN, Server, event

from penstock.access.token import Scope


def name() -> str:
    """A type of its own for each test."""
    return f"orders.order-{uuid.uuid4().hex[:8]}.placed"


SCHEMA = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}},
    "required": ["amount"],
}


def register(api: Server, event_type: str, schema: Any = SCHEMA, **more: Any) -> httpx.Response:
    body = {"eventType": event_type, "schema": schema, **more}
    return api.admin.post("/admin/event-schemas", json=body)


def publish(api: Server, event_type: str, payload: Any, **more: Any) -> httpx.Response:
    body = {"type": event_type, "source": "orders.api", "payload": payload, **more}
    return api.admin.post("/v1/events", json=body)


def acts(api: Server, event_type: str) -> list[dict[str, Any]]:
    found = api.admin.get("/admin/events", params={"type": event_type, "limit": 200}).json()
    return [each["payload"] for each in found["data"]["events"]]


# Schemas.


def test_a_registered_type_can_be_published_at_once(api: Server) -> None:
    event_type = name()
    assert publish(api, event_type, {"amount": 1}).status_code == 422

    registered = register(api, event_type)

    assert registered.status_code == 201
    assert registered.json()["data"]["version"] == 1
    assert publish(api, event_type, {"amount": 1}).status_code == 202
    assert publish(api, event_type, {"amount": "one"}).json()["code"] == "payload_invalid"


def test_registering_the_same_schema_again_changes_nothing(api: Server) -> None:
    event_type = name()
    first = register(api, event_type)

    second = register(api, event_type)

    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["data"] == second.json()["data"]


def test_another_schema_under_a_published_version_is_409(api: Server) -> None:
    event_type = name()
    register(api, event_type, version=1)

    answered = register(api, event_type, {"type": "object"}, version=1)

    assert (answered.status_code, answered.json()["code"]) == (409, "schema_conflict")


def test_versions_are_listed_and_shown(api: Server) -> None:
    event_type = name()
    register(api, event_type)
    register(api, event_type, {"type": "object"})
    register(api, event_type, {"type": "object", "title": "next"}, version=9, status="draft")

    listed = api.admin.get("/admin/event-schemas", params={"eventType": event_type}).json()["data"]
    drafts = api.admin.get(
        "/admin/event-schemas", params={"eventType": event_type, "status": "draft"}
    ).json()["data"]
    latest = api.admin.get(f"/admin/event-schemas/{event_type}/latest").json()["data"]
    ninth = api.admin.get(f"/admin/event-schemas/{event_type}/9").json()["data"]

    assert [v["version"] for v in listed["schemas"]] == [1, 2, 9]
    assert listed["total"] == 3
    assert [v["version"] for v in drafts["schemas"]] == [9]
    assert (latest["version"], latest["status"]) == (2, "active")
    assert (ninth["version"], ninth["status"]) == (9, "draft")
    assert ninth["schema"]["title"] == "next"
    assert len(latest["schemaHash"]) == 64


def test_what_is_not_registered_is_404_with_the_nearest_name(api: Server) -> None:
    answered = api.admin.get("/admin/event-schemas/metastore.record.updatd/latest")

    assert answered.status_code == 404
    assert "metastore.record.updated" in answered.json()["detail"]
    assert api.admin.get("/admin/event-schemas/metastore.record.updated/99").status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"eventType": "a.b"}, 422),
        ({"schema": {}}, 422),
        ({"eventType": "Bad Name", "schema": {}}, 422),
        ({"eventType": "a.b", "schema": {"type": "nonsense"}}, 422),
        ({"eventType": "a.b", "schema": []}, 422),
        ({"eventType": "a.b", "schema": {}, "version": 0}, 422),
        ({"eventType": "a.b", "schema": {}, "version": True}, 422),
        ({"eventType": "a.b", "schema": {}, "version": 1.5}, 422),
        ({"eventType": "a.b", "schema": {}, "status": "gone"}, 422),
        ({"eventType": "a.b", "schema": {}, "surprise": 1}, 422),
        ({"eventType": "a.b", "schema": {"$ref": "http://127.0.0.1/x"}}, 422),
        ([], 422),
        ("text", 422),
    ],
)
def test_a_registration_that_makes_no_sense_is_refused_with_its_place(
    api: Server, body: Any, status: int
) -> None:
    answered = api.admin.post("/admin/event-schemas", json=body)

    assert answered.status_code == status
    assert answered.json()["errors"]


@pytest.mark.parametrize("body", [b"", b"{", b'{"eventType":"a.b","eventType":"a.c"}', b"\xff"])
def test_an_admin_body_outside_the_json_profile_is_400(api: Server, body: bytes) -> None:
    for path in ("/admin/event-schemas", "/admin/dead-letters/redrive", "/admin/tokens"):
        answered = api.admin.post(path, content=body, headers={"Content-Type": "application/json"})
        assert answered.status_code == 400


@pytest.mark.parametrize(
    "query", ["status=gone", "limit=x", "offset=x", "surprise=1", "limit=1&limit=2"]
)
def test_a_list_of_schemas_refuses_parameters_it_does_not_know(api: Server, query: str) -> None:
    assert api.admin.get(f"/admin/event-schemas?{query}").status_code == 400


def test_registering_is_itself_an_event_recorded_once(api: Server) -> None:
    event_type = name()
    register(api, event_type)
    register(api, event_type)
    register(api, event_type, status="deprecated")

    found = [p for p in acts(api, "penstock.schema.registered") if p["eventType"] == event_type]

    assert [p["status"] for p in found] == ["deprecated", "active"]
    assert all(p["actor"] == "admin" for p in found)


# Dead letters.


def refused(api: Server, body: bytes) -> str:
    answered = api.admin.post(
        "/v1/events", content=body, headers={"Content-Type": "application/json"}
    )
    letter_id: str = answered.json()["deadLetterId"]
    return letter_id


def test_a_dead_letter_has_every_member_of_the_contract(api: Server) -> None:
    body = json.dumps(event(type=name(), source="a.b", id="e-1")).encode()
    letter_id = refused(api, body)
    refused(api, body)

    listed = api.admin.get("/admin/dead-letters", params={"source": "a.b"}).json()["data"]

    (found,) = (each for each in listed["deadLetters"] if each["id"] == letter_id)
    assert found["reason"] == "type_unknown"
    assert found["pointer"] == "/type"
    assert found["source"] == "a.b"
    assert found["via"] == "http"
    assert found["count"] == 2
    assert base64.b64decode(found["raw"]) == body
    assert found["firstSeenAt"] <= found["lastSeenAt"]
    assert found["detail"]
    assert set(listed["page"]) == {"nextCursor", "hasMore", "limit"}


def test_raw_is_withheld_from_who_may_not_read_it(api: Server) -> None:
    letter_id = refused(api, b'{"secret":"do not show"')
    path = f"/admin/dead-letters/{letter_id}"

    with api.as_scopes(Scope.EVENTS_READ) as reader:
        withheld = reader.get(path).json()["data"]["deadLetter"]
        listed = reader.get("/admin/dead-letters").json()["data"]["deadLetters"]
    with api.as_scopes(Scope.EVENTS_READ, Scope.EVENTS_READ_RAW) as raw_reader:
        shown = raw_reader.get(path).json()["data"]["deadLetter"]

    assert withheld["raw"] is None
    assert withheld["rawBytes"] == 23
    assert all(each["raw"] is None for each in listed)
    assert base64.b64decode(shown["raw"]) == b'{"secret":"do not show"'


def test_dead_letters_are_grouped_by_cause(api: Server) -> None:
    source = f"s{uuid.uuid4().hex[:8]}.api"
    for n in range(3):
        refused(api, json.dumps(event(type="no.such.type", source=source, id=f"g{n}")).encode())

    groups = api.admin.get("/admin/dead-letters/groups", params={"source": source}).json()

    (group,) = groups["data"]["groups"]
    assert (group["reason"], group["type"], group["messages"]) == (
        "type_unknown",
        "no.such.type",
        3,
    )
    assert group["sampleId"]


def test_pages_of_dead_letters_show_each_letter_once(api: Server) -> None:
    source = f"s{uuid.uuid4().hex[:8]}.api"
    bad = [event(type="no.such.type", source=source, id=f"p{n}") for n in range(7)]
    assert api.admin.post("/v1/events", json=bad).status_code == 207

    seen: list[str] = []
    path = f"/admin/dead-letters?source={source}&limit=3"
    while path:
        answered = api.admin.get(path)
        seen += [each["id"] for each in answered.json()["data"]["deadLetters"]]
        path = answered.links.get("next", {}).get("url", "")

    assert len(seen) == len(set(seen)) == 7


@pytest.mark.parametrize(
    "query",
    ["limit=x", "cursor=forged", "surprise=1", "redriven=perhaps", "reason=", "reason=a&reason=b"],
)
def test_a_list_of_dead_letters_refuses_what_it_cannot_run(api: Server, query: str) -> None:
    answered = api.admin.get(f"/admin/dead-letters?{query}")

    assert (answered.status_code, answered.json()["code"]) == (400, "query_invalid")


def test_a_redrive_says_first_what_would_happen_then_does_it_and_twice_is_harmless(
    api: Server,
) -> None:
    event_type, source = name(), f"s{uuid.uuid4().hex[:8]}.api"
    for n in range(2):
        publish(api, event_type, {"amount": n}, id=f"{source}-{n}", source=source)
    publish(api, event_type, {"amount": "none"}, id=f"{source}-bad", source=source)
    register(api, event_type)
    body = {"filter": {"source": source, "reason": "type_unknown"}}

    trial = api.admin.post("/admin/dead-letters/redrive", json={**body, "dryRun": True})
    nothing_yet = api.admin.get(f"/admin/events/{source}-0")
    first = api.admin.post("/admin/dead-letters/redrive", json=body)
    second = api.admin.post("/admin/dead-letters/redrive", json=body)

    assert trial.status_code == 200
    tried = trial.json()["data"]
    assert (tried["wouldPass"], tried["wouldFail"], tried["redriven"]) == (2, 1, 0)
    assert [each["reason"] for each in tried["stillFailing"]] == ["payload_invalid"]
    assert nothing_yet.status_code == 404
    assert first.json()["data"]["redriven"] == 2
    assert second.json()["data"]["redriven"] == 0
    assert api.admin.get(f"/admin/events/{source}-0").status_code == 200
    assert acts(api, "penstock.dead-letters.redriven")[0]["filter"] == body["filter"]


def test_letters_can_be_redriven_by_id(api: Server) -> None:
    event_type = name()
    answered = publish(api, event_type, {"amount": 1}, id=f"{event_type}-1")
    register(api, event_type)

    done = api.admin.post(
        "/admin/dead-letters/redrive", json={"ids": [answered.json()["deadLetterId"]]}
    )

    assert done.json()["data"]["redriven"] == 1


def test_a_retry_under_its_key_repeats_the_event_that_was_redriven_meanwhile(api: Server) -> None:
    event_type = name()
    key = {"Idempotency-Key": event_type}
    sent = {"type": event_type, "source": "orders.api", "payload": {"amount": 1}}
    refused = api.admin.post("/v1/events", json=sent, headers=key)
    register(api, event_type)
    body = {"ids": [refused.json()["deadLetterId"]]}
    assert api.admin.post("/admin/dead-letters/redrive", json=body).json()["data"]["redriven"] == 1

    again = api.admin.post("/v1/events", json=sent, headers=key)

    assert again.json()["data"]["status"] == "duplicate"
    assert len(acts(api, event_type)) == 1


def test_other_content_under_a_known_key_is_not_let_in_by_a_redrive(api: Server) -> None:
    event_type = name()
    key = {"Idempotency-Key": event_type}
    register(api, event_type)
    sent = {"type": event_type, "source": "orders.api", "payload": {"amount": 1}}
    assert api.admin.post("/v1/events", json=sent, headers=key).status_code == 202
    other = api.admin.post("/v1/events", json={**sent, "payload": {"amount": 2}}, headers=key)

    letter = other.json()["deadLetterId"]
    done = api.admin.post("/admin/dead-letters/redrive", json={"ids": [letter]}).json()["data"]

    assert done["stillFailing"] == [{"id": letter, "reason": "id_conflict"}]
    assert [payload["amount"] for payload in acts(api, event_type)] == [1]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"dryRun": True},
        {"ids": [], "dryRun": True},
        {"ids": ["x"], "filter": {}},
        {"ids": [1]},
        {"filter": {"surprise": 1}},
        {"filter": {}, "dryRun": "yes"},
        {"filter": {}, "dryrun": True},
    ],
)
def test_a_redrive_that_is_not_clear_about_what_is_refused(api: Server, body: Any) -> None:
    assert api.admin.post("/admin/dead-letters/redrive", json=body).status_code in (400, 422)


@pytest.mark.parametrize(
    ("body", "pointer", "detail"),
    [
        ({"ids": ["x"], "dryRun": 1}, "/dryRun", "expected true or false, found something else"),
        ({"filter": {"raeson": "x"}}, "/filter/raeson", "expected no such field, found one"),
        ({"ids": []}, "/ids", "expected at least 1 entries, found 0"),
        ({"ids": [5]}, "/ids/0", "expected text, found something else"),
    ],
)
def test_a_body_of_the_wrong_shape_is_refused_in_our_words_at_its_place(
    api: Server, body: Any, pointer: str, detail: str
) -> None:
    answered = api.admin.post("/admin/dead-letters/redrive", json=body)

    assert (answered.status_code, answered.json()["code"]) == (422, "body_invalid")
    assert answered.json()["errors"] == [{"pointer": pointer, "detail": detail}]


# Tokens.


def test_a_made_token_works_and_its_secret_is_shown_once(api: Server) -> None:
    answered = api.admin.post("/admin/tokens", json={"name": "ci", "scopes": ["events:read"]})

    assert answered.status_code == 201
    made = answered.json()["data"]["token"]
    assert made["secret"].startswith("pst_")
    with api.client(made["secret"]) as client:
        assert client.get("/admin/events").status_code == 200
    listed = api.admin.get("/admin/tokens")
    assert made["id"] in [each["id"] for each in listed.json()["data"]["tokens"]]
    assert made["secret"] not in listed.text
    assert ADMIN not in listed.text


def test_making_and_revoking_a_token_are_events_that_never_hold_the_secret(api: Server) -> None:
    made = api.admin.post("/admin/tokens", json={"name": "x", "scopes": ["events:read"]}).json()
    token = made["data"]["token"]
    for _ in range(2):
        assert api.admin.delete(f"/admin/tokens/{token['id']}").status_code == 200

    for event_type in ("penstock.token.created", "penstock.token.revoked"):
        found = [p for p in acts(api, event_type) if p["tokenId"] == token["id"]]
        assert len(found) == 1
        assert token["secret"] not in json.dumps(found)


def test_nobody_hands_out_more_than_they_have(api: Server) -> None:
    with api.as_scopes(Scope.TOKENS_MANAGE, Scope.EVENTS_READ) as manager:
        allowed = manager.post("/admin/tokens", json={"name": "a", "scopes": ["events:read"]})
        beyond = manager.post("/admin/tokens", json={"name": "b", "scopes": ["admin"]})
        abroad = manager.post(
            "/admin/tokens", json={"name": "c", "scopes": ["events:read"], "tenantId": "acme"}
        )

    assert (allowed.status_code, beyond.status_code, abroad.status_code) == (201, 403, 403)


def test_an_admin_of_a_tenant_neither_sees_nor_revokes_the_tokens_of_others(api: Server) -> None:
    ours = api.admin.post("/admin/tokens", json={"name": "o", "scopes": ["events:read"]}).json()
    token_id = ours["data"]["token"]["id"]
    with api.as_scopes(Scope.ADMIN, tenant_id="acme") as acme:
        listed = acme.get("/admin/tokens").json()["data"]["tokens"]
        revoked = acme.delete(f"/admin/tokens/{token_id}")

    assert {each["tenantId"] for each in listed} == {"acme"}
    assert revoked.status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x"},
        {"name": "", "scopes": ["events:read"]},
        {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["root"]},
        {"name": "x", "scopes": ["events:read"], "tenantId": "Bad Tenant"},
        {"name": "x", "scopes": ["events:read"], "expiresAt": "tomorrow"},
        {"name": "x", "scopes": ["events:read"], "expiresAt": "2030-01-01T00:00:00"},
        {"name": "x", "scopes": ["events:read"], "expiresAt": "2001-01-01T00:00:00Z"},
        {"name": "x", "scopes": ["events:read"], "secret": "mine-mine-mine-mine-mine"},
    ],
)
def test_a_token_that_makes_no_sense_is_refused(api: Server, body: Any) -> None:
    assert api.admin.post("/admin/tokens", json=body).status_code in (400, 422)


def test_an_unknown_token_cannot_be_revoked(api: Server) -> None:
    assert api.admin.delete("/admin/tokens/none").status_code == 404


def test_a_ticket_comes_with_its_end(api: Server) -> None:
    answered = api.admin.post("/v1/ws-tickets")

    assert answered.status_code == 201
    data = answered.json()["data"]
    assert set(data) == {"ticket", "expiresAt"}
    assert api.house.tokens.redeem(data["ticket"]) is not None
