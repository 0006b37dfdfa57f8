"""Hold HttpSink to its promises against a real server that answers, fails, resets and hangs."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import struct
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

import orjson
import pytest

from penstock.base.backoff import Backoff
from penstock.base.errors import (
    AccessDenied,
    EventRefused,
    NotFound,
    QueueUnavailable,
    SettingsInvalid,
)
from penstock.envelope.envelope import JsonObject
from penstock.publish.port import AsyncSink, Outcome, Result
from penstock.publish.publisher import Publisher
from penstock.transport.over_http import HttpSink

Behaviour: TypeAlias = "Callable[[Handler, bytes], None]"
Send: TypeAlias = Callable[[HttpSink, list[JsonObject]], list[Result]]


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: Any
    connection: tuple[str, int]


@dataclass
class Script:
    """What the server does, request by request; after that it accepts everything."""

    url: str = ""
    behaviours: list[Behaviour] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.script.requests.append(
            Request(self.path, headers, orjson.loads(body), self.client_address)
        )
        behaviours = self.script.behaviours
        (behaviours.pop(0) if behaviours else accept)(self, body)

    def answer(self, status: int, tree: object, **headers: str) -> None:
        content = tree if isinstance(tree, bytes) else orjson.dumps(tree)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # connections that break are what these tests are about


def accept(handler: Handler, body: bytes) -> None:
    said = orjson.loads(body)
    if isinstance(said, dict):
        data: object = {"status": "accepted", "acceptedAt": "2026-01-01T00:00:00Z", "event": said}
    else:
        results = [{"index": n, "id": e["id"], "status": "accepted"} for n, e in enumerate(said)]
        data = {"results": results}
    handler.answer(202, {"data": data})


def say(status: int, tree: object = None, **headers: str) -> Behaviour:
    return lambda handler, _: handler.answer(status, tree, **headers)


def reset(handler: Handler, body: bytes) -> None:
    """Break the connection so that the client sees a reset, not an end."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
    handler.connection.close()


def hang(handler: Handler, body: bytes) -> None:
    handler.script.over.wait()
    handler.close_connection = True


def stop_half_way(handler: Handler, body: bytes) -> None:
    handler.send_response(202)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"data"')
    handler.wfile.flush()
    handler.close_connection = True


def close_after(handler: Handler, body: bytes) -> None:
    accept(handler, body)
    handler.close_connection = True


@pytest.fixture
def script() -> Iterator[Script]:
    script = Script()
    server = Server(("127.0.0.1", 0), type("Scripted", (Handler,), {"script": script}))
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield script
    script.over.set()
    server.shutdown()
    server.server_close()
    thread.join()


def blocking(sink: HttpSink, events: list[JsonObject]) -> list[Result]:
    try:
        return sink.send(events)
    finally:
        sink.close()


def awaiting(sink: HttpSink, events: list[JsonObject]) -> list[Result]:
    async def run() -> list[Result]:
        try:
            return await sink.asend(events)
        finally:
            await sink.aclose()

    return asyncio.run(run())


both_faces = pytest.mark.parametrize("send", [blocking, awaiting])


def events(count: int) -> list[JsonObject]:
    return [{"id": f"evt-{n}", "type": "a.b", "source": "s"} for n in range(count)]


@both_faces
def test_one_event_is_posted_as_an_object_with_the_token(script: Script, send: Send) -> None:
    (result,) = send(HttpSink(script.url + "/", "pst_secret\n"), events(1))

    (request,) = script.requests
    assert request.path == "/v1/events"
    assert request.body == events(1)[0]
    assert request.headers["authorization"] == "Bearer pst_secret"
    assert request.headers["content-type"] == "application/json"
    assert result == Outcome("evt-0", "accepted", "2026-01-01T00:00:00Z", events(1)[0])


@both_faces
def test_without_a_token_none_is_sent(script: Script, send: Send) -> None:
    send(HttpSink(script.url), events(1))

    assert "authorization" not in script.requests[0].headers


@both_faces
def test_many_events_are_posted_as_arrays_of_at_most_a_thousand(script: Script, send: Send) -> None:
    results = send(HttpSink(script.url), events(2500))

    assert [len(request.body) for request in script.requests] == [1000, 1000, 500]
    assert [r.id for r in results if isinstance(r, Outcome)] == [f"evt-{n}" for n in range(2500)]


@both_faces
def test_connections_are_kept(script: Script, send: Send) -> None:
    send(HttpSink(script.url), events(2500))

    assert len({request.connection for request in script.requests}) == 1


