"""Every sentence of the publishing contract holds, over real HTTP."""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any

import httpx
import pytest
from tests.api.support import Server, event

from penstock.base.clock import parse_instant
from penstock.base.ids import is_uuid7


def send(api: Server, body: Any, **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"Content-Type": "application/json", **headers}
    return api.admin.post("/v1/events", content=content, headers=given)


def letter(api: Server, letter_id: str) -> dict[str, Any]:
    found: dict[str, Any] = api.admin.get(f"/admin/dead-letters/{letter_id}").json()
    return found["data"]["deadLetter"]


def stored(api: Server, event_id: str) -> httpx.Response:
    return api.admin.get(f"/admin/events/{event_id}")


def fresh() -> str:
    return f"e-{uuid.uuid4()}"


# One event.


def test_one_event_is_answered_202_with_status_time_and_the_event(api: Server) -> None:
    answered = send(api, event(correlationId="req-1"))

    assert answered.status_code == 202
    data = answered.json()["data"]
    assert set(data) == {"status", "acceptedAt", "event"}
    assert data["status"] == "accepted"
    parse_instant(data["acceptedAt"])
    assert is_uuid7(data["event"]["id"])
    assert data["event"]["correlationId"] == "req-1"


def test_an_accepted_event_can_be_read_back_as_it_was_sent(api: Server) -> None:
    sent = event(id=fresh(), tags={"userId": "u1"}, metadata={"n": 1}, ttl=5000)
    sent["payload"]["note"] = "Grüße, 世界 \u2028"

    assert send(api, sent).status_code == 202

    found = stored(api, sent["id"]).json()["data"]["event"]
    assert {key: found[key] for key in sent} == sent


def test_the_same_event_again_is_a_duplicate_and_kept_once(api: Server) -> None:
    sent = event(id=fresh())

    first, second = send(api, sent), send(api, sent)

    assert [r.json()["data"]["status"] for r in (first, second)] == ["accepted", "duplicate"]
    assert second.status_code == 202


def test_another_event_under_a_known_id_is_refused_and_the_first_one_stays(api: Server) -> None:
    sent = event(id=fresh())
    send(api, sent)

    answered = send(api, {**sent, "correlationId": "other"})

    assert answered.status_code == 422
    assert answered.json()["code"] == "id_conflict"
    assert "correlationId" not in stored(api, sent["id"]).json()["data"]["event"]


def test_an_idempotency_key_makes_a_repeat_without_an_id_a_duplicate(api: Server) -> None:
    key = str(uuid.uuid4())

    first = send(api, event(), **{"Idempotency-Key": key}).json()["data"]
    second = send(api, event(), **{"Idempotency-Key": key}).json()["data"]

    assert (first["status"], second["status"]) == ("accepted", "duplicate")
    assert first["event"]["id"] == second["event"]["id"]


@pytest.mark.parametrize("key", ["", "x" * 256, "with space"])
def test_an_unusable_idempotency_key_is_refused_before_anything_is_stored(
    api: Server, key: str
) -> None:
    answered = send(api, event(), **{"Idempotency-Key": key})

    assert answered.status_code == 400
    assert answered.json()["errors"][0]["pointer"] == "Idempotency-Key"


# Refusals.


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "malformed_json"),
        (b"", "malformed_json"),
        (b"not json", "malformed_json"),
        (b'{"a":1}}', "malformed_json"),
        (b'\xef\xbb\xbf{"type":"a.b"}', "not_utf8"),
        (b'{"type":"\xff"}', "not_utf8"),
        (b'{"type":"a.b","type":"a.c"}', "duplicate_key"),
        (b'{"payload":{"n":1e400}}', "number_out_of_range"),
        (b'{"payload":{"n":9223372036854775808}}', "number_out_of_range"),
        (b'{"payload":' + b"[" * 40 + b"]" * 40 + b"}", "too_deep"),
        (b'{"payload":"\\u0000"}', "nul_character"),
        (b'{"payload":"\\ud800"}', "lone_surrogate"),
        (b'{"payload":[' + b"1," * 30_000 + b"1]}", "too_many_nodes"),
        (b'{"payload":NaN}', "malformed_json"),
    ],
)
def test_a_body_outside_the_json_profile_is_400_and_kept_verbatim(
    api: Server, body: bytes, code: str
) -> None:
    answered = send(api, body)

    assert answered.status_code == 400
    assert answered.headers["content-type"] == "application/problem+json"
    problem = answered.json()
    assert problem["code"] == code
    assert base64.b64decode(letter(api, problem["deadLetterId"])["raw"]) == body


