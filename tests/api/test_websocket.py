"""The WebSocket lets in whom it should, and then sends every event once, in order, to everybody."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import psycopg
import pytest
from tests.api.live import Live, open_live
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, NegotiationError
from websockets.typing import Subprotocol

from penstock.access.token import Scope
from penstock.base.on_postgres import EmbeddedPostgres

RECEIVED = "workflow.event.received"


@pytest.fixture(scope="module")
def live(server: EmbeddedPostgres, template: str) -> Iterator[Live]:
    with open_live(server, template) as running:
        yield running


@pytest.fixture
def tenant(request: pytest.FixtureRequest) -> str:
    """A tenant of the test's own, so that tests share a server and not their events."""
    return f"t{abs(hash(request.node.name))}"


def run(test: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await test

    asyncio.run(limited())


def opened(live: Live, token: str | None, query: str = "", **options: Any) -> connect:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return connect(
        f"ws://127.0.0.1:{live.port}/ws{query}",
        additional_headers=headers | options.pop("headers", {}), compression=None, proxy=None,
        open_timeout=10, close_timeout=0.2, **options,
    )  # fmt: skip


async def frame(client: ClientConnection) -> dict[str, Any]:
    """The next frame that is no heartbeat."""
    while True:
        found: dict[str, Any] = json.loads(await client.recv())
        if found["type"] != "heartbeat":
            return found


async def frame_of(client: ClientConnection, kind: str) -> dict[str, Any]:
    while True:
        found = await frame(client)
        if found["type"] == kind:
            return found


async def positions(client: ClientConnection, until: int) -> list[int]:
    """The positions of the events received up to one position."""
    found: list[int] = []
    while not found or found[-1] < until:
        event = (await frame_of(client, RECEIVED))["data"]["event"]
        found.append(int(event["position"]))
    return found


async def stored(live: Live, *arguments: Any, **options: Any) -> int:
    return await asyncio.to_thread(live.commit, *arguments, **options)


# Being let in.


def refused(live: Live, token: str | None, query: str = "", **options: Any) -> tuple[int, str]:
    """The status and the code with which the handshake was refused."""
    found: list[tuple[int, str]] = []

    async def attempt() -> None:
        with pytest.raises(InvalidStatus) as caught:
            async with opened(live, token, query, **options):
                pass
        response = caught.value.response
        assert response.headers["Content-Type"] == "application/problem+json"
        problem = json.loads(response.body or b"{}")
        assert problem["remedy"]
        found.append((response.status_code, problem["code"]))

    run(attempt())
    return found[0]


def test_nobody_is_let_in_without_a_token(live: Live) -> None:
    assert refused(live, None) == (401, "access_denied")


def test_nobody_is_let_in_with_a_wrong_token(live: Live, tenant: str) -> None:
    assert refused(live, "pst_" + "x" * 43) == (401, "access_denied")
    assert refused(live, live.token(tenant)[:-1]) == (401, "access_denied")


def test_a_wrong_token_is_not_made_up_for_by_a_ticket(live: Live, tenant: str) -> None:
    info, _ = live.tokens.create("t", tenant, [Scope.EVENTS_READ], by="test")
    ticket = live.tokens.ticket(info.id)

    assert refused(live, "pst_" + "x" * 43, f"?ticket={ticket}") == (401, "access_denied")


def test_a_token_without_the_scope_is_refused(live: Live, tenant: str) -> None:
    token = live.token(tenant, Scope.EVENTS_PUBLISH)

    assert refused(live, token) == (403, "access_denied")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://evil.console.example"]
)
def test_a_page_from_elsewhere_is_refused(live: Live, tenant: str, origin: str) -> None:
    token = live.token(tenant)

    assert refused(live, token, headers={"Origin": origin}) == (403, "origin_refused")


@pytest.mark.parametrize("origin", ["http://localhost:{port}", "https://console.example"])
def test_our_own_page_and_a_listed_one_are_let_in(live: Live, tenant: str, origin: str) -> None:
    async def test() -> None:
        mine = {"Origin": origin.format(port=live.port)}
        async with opened(live, live.token(tenant), headers=mine) as client:
            assert (await frame(client))["type"] == "connection.ack"

    run(test())


