"""Server-sent events carry the same stream as the WebSocket, with the position as their id."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import httpx
import pytest
from tests.api.live import Live, open_live

from penstock.access.token import Scope
from penstock.api.sse import write_event
from penstock.base.on_postgres import EmbeddedPostgres
from penstock.stream.frames import Frame

RECEIVED = "workflow.event.received"


@pytest.fixture(scope="module")
def live(server: EmbeddedPostgres, template: str) -> Iterator[Live]:
    with open_live(server, template) as running:
        yield running


@pytest.fixture
def tenant(request: pytest.FixtureRequest) -> str:
    return f"t{abs(hash(request.node.name))}"


@dataclass
class Sent:
    """One server-sent event as a browser understands it."""

    event: str
    data: Any
    id: str | None


class Stream:
    """Reads the stream as a browser does."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.comments: list[str] = []
        self.last_id: str | None = None
        self.retry: str | None = None
        self._events = self._parse()

    def next(self) -> Sent:
        return next(self._events)

    def next_of(self, kind: str) -> Sent:
        return next(event for event in self._events if event.event == kind)

    def positions(self, until: int) -> list[int]:
        found: list[int] = []
        while not found or found[-1] < until:
            found.append(int(self.next_of(RECEIVED).data["data"]["event"]["position"]))
        return found

    def _parse(self) -> Iterator[Sent]:
        fields: dict[str, str] = {}
        for line in self.response.iter_lines():
            if line.startswith(":"):
                self.comments.append(line)
            elif line:
                name, _, value = line.partition(": ")
                assert name not in fields
                fields[name] = value
            else:
                self.last_id = fields.get("id", self.last_id)
                self.retry = fields.get("retry", self.retry)
                if "data" in fields:
                    yield Sent(fields["event"], json.loads(fields["data"]), fields.get("id"))
                fields = {}


@contextmanager
def streaming(live: Live, token: str, query: str = "", **headers: str) -> Iterator[Stream]:
    address = f"http://127.0.0.1:{live.port}/v1/events/stream{query}"
    sent = {"Authorization": f"Bearer {token}"} | {
        k.replace("_", "-"): v for k, v in headers.items()
    }
    with httpx.stream("GET", address, headers=sent, timeout=10, trust_env=False) as response:
        assert response.status_code == 200
        yield Stream(response)


def test_a_frame_becomes_one_event_with_its_position_as_id() -> None:
    assert write_event(Frame("a.b", b'{"x":1}', 7)) == b'id: 7\nevent: a.b\ndata: {"x":1}\n\n'
    assert write_event(Frame("a.b", b'{"x":1}')) == b'event: a.b\ndata: {"x":1}\n\n'


def test_a_heartbeat_is_a_comment_that_moves_the_position() -> None:
    assert write_event(Frame("heartbeat", b"{}", 7)) == b": heartbeat\nid: 7\n\n"


def test_the_stream_begins_with_an_acknowledgement_and_how_soon_to_retry(
    live: Live, tenant: str
) -> None:
    with streaming(live, live.token(tenant)) as stream:
        ack = stream.next()

    assert stream.response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert stream.response.headers["cache-control"] == "no-store"
    assert stream.retry == "2000"
    assert ack.event == "connection.ack"
    assert ack.id == ack.data["data"]["position"]


def test_an_event_arrives_with_its_position_as_id(live: Live, tenant: str) -> None:
    with streaming(live, live.token(tenant)) as stream:
        stream.next()
        position = live.commit(tenant, payload='{"text": "a\\nb"}')
        received = stream.next()

    assert received.event == RECEIVED
    assert received.id == str(position)
    assert received.data["type"] == RECEIVED
    assert received.data["data"]["event"]["position"] == str(position)
    assert received.data["data"]["event"]["payload"] == {"text": "a\nb"}


def test_a_typed_event_comes_first_and_has_no_id(live: Live, tenant: str) -> None:
    with streaming(live, live.token(tenant)) as stream:
        stream.next()
        live.commit(tenant, type="filestore.node.uploaded", payload='{"nodeId": 7}')
        typed, general = stream.next(), stream.next()

    assert (typed.event, typed.id) == ("filestore.node.uploaded", None)
    assert general.event == RECEIVED
    assert general.id is not None


def test_a_reconnecting_client_goes_on_after_its_last_event(live: Live, tenant: str) -> None:
    token = live.token(tenant)
    first = live.commit(tenant, 10) - 9
    with streaming(live, token, f"?after={first - 1}") as stream:
        assert stream.positions(first + 3) == [first, first + 1, first + 2, first + 3]
        last_id = stream.last_id or str(first + 3)
    last = live.commit(tenant, 5)

    # A browser repeats the address it was given first; Last-Event-ID is the newer of the two.
    with streaming(live, token, f"?after={first - 1}", Last_Event_ID=last_id) as stream:
        found = stream.positions(last)

    assert found == [p for p in live.positions(tenant) if p > int(last_id)]


