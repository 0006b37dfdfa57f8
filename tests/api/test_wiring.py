"""The live stream hangs on the same door: tokens, tickets, origins, and events as they come."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.support import ADMIN, Server, event, opened, running, settings_for
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from penstock.access.token import Scope

BEARER = {"Authorization": f"Bearer {ADMIN}"}


def socket(api: Server, query: str = "", **options: Any) -> ClientConnection:
    return connect(f"ws://127.0.0.1:{api.port}/ws{query}", open_timeout=10, proxy=None, **options)


def frames(live: ClientConnection) -> Iterator[dict[str, Any]]:
    while True:
        yield json.loads(live.recv(timeout=10))


def first(live: ClientConnection, kind: str) -> dict[str, Any]:
    return next(frame for frame in frames(live) if frame["type"] == kind)


def test_a_published_event_arrives_at_the_socket_as_the_contract_says(api: Server) -> None:
    source = f"s{uuid.uuid4().hex[:8]}.api"
    with socket(api, f"?source={source}", additional_headers=BEARER) as live:
        assert first(live, "connection.ack")

        api.admin.post("/v1/events", json=event(source=source, id=f"{source}-1"))

        frame = first(live, "workflow.event.received")
    assert set(frame) == {"type", "data", "emittedAt"}
    assert frame["data"]["event"]["id"] == f"{source}-1"
    assert frame["data"]["event"]["severity"] == "info"


def test_the_socket_takes_the_token_as_a_subprotocol(api: Server) -> None:
    with socket(api, subprotocols=[Subprotocol(f"bearer.{ADMIN}")]) as live:
        assert first(live, "connection.ack")


def test_a_ticket_opens_the_socket_once(api: Server) -> None:
    ticket = api.admin.post("/v1/ws-tickets").json()["data"]["ticket"]
    with socket(api, f"?ticket={ticket}") as live:
        assert first(live, "connection.ack")

    with pytest.raises(InvalidStatus) as refused:
        socket(api, f"?ticket={ticket}")
    assert refused.value.response.status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 401), ({"Authorization": "Bearer " + "x" * 40}, 401)],
)
def test_the_socket_lets_nobody_in_without_a_token(
    api: Server, headers: dict[str, str], status: int
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        socket(api, additional_headers=headers)

    assert refused.value.response.status_code == status


def test_the_socket_needs_the_scope_to_read(api: Server) -> None:
    headers = {"Authorization": f"Bearer {api.token(Scope.EVENTS_PUBLISH)}"}

    with pytest.raises(InvalidStatus) as refused:
        socket(api, additional_headers=headers)

    assert refused.value.response.status_code == 403


def test_a_page_of_another_origin_opens_no_socket_even_with_a_token(api: Server) -> None:
    with pytest.raises(InvalidStatus) as refused:
        socket(api, additional_headers=BEARER, origin=Origin("https://evil.example"))

    assert refused.value.response.status_code == 403


def test_server_sent_events_are_the_same_events(api: Server) -> None:
    source = f"s{uuid.uuid4().hex[:8]}.api"
    api.admin.post("/v1/events", json=event(source=source, id=f"{source}-1"))

    with api.admin.stream(
        "GET", "/v1/events/stream", params={"source": source, "after": "0"}
    ) as answered:
        assert answered.headers["content-type"].startswith("text/event-stream")
        data = next(
            line for line in answered.iter_lines() if line.startswith("data:") and source in line
        )

    assert json.loads(data.removeprefix("data:"))["data"]["event"]["id"] == f"{source}-1"


def test_metrics_count_the_clients_of_the_stream(api: Server) -> None:
    with socket(api, additional_headers=BEARER) as live:
        first(live, "connection.ack")

        text = api.admin.get("/metrics").text

    (line,) = (each for each in text.splitlines() if each.startswith("penstock_stream_clients "))
    assert float(line.split()[1]) >= 1


def test_with_authentication_off_the_socket_is_open_to_our_own_pages_only(
    database: str, tmp_path: Path
) -> None:
    settings = settings_for(database, tmp_path, auth="off")
    with opened(settings) as house, running(house, database) as api:
        with socket(api) as live:
            assert first(live, "connection.ack")
        with pytest.raises(InvalidStatus) as refused:
            socket(api, origin=Origin("https://evil.example"))
        assert refused.value.response.status_code == 403
