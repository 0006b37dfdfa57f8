"""Stand in front of every HTTP request: who it is meant for, how large it is, what it may see.

    Host, Origin ─ Content-Length, Content-Encoding ──▶ app ──▶ security headers, request id, counts
        403                 413           415            └ anything unforeseen: 500 without details

A pure ASGI middleware. The body is counted while it streams, so a chunked one is cut at the limit
like any other, and nothing is ever unpacked. WebSockets pass: `websocket.py` checks its own.
"""

from __future__ import annotations

import itertools
import re
import secrets
import time
import traceback
from collections.abc import Collection
from dataclasses import dataclass, field

import structlog
from prometheus_client import Counter, Histogram
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.api.origin import allowed_host, allowed_origin
from penstock.api.problems import INTERNAL, RequestRefused, answer
from penstock.health.prometheus import Metrics

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_METHODS = _SAFE | {"POST", "PUT", "PATCH", "DELETE"}
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{8,64}")
_NOTHING_LOADS = b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_HEADERS = (
    (b"content-security-policy", _NOTHING_LOADS),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_PROCESS = secrets.token_hex(6).encode()  # a request's id is this process's and its number
_requests = itertools.count(1)
_log = structlog.get_logger("api")


@dataclass(frozen=True, slots=True)
class _Said:
    """The headers that matter here; a header sent twice is a list of two."""

    host: list[bytes] = field(default_factory=list)
    origin: list[bytes] = field(default_factory=list)
    length: list[bytes] = field(default_factory=list)
    encoding: list[bytes] = field(default_factory=list)
    request_id: list[bytes] = field(default_factory=list)


_FIELDS = {
    b"host": "host", b"origin": "origin", b"content-length": "length",
    b"content-encoding": "encoding", b"x-request-id": "request_id",
}  # fmt: skip


class Edge:
    """What every request passes on its way in and out."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        body_bytes_max: int,
        hosts: Collection[str],
        origins: Collection[str],
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._body_bytes_max = body_bytes_max
        self._hosts = hosts
        self._origins = origins
        self._series: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = _read(scope)
        request_id = _request_id(said)
        structlog.contextvars.bind_contextvars(request_id=request_id.decode())
        scope.setdefault("state", {})["instance"] = f"urn:penstock:request:{request_id.decode()}"
        exchange = _Exchange(receive, send, self._body_bytes_max, request_id)
        begun = time.perf_counter()
        try:
            self._check(scope, said)
            await self._app(scope, exchange.receive, exchange.send)
        except RequestRefused as refused:
            await exchange.answer(scope, refused)
        except ClientDisconnect:
            _log.debug("client_left")
        except Exception as error:  # noqa: BLE001  the last hand: recorded, answered, never shown
            _record(error)
            await exchange.answer(scope, None)
        self._count(scope, exchange.status, time.perf_counter() - begun)

    def _check(self, scope: Scope, said: _Said) -> None:
        """Refuse what is not meant for us, or cannot be taken."""
        port = (scope.get("server") or ("", 0))[1] or 0
        host = said.host[0].decode("latin-1") if len(said.host) == 1 else None
        if not allowed_host(host, self._hosts, port):
            raise RequestRefused(
                403, "host_refused", f"expected a Host of this server, found {str(host)[:80]!r}",
                remedy="Use the address the server printed, or list the name in "
                "PENSTOCK_ALLOWED_HOSTS.",
            )  # fmt: skip
        if scope["method"] not in _SAFE:
            self._check_origin(said, host, port)
        self._check_body(said)

    def _check_origin(self, said: _Said, host: str | None, port: int) -> None:
        origins = [origin.decode("latin-1") for origin in said.origin]
        if len(origins) > 1 or not all(
            allowed_origin(origin, host, self._origins, port) for origin in origins
        ):
            raise RequestRefused(
                403, "origin_refused", f"expected an Origin of our own, found {origins[0][:80]!r}",
                remedy="Open the page from this server, or list its origin in "
                "PENSTOCK_ALLOWED_ORIGINS.",
            )  # fmt: skip

    def _check_body(self, said: _Said) -> None:
        if any(encoding.lower() != b"identity" for encoding in said.encoding):
            raise RequestRefused(
                415, "encoding_unsupported",
                "expected a body without Content-Encoding, found a packed one",
                remedy="Send the body as it is.", headers={"Accept-Encoding": "identity"},
            )  # fmt: skip
        if any(_number(length) > self._body_bytes_max for length in said.length):
            raise too_large(self._body_bytes_max)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path_format", "unmatched")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        series = self._series.get((method, route, status))
        if series is None:
            series = self._metrics.of_request(method, route, status)
            self._series[method, route, status] = series
        series[0].inc()
        series[1].observe(seconds)


class _Exchange:
    """One request and its response as they pass by."""

    def __init__(self, receive: Receive, send: Send, bytes_max: int, request_id: bytes) -> None:
        self._receive = receive
        self._send = send
        self._bytes_max = bytes_max
        self._bytes = 0
        self._request_id = request_id
        self.status = 0

    async def receive(self) -> Message:
        """The next piece of the body, as long as all of it so far is within the limit."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            if self._bytes > self._bytes_max:
                raise too_large(self._bytes_max)
        return message

    async def send(self, message: Message) -> None:
        """Pass the response on, with the headers that every one of them has."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = message["headers"]
            named = {name.lower() for name, _ in own}
            extra = [pair for pair in _HEADERS if pair[0] not in named]
            message["headers"] = [*own, *extra, (b"x-request-id", self._request_id)]
        await self._send(message)

    async def answer(self, scope: Scope, refused: RequestRefused | None) -> None:
        """Answer with a problem, unless an answer is under way already."""
        if self.status:
            return
        problem = INTERNAL if refused is None else refused.problem
        await answer(problem, scope["state"]["instance"])(scope, self._receive, self.send)


def too_large(bytes_max: int) -> RequestRefused:
    """The answer to a body over the limit. The rest of it is not read, so the connection ends."""
    return RequestRefused(
        413, "too_large", f"expected a body of at most {bytes_max} bytes, found a larger one",
        remedy="Send fewer events at once, or raise PENSTOCK_BODY_BYTES_MAX.",
        headers={"Connection": "close"},
    )  # fmt: skip


def _read(scope: Scope) -> _Said:
    said = _Said()
    for name, value in scope["headers"]:
        wanted = _FIELDS.get(name)
        if wanted is not None:
            getattr(said, wanted).append(value)
    return said


def _number(digits: bytes) -> float:
    """The number, however many digits a stranger writes."""
    return float(digits) if digits.isdigit() else 0.0


def _request_id(said: _Said) -> bytes:
    given = said.request_id[0] if len(said.request_id) == 1 else b""
    return given if _REQUEST_ID.fullmatch(given) else b"%b-%d" % (_PROCESS, next(_requests))


def _record(error: Exception) -> None:
    """Log where it failed. Not the error's own words: those may quote what the caller sent."""
    frames = [
        f"{f.filename}:{f.lineno} {f.name}" for f in traceback.extract_tb(error.__traceback__)
    ]
    _log.error("request_failed", error=type(error).__name__, frames=frames[-12:])