def test_resuming_while_a_writer_writes_misses_and_repeats_nothing(live: Live, tenant: str) -> None:
    token = live.token(tenant)
    start = live.commit(tenant, 50) - 50
    end: list[int] = []

    def write() -> None:
        for _ in range(40):
            live.commit(tenant, 25)
        end.append(live.commit(tenant))

    writer = threading.Thread(target=write)
    writer.start()
    found: list[int] = []
    while not end or found[-1] != end[0]:
        resume = str(found[-1] if found else start)
        with streaming(live, token, Last_Event_ID=resume) as stream:
            for _ in range(300):
                found.append(int(stream.next_of(RECEIVED).id or 0))
                if end and found[-1] == end[0]:
                    break
    writer.join()

    assert found == [p for p in live.positions(tenant) if p > start]


def test_history_ends_with_caught_up(live: Live, tenant: str) -> None:
    last = live.commit(tenant, 3)
    with streaming(live, live.token(tenant), f"?after={last - 3}") as stream:
        kinds = [stream.next().event for _ in range(5)]

    assert kinds == ["connection.ack", RECEIVED, RECEIVED, RECEIVED, "caught.up"]


def test_a_quiet_stream_beats_and_its_id_moves_on(live: Live, tenant: str) -> None:
    with streaming(live, live.token(tenant), "?type=no.such") as stream:
        stream.next()
        live.commit(tenant, type="other.thing")
        last = live.commit(tenant, type="other.thing")
        reader = threading.Thread(target=lambda: next(stream._events, None), daemon=True)
        reader.start()

        live.wait(lambda: stream.last_id == str(last))
        assert ": heartbeat" in stream.comments
        live.commit(tenant, type="no.such")
        reader.join(10)


def test_a_filter_chooses_on_the_server(live: Live, tenant: str) -> None:
    with streaming(live, live.token(tenant), "?type=asset.*&severity=error") as stream:
        stream.next()
        live.commit(tenant, type="asset.produced")
        live.commit(tenant, severity="error")
        wanted = live.commit(tenant, type="asset.produced", severity="error")

        assert stream.positions(wanted) == [wanted]


@pytest.mark.parametrize("query", ["?after=x", "?jsonPath=$.a", "?colour=red", "?after=99999999"])
def test_a_request_that_cannot_be_served_is_refused(live: Live, tenant: str, query: str) -> None:
    token = live.token(tenant)

    answer = httpx.get(
        f"http://127.0.0.1:{live.port}/v1/events/stream{query}",
        headers={"Authorization": f"Bearer {token}"},
        trust_env=False,
    )

    assert answer.status_code == 400
    assert answer.json()["code"] == "query_invalid"


def test_a_client_that_does_not_read_is_told_and_loses_nothing(live: Live, tenant: str) -> None:
    token = live.token(tenant)
    before = live.hub.stats().lagged
    with socket.socket() as bare:
        bare.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 * 1024)
        bare.connect(("127.0.0.1", live.port))
        bare.settimeout(10)
        bare.sendall(
            f"GET /v1/events/stream HTTP/1.1\r\nHost: 127.0.0.1:{live.port}\r\n"
            f"Authorization: Bearer {token}\r\n\r\n".encode()
        )
        heard = bare.recv(1)
        last = 0
        for _ in range(40):
            last = live.commit(tenant, 25, payload=json.dumps({"text": "x" * 2_000}))
        live.wait(lambda: live.hub.stats().lagged > before)
        while f"id: {last}\nevent: {RECEIVED}\n".encode() not in heard:
            heard += bare.recv(65536)

    lines = heard.decode().splitlines()
    ids = [
        int(line.removeprefix("id: "))
        for line, following in pairwise(lines)
        if line.startswith("id: ") and following == f"event: {RECEIVED}"
    ]
    assert ids == live.positions(tenant)
    assert lines.count("event: lagged") == 1


def test_revoking_the_token_ends_the_stream_with_the_reason(live: Live, tenant: str) -> None:
    info, token = live.tokens.create("t", tenant, [Scope.EVENTS_READ], by="test")
    with streaming(live, token) as stream:
        stream.next()
        live.tokens.revoke(info.id)
        error = stream.next_of("error")
        rest = list(stream._events)

    assert error.data["data"]["code"] == "access_denied"
    assert rest == []


def test_a_client_that_leaves_is_forgotten(live: Live, tenant: str) -> None:
    before = live.hub.stats().clients
    with streaming(live, live.token(tenant)) as stream:
        stream.next()
        assert live.hub.stats().clients == before + 1

    live.wait(lambda: live.hub.stats().clients == before)


def test_a_server_that_stops_ends_the_stream(server: EmbeddedPostgres, template: str) -> None:
    with open_live(server, template) as running:
        ready, ended = threading.Event(), threading.Event()

        def follow() -> None:
            with streaming(running, running.token("default")) as stream:
                stream.next()
                ready.set()
                list(stream._events)
                ended.set()

        reader = threading.Thread(target=follow, daemon=True)
        reader.start()
        assert ready.wait(10)
    reader.join(10)

    assert ended.is_set()