def handshake(live: Live, *headers: str) -> bytes:
    """Send a bare handshake with a frame right behind it, and return all that comes back."""
    key = base64.b64encode(b"0123456789abcdef").decode()
    lines = [
        "GET /ws HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket",
        "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}", *headers, "", "",
    ]  # fmt: skip
    ping = b"\x81\x84\x00\x00\x00\x00ping"
    with socket.create_connection(("127.0.0.1", live.port), timeout=5) as bare:
        bare.sendall("\r\n".join(lines).encode() + ping)
        answer = b""
        while piece := bare.recv(4096):
            answer += piece
    return answer


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "localhost:1", ""])
def test_a_name_that_is_not_ours_is_refused(live: Live, tenant: str, host: str) -> None:
    token = live.token(tenant)

    answer = handshake(
        live, f"Host: {host.format(port=live.port)}", f"Authorization: Bearer {token}"
    )

    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"host_refused" in answer


def test_what_a_stranger_sends_along_is_never_answered(live: Live) -> None:
    answer = handshake(live, f"Host: 127.0.0.1:{live.port}")

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"pong" not in answer
    assert b"connection.ack" not in answer


def test_nothing_is_compressed_for_anybody(live: Live, tenant: str) -> None:
    token = live.token(tenant)

    async def test() -> None:
        async with connect(
            f"ws://127.0.0.1:{live.port}/ws",
            additional_headers={"Authorization": f"Bearer {token}"},
            compression="deflate",
            proxy=None,
        ) as client:
            assert client.response is not None
            assert "Sec-WebSocket-Extensions" not in client.response.headers

    run(test())


def test_a_ticket_lets_in_once(live: Live, tenant: str) -> None:
    info, _ = live.tokens.create("t", tenant, [Scope.EVENTS_READ], by="test")
    query = f"?ticket={live.tokens.ticket(info.id)}"

    async def test() -> None:
        async with opened(live, None, query) as client:
            assert (await frame(client))["type"] == "connection.ack"

    run(test())
    assert refused(live, None, query) == (401, "access_denied")


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (["penstock.v1.json", "bearer.{token}"], "penstock.v1.json"),
        (["bearer.{token}", "penstock.v1.json"], "penstock.v1.json"),
        (["bearer.{token}", "cloudevents.json"], "cloudevents.json"),
        (["bearer.{token}", "something.else"], "bearer.{token}"),
        (["bearer.{token}"], "bearer.{token}"),
    ],
)
def test_a_token_may_come_as_a_subprotocol(
    live: Live, tenant: str, offered: list[str], chosen: str
) -> None:
    token = live.token(tenant)
    words = [Subprotocol(word.format(token=token)) for word in offered]

    async def test() -> None:
        async with opened(live, None, subprotocols=words) as client:
            assert client.subprotocol == chosen.format(token=token)
            await client.recv()

    run(test())


def test_without_a_subprotocol_of_ours_none_is_chosen(live: Live, tenant: str) -> None:
    async def test() -> None:
        words = [Subprotocol("something.else")]
        try:
            async with opened(live, live.token(tenant), subprotocols=words) as client:
                assert client.subprotocol is None
        except NegotiationError:
            pytest.fail("a subprotocol was chosen that was not offered")

    run(test())


@pytest.mark.parametrize(
    "query",
    ["?colour=red", "?jsonPath=$.a", "?limit=5", "?after=x", "?after=999999999", "?severity=loud"],
)
def test_a_filter_that_cannot_be_run_is_refused(live: Live, tenant: str, query: str) -> None:
    assert refused(live, live.token(tenant), query) == (400, "query_invalid")


# Streaming.


def test_the_first_frame_acknowledges_and_names_the_position(live: Live, tenant: str) -> None:
    async def test() -> None:
        last = await stored(live, tenant)
        live.wait(lambda: live.hub.position >= last)
        async with opened(live, live.token(tenant)) as client:
            ack = await frame(client)

        assert ack["type"] == "connection.ack"
        assert int(ack["data"]["position"]) >= last
        assert ack["data"]["now"] == ack["emittedAt"]

    run(test())


@pytest.mark.parametrize("ping", ["ping", '{"type":"ping"}'])
def test_a_ping_is_answered(live: Live, tenant: str, ping: str) -> None:
    async def test() -> None:
        async with opened(live, live.token(tenant)) as client:
            await client.send(ping)
            assert "now" in (await frame_of(client, "pong"))["data"]

    run(test())