@pytest.mark.parametrize(
    ("sent", "code", "pointer"),
    [
        (event(type="Bad Type"), "envelope_invalid", "/type"),
        (event(source=""), "envelope_invalid", "/source"),
        (event(occurredAt="yesterday"), "envelope_invalid", "/occurredAt"),
        (event(surprise=1), "envelope_invalid", "/surprise"),
        (event(tags={"a": 1}), "envelope_invalid", "/tags/a"),
        (event(type="metastore.record.updatd"), "type_unknown", "/type"),
        (event(schemaVersion=99), "version_unknown", "/schemaVersion"),
        (event(payload={"namespace": 1}), "payload_invalid", "/payload"),
        (event(tenantId="acme"), "tenant_mismatch", "/tenantId"),
        ([], "envelope_invalid", ""),
        ({"events": []}, "envelope_invalid", ""),
        (7, "envelope_invalid", ""),
        ("text", "envelope_invalid", ""),
    ],
)
def test_an_envelope_type_or_payload_that_does_not_fit_is_422(
    api: Server, sent: Any, code: str, pointer: str
) -> None:
    answered = send(api, sent)

    problem = answered.json()
    assert (answered.status_code, problem["code"]) == (422, code)
    assert problem["errors"][0]["pointer"].startswith(pointer)
    assert problem["detail"]
    assert problem["remedy"]


def test_an_unknown_type_is_refused_with_the_nearest_known_name(api: Server) -> None:
    answered = send(api, event(type="metastore.record.updatd"))

    assert "metastore.record.updated" in answered.json()["detail"]


def test_a_payload_over_256_kb_is_413_and_kept(api: Server) -> None:
    sent = event()
    sent["payload"]["blob"] = "x" * 300_000

    answered = send(api, sent)

    assert answered.status_code == 413
    assert answered.json()["code"] in ("payload_too_large", "too_large")
    kept = letter(api, answered.json()["deadLetterId"])
    assert kept["rawBytes"] > 300_000


def test_a_refusal_has_every_member_of_the_contract(api: Server) -> None:
    problem = send(api, event(type="Bad Type")).json()

    assert set(problem) == {
        "type", "title", "status", "code", "detail", "remedy", "errors", "deadLetterId", "instance",
    }  # fmt: skip
    assert all(set(error) == {"pointer", "detail"} for error in problem["errors"])


# Batches.


def batch_of(wrap: str, events: list[Any]) -> Any:
    return {"events": events} if wrap == "events" else events


@pytest.mark.parametrize("wrap", ["array", "events"])
def test_a_batch_that_is_all_accepted_or_duplicate_is_202_in_the_order_sent(
    api: Server, wrap: str
) -> None:
    known = event(id=fresh())
    send(api, known)
    events = [event(id=fresh()), known, event()]

    answered = send(api, batch_of(wrap, events))

    assert answered.status_code == 202
    results = answered.json()["data"]["results"]
    assert [r["index"] for r in results] == [0, 1, 2]
    assert [r["status"] for r in results] == ["accepted", "duplicate", "accepted"]
    assert [r["id"] for r in results[:2]] == [events[0]["id"], known["id"]]
    assert is_uuid7(results[2]["id"])


@pytest.mark.parametrize("wrap", ["array", "events"])
def test_one_bad_item_makes_207_and_never_fails_the_others(api: Server, wrap: str) -> None:
    events = [event(id=fresh()), event(type="no.such.type"), 7, event(id=fresh())]

    answered = send(api, batch_of(wrap, events))

    assert answered.status_code == 207
    results = answered.json()["data"]["results"]
    assert [r["status"] for r in results] == ["accepted", "rejected", "rejected", "accepted"]
    assert results[1]["problem"]["code"] == "type_unknown"
    assert results[1]["problem"]["status"] == 422
    assert all("problem" not in results[i] for i in (0, 3))
    assert all(stored(api, events[i]["id"]).status_code == 200 for i in (0, 3))


def test_an_item_outside_the_profile_is_refused_alone_and_kept_byte_for_byte(api: Server) -> None:
    good = json.dumps(event(id=fresh())).encode()
    bad = b'{"type": "a.b",   "payload": {"n": 1e999}}'

    answered = send(api, b"[" + good + b" , " + bad + b"]")

    assert answered.status_code == 207
    first, second = answered.json()["data"]["results"]
    assert first["status"] == "accepted"
    assert second["problem"]["code"] == "number_out_of_range"
    assert second["problem"]["status"] == 400
    assert base64.b64decode(letter(api, second["problem"]["deadLetterId"])["raw"]) == bad


def test_a_batch_that_is_no_json_is_refused_whole(api: Server) -> None:
    good = json.dumps(event(id="in-a-broken-batch")).encode()

    for body in (b"[" + good + b",", b"[" + good + b", {x}]", b"[" + good + b",]"):
        answered = send(api, body)
        assert (answered.status_code, answered.json()["code"]) == (400, "malformed_json")
    assert stored(api, "in-a-broken-batch").status_code == 404


def test_the_same_id_twice_in_one_batch_is_one_event(api: Server) -> None:
    same = event(id=fresh())

    results = send(api, [same, same, {**same, "correlationId": "x"}]).json()["data"]["results"]

    assert [r["status"] for r in results] == ["accepted", "duplicate", "rejected"]
    assert results[2]["problem"]["code"] == "id_conflict"