@both_faces
def test_no_events_are_no_request(script: Script, send: Send) -> None:
    assert send(HttpSink(script.url), []) == []
    assert script.requests == []


@both_faces
def test_a_path_in_the_address_is_kept(script: Script, send: Send) -> None:
    send(HttpSink(f"{script.url}/behind/proxy/"), events(1))

    assert script.requests[0].path == "/behind/proxy/v1/events"


@both_faces
def test_a_refused_event_is_a_value_with_its_reason(script: Script, send: Send) -> None:
    problem = {"code": "type_unknown", "detail": "no such type", "deadLetterId": "dl-9"}
    script.behaviours = [say(422, problem, content_type="application/problem+json")]

    (result,) = send(HttpSink(script.url), events(1))

    assert isinstance(result, EventRefused)
    assert (result.reason, result.dead_letter_id) == ("type_unknown", "dl-9")


@both_faces
def test_a_batch_with_a_bad_event_answers_for_each(script: Script, send: Send) -> None:
    results = [
        {"index": 0, "id": "evt-0", "status": "duplicate"},
        {"index": 1, "id": "evt-1", "status": "rejected", "problem": {"code": "type_unknown"}},
        {"index": 2, "id": "evt-2", "status": "accepted"},
    ]
    script.behaviours = [say(207, {"data": {"results": results}})]

    found = send(HttpSink(script.url), events(3))

    assert [r.reason if isinstance(r, EventRefused) else r.status for r in found] == [
        "duplicate",
        "type_unknown",
        "accepted",
    ]


@both_faces
@pytest.mark.parametrize("status", [429, 503, 507])
def test_not_now_is_unavailable_with_its_retry_after(
    script: Script, send: Send, status: int
) -> None:
    script.behaviours = [say(status, {"detail": "not now"}, retry_after="7")]

    with pytest.raises(QueueUnavailable, match="not now") as caught:
        send(HttpSink(script.url), events(1))

    assert caught.value.retry_after_s == 7


@both_faces
@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_token_is_access_denied(script: Script, send: Send, status: int) -> None:
    script.behaviours = [say(status, {"code": "access_denied", "detail": "who are you"})]

    with pytest.raises(AccessDenied, match="who are you"):
        send(HttpSink(script.url, "pst_wrong"), events(1))


@both_faces
def test_a_redirect_is_not_followed_with_the_token(script: Script, send: Send) -> None:
    script.behaviours = [say(307, b"", location=f"{script.url}/elsewhere")]

    with pytest.raises(NotFound):
        send(HttpSink(script.url, "pst_secret"), events(1))

    assert len(script.requests) == 1


@both_faces
@pytest.mark.parametrize("trouble", [reset, stop_half_way])
def test_a_connection_that_breaks_is_unavailable(
    script: Script, send: Send, trouble: Behaviour
) -> None:
    script.behaviours = [trouble]

    with pytest.raises(QueueUnavailable, match=r"expected an answer from http://127") as caught:
        send(HttpSink(script.url), events(1))

    assert caught.value.retry_after_s == 0


@both_faces
def test_a_server_that_hangs_is_left_after_the_time_limit(script: Script, send: Send) -> None:
    script.behaviours = [hang]

    with pytest.raises(QueueUnavailable, match="ReadTimeout"):
        send(HttpSink(script.url, timeout_s=0.1), events(1))


@both_faces
def test_a_port_where_nobody_listens_is_unavailable(send: Send) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    with pytest.raises(QueueUnavailable, match="ConnectError"):
        send(HttpSink(f"http://127.0.0.1:{port}"), events(1))


@both_faces
def test_a_server_that_goes_away_half_way_leaves_the_results_so_far(
    script: Script, send: Send
) -> None:
    script.behaviours = [accept, reset]

    assert len(send(HttpSink(script.url), events(2500))) == 1000


@both_faces
def test_a_server_with_a_smaller_limit_gets_smaller_batches(script: Script, send: Send) -> None:
    script.behaviours = [say(413, {"code": "too_large", "detail": "too large"})]

    results = send(HttpSink(script.url), events(10))

    assert [len(request.body) for request in script.requests] == [10, 5, 5]
    assert all(isinstance(result, Outcome) for result in results)


def test_a_kept_connection_that_the_server_closed_costs_one_retry_at_most(script: Script) -> None:
    script.behaviours = [close_after] * 4
    waits: list[float] = []
    with_retries = Publisher(HttpSink(script.url), source="s", sleep=waits.append)

    for _ in range(4):
        assert with_retries.publish("a.b").status == "accepted"

    assert len({str(request.body["id"]) for request in script.requests}) == 4
    assert len(waits) <= 3