def test_an_event_arrives_within_a_second_of_its_commit(live: Live, tenant: str) -> None:
    async def test() -> None:
        async with opened(live, live.token(tenant)) as client:
            await frame(client)
            begun = time.monotonic()
            position = await stored(live, tenant, payload='{"n": 1}', correlation_id="req-1")

            received = await frame(client)

        assert time.monotonic() - begun < 1
        assert received["type"] == RECEIVED
        event = received["data"]["event"]
        assert event["position"] == str(position)
        assert event["type"] == "order.placed"
        assert event["payload"] == {"n": 1}
        assert event["correlationId"] == "req-1"
        assert {"severity", "links", "derived", "receivedAt"} <= set(event)
        assert received["emittedAt"].endswith("Z")

    run(test())


def test_a_known_type_sends_its_own_frame_first(live: Live, tenant: str) -> None:
    async def test() -> None:
        async with opened(live, live.token(tenant)) as client:
            await frame(client)
            await stored(live, tenant, type="filestore.node.uploaded", payload='{"nodeId": 7}')
            typed, general = await frame(client), await frame(client)

        assert typed["type"] == "filestore.node.uploaded"
        assert typed["data"] == {"nodeId": 7}
        assert general["type"] == RECEIVED

    run(test())


def test_under_cloudevents_every_frame_is_a_cloudevent(live: Live, tenant: str) -> None:
    async def test() -> None:
        words = [Subprotocol("cloudevents.json")]
        async with opened(live, live.token(tenant), subprotocols=words) as client:
            await stored(live, tenant, payload='{"n": 1}')
            events = [json.loads(await client.recv()) for _ in range(2)]
            while events[-1]["type"] == "penstock.stream.heartbeat":
                events[-1] = json.loads(await client.recv())

        assert [event["specversion"] for event in events] == ["1.0", "1.0"]
        assert events[0]["type"] == "penstock.stream.connection.ack"
        assert events[1]["type"] == "order.placed"
        assert events[1]["data"] == {"n": 1}

    run(test())


def test_nobody_sees_another_tenants_events(live: Live, tenant: str) -> None:
    async def test() -> None:
        async with opened(live, live.token(tenant), "?after=0") as client:
            await stored(live, f"{tenant}-other", 3)
            mine = await stored(live, tenant)
            assert await positions(client, mine) == [mine]

    run(test())


def test_clients_resume_anywhere_while_writers_write_without_gap_or_repetition(
    live: Live, tenant: str
) -> None:
    rng = random.Random(11)
    first = live.commit(tenant, 500) - 500

    def write(seed: int) -> None:
        mine = random.Random(seed)
        for _ in range(40):
            live.commit(tenant if mine.random() < 0.8 else f"{tenant}-other", mine.randrange(1, 40))

    async def follow(after: int, last: Callable[[], int | None]) -> list[int]:
        """Read, dropping the connection now and then and resuming, until the last event."""
        found: list[int] = []
        while True:
            resume = found[-1] if found else after
            async with opened(live, token, f"?after={resume}") as client:
                for _ in range(rng.randrange(100, 2_000)):
                    event = (await frame_of(client, RECEIVED))["data"]["event"]
                    found.append(int(event["position"]))
                    if found[-1] == last():
                        return found
                client.transport.abort()  # as a network does, not as a polite client

    token = live.token(tenant)
    end: list[int] = []

    async def test() -> None:
        writers = [asyncio.to_thread(write, seed) for seed in range(3)]
        starts = [first, first + 1, first + 250, first + 499, first + 500]
        clients = [
            asyncio.create_task(follow(start, lambda: end[0] if end else None)) for start in starts
        ]
        await asyncio.gather(*writers)
        end.append(await stored(live, tenant))
        seen = await asyncio.gather(*clients)

        everything = await asyncio.to_thread(live.positions, tenant)
        assert len(everything) > 2_000
        for start, found in zip(starts, seen, strict=True):
            assert found == [position for position in everything if position > start]

    run(test())


def stalled_socket(live: Live) -> socket.socket:
    """A connection that takes very little before it is full."""
    bare = socket.socket()
    bare.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 * 1024)
    bare.connect(("127.0.0.1", live.port))
    bare.setblocking(False)
    return bare


