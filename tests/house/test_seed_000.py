"""The acceptance criteria of the ingress ticket, in its words, through the real parts."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from tests.prove.product import Product
from websockets.sync.client import connect

from penstock import Publisher
from penstock.base.ids import uuid7

pytestmark = pytest.mark.prove
ROOT = Path(__file__).parents[2]


def record(key: str, **changes: object) -> dict[str, object]:
    return {
        "type": "metastore.record.updated",
        "source": "metastore.api",
        "payload": {"namespace": "feature-flags", "key": key, "version": 12},
        **changes,
    }


def test_services_can_publish_events_through_the_shared_library_and_see_them_recorded_in_workflow_events_with_accurate_metadata(  # noqa: E501
    product: Product,
) -> None:
    with Publisher(url=product.url, token=product.token) as publisher:
        sent = publisher.publish(
            "metastore.record.updated",
            source="metastore.api",
            payload={"namespace": "flags", "key": "sdk", "version": 1},
            correlation_id="req-sdk",
            tags={"team": "search"},
            metadata={"host": "a1"},
        )
    product.wait(
        lambda: product.client.get(f"/admin/events/{sent.id}").status_code == 200, "it is stored"
    )

    event = product.get(f"/admin/events/{sent.id}")["event"]
    assert event["payload"] == {"namespace": "flags", "key": "sdk", "version": 1}
    assert event["correlationId"] == "req-sdk"
    assert event["tags"] == {"team": "search"}
    assert event["metadata"] == {"host": "a1"}
    assert event["occurredAt"] == sent.event["occurredAt"]
    assert int(event["position"]) > 0
    assert event["links"] == {"metastoreRecords": [{"namespace": "flags", "key": "sdk"}]}


def test_invalid_payloads_are_rejected_with_clear_logs_and_land_in_a_dlq(product: Product) -> None:
    raw = json.dumps(record("bad", payload={"namespace": 7})).encode()
    answer = product.client.post(
        "/v1/events", content=raw, headers={"Content-Type": "application/json"}
    )

    assert answer.status_code == 422
    problem = answer.json()
    assert problem["code"] == "payload_invalid"
    assert {e["pointer"] for e in problem["errors"]} >= {"/payload/namespace"}
    letter = product.get(f"/admin/dead-letters/{problem['deadLetterId']}")["deadLetter"]
    assert base64.b64decode(letter["raw"]) == raw
    assert (letter["reason"], letter["via"]) == ("payload_invalid", "http")
    log = (product.folder / "data" / "logs" / "serve.log").read_text()
    (line,) = [x for x in log.splitlines() if problem["deadLetterId"] in x]
    assert json.loads(line)["reason"] == "payload_invalid"


def test_invalid_messages_on_the_queue_land_in_the_dlq_past_the_door(product: Product) -> None:
    spool = product.folder / "foreign.jsonl"
    lines = [json.dumps(record("foreign", id=uuid7())), "{oops", json.dumps({"type": "a.b"})]
    spool.write_text("\n".join(lines) + "\n")
    product.command("queue", "write", str(spool))
    product.wait_until_settled()

    letters = product.get("/admin/dead-letters", via="queue")["deadLetters"]
    assert {(letter["reason"], base64.b64decode(letter["raw"])) for letter in letters} >= {
        ("malformed_json", b"{oops"),
        ("envelope_invalid", b'{"type": "a.b"}'),
    }


def test_valid_events_are_streamed_to_websocket_clients(product: Product) -> None:
    event_id = uuid7()
    address = product.url.replace("http", "ws") + "/ws"
    headers = {"Authorization": f"Bearer {product.token}"}
    with connect(address, additional_headers=headers) as socket:
        assert json.loads(socket.recv(10))["type"] == "connection.ack"
        socket.send("ping")
        product.client.post("/v1/events", json=record("streamed", id=event_id))
        frames = []
        while not frames or frames[-1].get("data", {}).get("event", {}).get("id") != event_id:
            frames.append(json.loads(socket.recv(15)))

    assert "pong" in {frame["type"] for frame in frames}
    assert frames[-1]["type"] == "workflow.event.received"
    assert frames[-1]["data"]["event"]["severity"] == "info"


def test_admin_endpoint_returns_recent_events_and_supports_pagination_and_filters(
    product: Product,
) -> None:
    mark = uuid7()
    events = [record(f"page-{n}", correlationId=mark) for n in range(7)]
    assert product.client.post("/v1/events", json=events).status_code == 202
    product.wait(
        lambda: len(product.get("/admin/events", correlationId=mark)["events"]) == 7, "all stored"
    )

    seen, cursor = [], None
    while True:
        params = {"correlationId": mark, "limit": 3, **({"cursor": cursor} if cursor else {})}
        data = product.get("/admin/events", **params)
        seen.extend(event["payload"]["key"] for event in data["events"])
        cursor = data["page"]["nextCursor"]
        if not data["page"]["hasMore"]:
            break
    assert seen == [f"page-{n}" for n in reversed(range(7))]
    filtered = {"correlationId": mark, "type": "metastore.*.updated", "source": "metastore.api"}
    path = '$.key == "page-3"'
    found = product.get("/admin/events", **filtered, jsonPath=path)["events"]
    assert [event["payload"]["key"] for event in found] == ["page-3"]


def test_documentation_reflects_the_envelope_contract_and_publishing_steps_for_internal_teams() -> (
    None
):
    page = (ROOT / "docs" / "events.md").read_text()

    for field in (
        "id",
        "type",
        "source",
        "occurredAt",
        "payload",
        "correlationId",
        "ttl",
        "metadata",
    ):
        assert f"| `{field}` |" in page
    for step in ("registered type", "Publisher()", "/v1/events", "202", "Retry-After"):
        assert step in page