def test_a_publisher_gets_through_every_kind_of_trouble_with_one_id(script: Script) -> None:
    script.behaviours = [
        reset,
        say(503, {"detail": "starting"}, retry_after="3"),
        stop_half_way,
        say(429, b"", retry_after="1"),
    ]
    waits: list[float] = []
    publisher = Publisher(
        HttpSink(script.url), source="s", backoff=Backoff(jitter=0), sleep=waits.append
    )

    outcome = publisher.publish("a.b", payload={"n": 1})

    assert outcome.status == "accepted"
    assert {request.body["id"] for request in script.requests} == {outcome.id}
    assert all(request.body == script.requests[0].body for request in script.requests)
    assert waits == pytest.approx([0.1, 3.2, 0.4, 1.8])


def test_one_sink_serves_many_threads(script: Script) -> None:
    sink = HttpSink(script.url)
    found: list[str] = []

    def publish(name: str) -> None:
        for n in range(10):
            (result,) = sink.send([{"id": f"{name}-{n}"}])
            assert isinstance(result, Outcome)
            found.append(result.id)

    threads = [threading.Thread(target=publish, args=(str(n),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sink.close()

    assert sorted(found) == sorted(f"{t}-{n}" for t in range(8) for n in range(10))


def test_tasks_that_publish_at_the_same_time_share_requests(script: Script) -> None:
    async def run() -> list[list[Result]]:
        sink = HttpSink(script.url, "pst_secret")
        try:
            return await asyncio.gather(*(sink.asend([event]) for event in events(40)))
        finally:
            await sink.aclose()

    answered = asyncio.run(run())

    assert [result.id for (result,) in answered if isinstance(result, Outcome)] == [
        str(event["id"]) for event in events(40)
    ]
    assert len(script.requests) == 3


def test_one_sink_serves_one_event_loop_after_another(script: Script) -> None:
    sink = HttpSink(script.url)

    for _ in range(3):
        (result,) = asyncio.run(sink.asend(events(1)))
        assert isinstance(result, Outcome)


def test_connections_of_an_event_loop_that_is_over_are_let_go_of(script: Script) -> None:
    sink, over = HttpSink(script.url, "t"), list[weakref.ref[asyncio.AbstractEventLoop]]()

    async def once() -> None:
        over.append(weakref.ref(asyncio.get_running_loop()))
        await sink.asend([{"id": "e"}])

    for _ in range(4):
        asyncio.run(once())
    gc.collect()

    assert [each() is None for each in over] == [True, True, True, False]
    sink.close()


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_process_has_connections_of_its_own(script: Script) -> None:
    sink = HttpSink(script.url)
    sink.send(events(1))

    child = os.fork()
    if child == 0:
        sent = sink.send(events(1))
        sink.close()
        os._exit(0 if isinstance(sent[0], Outcome) else 1)
    _, status = os.waitpid(child, 0)
    sink.send(events(1))
    sink.close()

    assert status == 0
    first, forked, last = (request.connection for request in script.requests)
    assert first == last != forked


def test_a_closed_sink_sends_nothing(script: Script) -> None:
    sink = HttpSink(script.url)
    sink.close()

    with pytest.raises(RuntimeError, match="closed"):
        sink.send(events(1))
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(sink.asend(events(1)))
    assert script.requests == []


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)

    assert isinstance(blocking(HttpSink(script.url), events(1))[0], Outcome)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("ftp://127.0.0.1", "found scheme 'ftp'"),
        ("127.0.0.1:8700", "PENSTOCK_URL"),
        ("http://", "host ''"),
        ("http://user:pw@127.0.0.1", "expected an address without credentials"),
        ("http://127.0.0.1:port", "PENSTOCK_URL: expected an address"),
    ],
)
def test_an_address_that_cannot_be_one_is_refused_at_once(url: str, complaint: str) -> None:
    with pytest.raises(SettingsInvalid, match=complaint):
        HttpSink(url)


@pytest.mark.parametrize("token", ["tökén", "a\nb", "a\x00"])
def test_a_token_that_no_header_can_carry_is_refused_at_once(token: str) -> None:
    with pytest.raises(SettingsInvalid, match="PENSTOCK_TOKEN") as caught:
        HttpSink("http://127.0.0.1:1", token)

    assert token not in str(caught.value)


def test_the_sink_can_be_awaited() -> None:
    assert isinstance(HttpSink("http://127.0.0.1:1"), AsyncSink)