async def read_again(client: ClientConnection, last: int) -> tuple[list[int], list[Any]]:
    """What a client that had stalled gets: events, and word that it lagged."""
    found: list[int] = []
    lags: list[Any] = []
    while not found or found[-1] < last:
        one = await frame(client)
        if one["type"] == RECEIVED:
            found.append(int(one["data"]["event"]["position"]))
        elif one["type"] == "lagged":
            assert not found or found[-1] <= int(one["data"]["from"])
            lags.append(one["data"])
    return found, lags


def test_clients_that_do_not_read_delay_nobody_and_lose_nothing(live: Live, tenant: str) -> None:
    payload = json.dumps({"text": "x" * 2_000})

    async def test() -> None:
        token = live.token(tenant)
        lively = await opened(live, token)
        stalled = [
            await opened(live, token, sock=stalled_socket(live), max_queue=1) for _ in range(5)
        ]
        await frame(lively)
        slowest = 0.0
        last = 0
        for _ in range(12):
            begun = time.monotonic()
            last = await stored(live, tenant, 100, payload=payload)
            assert len(await positions(lively, last)) == 100
            slowest = max(slowest, time.monotonic() - begun)
        held = [s.bytes_held for s in tuple(live.hub._everybody)]

        assert slowest < 2
        assert max(held) <= 1024 * 1024
        everything = await asyncio.to_thread(live.positions, tenant)
        for found, lags in await asyncio.gather(*(read_again(client, last) for client in stalled)):
            assert found == everything
            assert len(lags) == 1
            assert lags[0]["resume"] == f"/ws?after={lags[0]['from']}"
            assert lags[0]["dropped"] > 0
        for client in [lively, *stalled]:
            await client.close()

    run(test())


@pytest.mark.parametrize(
    ("query", "matching"),
    [
        ("?type=asset.produced", {"type": "asset.produced"}),
        ("?type=asset.*", {"type": "asset.expired"}),
        ("?type=asset.**&type=order.x", {"type": "order.x"}),
        ("?source=other.api", {"source": "other.api"}),
        ("?severity=error,critical", {"severity": "critical"}),
        ("?correlationId=req-1", {"correlation_id": "req-1"}),
        ("?tag.issueId=42", {"tags": '{"issueId": "42"}'}),
    ],
)
def test_a_filter_chooses_on_the_server(
    live: Live, tenant: str, query: str, matching: dict[str, str]
) -> None:
    async def test() -> None:
        before = await stored(live, tenant, 2)
        wanted = [await stored(live, tenant, **matching)]
        async with opened(live, live.token(tenant), f"{query}&after={before - 2}") as client:
            assert await positions(client, wanted[0]) == wanted
            await frame_of(client, "caught.up")
            await stored(live, tenant, 3)
            wanted = [await stored(live, tenant, **matching)]
            assert await positions(client, wanted[0]) == wanted

    run(test())


def test_a_client_changes_its_filter_while_it_is_connected(live: Live, tenant: str) -> None:
    async def test() -> None:
        async with opened(live, live.token(tenant), "?type=a.b") as client:
            await frame(client)
            await client.send('{"type":"filter","data":{"type":["c.*"],"tags":{"k":"v"}}}')
            applied = await frame_of(client, "filter.applied")
            await stored(live, tenant, type="a.b")
            await stored(live, tenant, type="c.d")
            wanted = await stored(live, tenant, type="c.d", tags='{"k": "v"}')

            assert await positions(client, wanted) == [wanted]
            assert int(applied["data"]["after"]) < wanted

    run(test())


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"filter","data":{"jsonPath":"$.a"}}',
        '{"type":"filter"}',
        '{"type":"publish"}',
        "{",
        "hello",
    ],
)
def test_what_cannot_be_understood_is_answered_and_the_stream_goes_on(
    live: Live, tenant: str, text: str
) -> None:
    async def test() -> None:
        async with opened(live, live.token(tenant)) as client:
            await client.send(text)
            error = await frame_of(client, "error")
            await client.send("ping")
            await frame_of(client, "pong")

        assert error["data"]["code"] in {"query_invalid", "not_in_profile"}
        assert error["data"]["remedy"]

    run(test())