def test_a_batch_over_the_limit_of_events_is_413_and_stores_nothing(api: Server) -> None:
    most = api.house.settings.batch_events_max
    events = [event(id="over-the-limit"), *([1] * most)]

    assert send(api, events).status_code == 413
    assert stored(api, "over-the-limit").status_code == 404


def test_a_large_batch_is_taken_whole(api: Server) -> None:
    events = [event(id=fresh()) for _ in range(1_500)]

    answered = send(api, events)

    assert answered.status_code == 202
    assert {r["status"] for r in answered.json()["data"]["results"]} == {"accepted"}


def test_an_idempotency_key_covers_every_item_of_a_batch(api: Server) -> None:
    key, events = str(uuid.uuid4()), [event(), event()]

    first = send(api, events, **{"Idempotency-Key": key}).json()["data"]["results"]
    second = send(api, events, **{"Idempotency-Key": key}).json()["data"]["results"]

    assert [r["status"] for r in first] == ["accepted", "accepted"]
    assert [r["status"] for r in second] == ["duplicate", "duplicate"]
    assert [r["id"] for r in first] == [r["id"] for r in second]


# CloudEvents.


def cloud_event(**attributes: Any) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": fresh(),
        "type": "metastore.record.updated",
        "source": "metastore.api",
        "data": event()["payload"],
        **attributes,
    }


def test_a_structured_cloud_event_is_stored_as_an_event(api: Server) -> None:
    sent = cloud_event(time="2026-01-31T10:30:00Z", correlationid="req-9")

    answered = send(api, sent, **{"Content-Type": "application/cloudevents+json; charset=utf-8"})

    assert answered.status_code == 202
    found = stored(api, sent["id"]).json()["data"]["event"]
    assert found["payload"] == sent["data"]
    assert found["occurredAt"] == "2026-01-31T10:30:00.000Z"
    assert found["correlationId"] == "req-9"


def test_a_batch_of_cloud_events_is_answered_per_item(api: Server) -> None:
    events = [cloud_event(), cloud_event(type="no.such.type")]

    answered = send(api, events, **{"Content-Type": "application/cloudevents-batch+json"})

    assert answered.status_code == 207
    results = answered.json()["data"]["results"]
    assert [r["status"] for r in results] == ["accepted", "rejected"]


def binary(api: Server, body: bytes, **attributes: str) -> httpx.Response:
    headers = {f"ce-{name}": value for name, value in attributes.items()}
    return send(api, body, **{"ce-specversion": "1.0", **headers})


def test_a_binary_cloud_event_is_stored_as_an_event(api: Server) -> None:
    event_id = fresh()
    body = json.dumps(event()["payload"]).encode()

    answered = binary(api, body, id=event_id, type="metastore.record.updated", source="m.api")

    assert answered.status_code == 202
    found = stored(api, event_id).json()["data"]["event"]
    assert (found["source"], found["payload"]) == ("m.api", event()["payload"])


@pytest.mark.parametrize(
    ("body", "code", "status"),
    [
        (b"{", "malformed_json", 400),
        (b'{"n":1e400}', "number_out_of_range", 400),
        (b"[" * 31 + b"]" * 31 + b" ", "payload_invalid", 422),
        (b"[" * 32 + b"]" * 32, "too_deep", 400),
        (b'1,"source":"forged.api"', "malformed_json", 400),
    ],
)
def test_bad_data_of_a_binary_cloud_event_is_refused_and_kept(
    api: Server, body: bytes, code: str, status: int
) -> None:
    answered = binary(api, body, id=fresh(), type="metastore.record.updated", source="m.api")

    assert (answered.status_code, answered.json()["code"]) == (status, code)
    assert body in base64.b64decode(letter(api, answered.json()["deadLetterId"])["raw"])


@pytest.mark.parametrize(
    ("attributes", "pointer"),
    [
        ({"type": "metastore.record.updated", "source": "m.api", "subject": "%ff"}, "/subject"),
        ({"source": "m.api"}, "/type"),
    ],
)
def test_bad_headers_of_a_binary_cloud_event_are_named_and_kept(
    api: Server, attributes: dict[str, str], pointer: str
) -> None:
    answered = binary(api, b'{"kept":"data"}', id=fresh(), **attributes)

    problem = answered.json()
    assert (answered.status_code, problem["code"]) == (422, "envelope_invalid")
    assert problem["errors"][0]["pointer"] == pointer
    kept = json.loads(base64.b64decode(letter(api, problem["deadLetterId"])["raw"]))
    assert kept["source"] == "m.api"


def test_binary_data_that_is_no_json_is_422(api: Server) -> None:
    answered = send(
        api, b"<xml/>", **{"Content-Type": "text/xml", "ce-specversion": "1.0", "ce-id": "x"}
    )

    assert answered.status_code == 422
    assert answered.json()["errors"][0]["pointer"] == "/datacontenttype"