def test_a_quiet_stream_shows_signs_of_life_and_how_far_it_has_come(
    live: Live, tenant: str
) -> None:
    async def test() -> None:
        async with opened(live, live.token(tenant)) as client:
            await client.recv()
            last = await stored(live, f"{tenant}-other")
            while True:
                beat = json.loads(await client.recv())
                assert beat["type"] == "heartbeat"
                if int(beat["data"]["position"]) >= last:
                    return

    run(test())


# Being cut off.


async def closed(client: ClientConnection) -> int:
    """Read to the end; the code the server closed with."""
    try:
        while True:
            await client.recv()
    except ConnectionClosed as end:
        return -1 if end.rcvd is None else end.rcvd.code


@pytest.mark.parametrize("way", ["bearer", "ticket"])
def test_revoking_a_token_closes_its_sockets_within_five_seconds(
    live: Live, tenant: str, way: str
) -> None:
    info, token = live.tokens.create("t", tenant, [Scope.EVENTS_READ], by="test")

    async def test() -> None:
        query = f"?ticket={live.tokens.ticket(info.id)}" if way == "ticket" else ""
        client = await opened(live, None if way == "ticket" else token, query)
        other = await opened(live, live.token(tenant))
        begun = time.monotonic()
        await asyncio.to_thread(live.tokens.revoke, info.id)

        assert await closed(client) == 4401
        assert time.monotonic() - begun < 5
        await other.send("ping")
        await frame_of(other, "pong")
        await other.close()

    run(test())


def test_revoking_ends_even_a_stream_that_is_not_read(live: Live, tenant: str) -> None:
    info, token = live.tokens.create("t", tenant, [Scope.EVENTS_READ], by="test")

    async def test() -> None:
        client = await opened(live, token, sock=stalled_socket(live), max_queue=1)
        await stored(live, tenant, 200, payload=json.dumps({"text": "x" * 5_000}))
        mine = [s for s in tuple(live.hub._everybody) if s.token_id == info.id]
        assert len(mine) == 1
        await asyncio.to_thread(live.tokens.revoke, info.id)
        await asyncio.to_thread(live.wait, lambda: mine[0] not in live.hub._everybody, 5)
        client.transport.abort()

    run(test())


def test_talking_too_much_closes_the_socket(live: Live, tenant: str) -> None:
    async def test() -> None:
        client = await opened(live, live.token(tenant))
        for _ in range(11):
            await client.send("ping")

        assert await closed(client) == 1008

    run(test())


def test_a_frame_over_64_kb_closes_the_socket(live: Live, tenant: str) -> None:
    async def test() -> None:
        client = await opened(live, live.token(tenant))
        await client.send("x" * (64 * 1024 + 1))

        assert await closed(client) == 1009

    run(test())


def test_a_binary_frame_closes_the_socket(live: Live, tenant: str) -> None:
    async def test() -> None:
        client = await opened(live, live.token(tenant))
        await client.send(b"ping")

        assert await closed(client) == 1003

    run(test())


def test_a_client_that_leaves_is_forgotten(live: Live, tenant: str) -> None:
    async def test() -> None:
        before = live.hub.stats().clients
        async with opened(live, live.token(tenant)) as client:
            await frame(client)
            assert live.hub.stats().clients == before + 1
        await asyncio.to_thread(live.wait, lambda: live.hub.stats().clients == before)

    run(test())


def test_losing_every_database_connection_costs_nobody_an_event(live: Live, tenant: str) -> None:
    async def test() -> None:
        async with opened(live, live.token(tenant)) as client:
            await frame(client)
            with psycopg.connect(live.dsn, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            last = await stored(live, tenant, 3)

            assert await positions(client, last) == [last - 2, last - 1, last]

    run(test())


def test_a_server_that_stops_says_so(server: EmbeddedPostgres, template: str) -> None:
    async def follow(live: Live, opened_: threading.Event) -> int:
        async with asyncio.timeout(20):
            client = await opened(live, live.token("default"))
            await frame(client)
            opened_.set()
            return await closed(client)

    codes: list[int] = []
    with open_live(server, template) as live:
        ready = threading.Event()
        thread = threading.Thread(target=lambda: codes.append(asyncio.run(follow(live, ready))))
        thread.start()
        assert ready.wait(10)
    thread.join(10)

    assert codes == [1012]
