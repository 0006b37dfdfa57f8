"""Send events to a Penstock server: POST {url}/v1/events, over connections that are kept.

`send` blocks, `asend` is awaited; both hold the same conversation (publish/conversation.py). Tasks
that publish at the same time share requests (publish/together.py). A process that was forked, and
an event loop that was started later, get connections of their own, because neither can share a
socket with another.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from collections.abc import Sequence
from functools import cache
from ipaddress import ip_address
from typing import NamedTuple, TypedDict
from weakref import WeakKeyDictionary

import httpx

from penstock.base.clock import Clock, SystemClock
from penstock.base.errors import QueueUnavailable, SettingsInvalid
from penstock.envelope.envelope import JsonObject
from penstock.publish.answer import Answer
from penstock.publish.conversation import Conversation
from penstock.publish.port import Result
from penstock.publish.together import Together

_CONNECT_S = 5.0
_LIMITS = httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=30.0)


class _Options(TypedDict):
    base_url: httpx.URL
    headers: dict[str, str]
    timeout: httpx.Timeout
    limits: httpx.Limits
    trust_env: bool
    verify: ssl.SSLContext


class _Side(NamedTuple):
    """What one event loop sends with."""

    client: httpx.AsyncClient
    together: Together


class HttpSink:
    """Sends to one server. Threads and tasks may share it."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout_s: float = 30.0,
        clock: Clock | None = None,
    ) -> None:
        address = _address(url)
        self._options: _Options = {
            "base_url": address,
            "headers": _headers(token),
            "timeout": httpx.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s)),
            "limits": _LIMITS,
            "trust_env": not _is_loopback(address),
            "verify": _trust(address.scheme),
        }
        self._clock = clock or SystemClock()
        self._is_closed = False
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._client: httpx.Client | None = None
        self._sides: WeakKeyDictionary[asyncio.AbstractEventLoop, _Side] = WeakKeyDictionary()

    def send(self, events: Sequence[JsonObject]) -> list[Result]:
        """One answer per event; fewer when the server went away half-way."""
        talk = Conversation(events)
        while (body := talk.body) is not None:
            talk.hear(self._post(body))
        return talk.results

    async def asend(self, events: Sequence[JsonObject]) -> list[Result]:
        """As `send`, awaited."""
        return await self._side().together.send(events)

    async def _converse(self, events: Sequence[JsonObject]) -> list[Result]:
        talk = Conversation(events)
        while (body := talk.body) is not None:
            talk.hear(await self._apost(body))
        return talk.results

    def _post(self, body: bytes) -> Answer | QueueUnavailable:
        try:
            return self._heard(self._blocking().post("/v1/events", content=body))
        except httpx.RequestError as error:
            return self._unreachable(error)

    async def _apost(self, body: bytes) -> Answer | QueueUnavailable:
        try:
            return self._heard(await self._side().client.post("/v1/events", content=body))
        except httpx.RequestError as error:
            return self._unreachable(error)

    def _heard(self, response: httpx.Response) -> Answer:
        return Answer(
            status=response.status_code,
            body=response.content,
            at=self._clock.now(),
            retry_after=response.headers.get("retry-after"),
        )

    def _unreachable(self, error: httpx.RequestError) -> QueueUnavailable:
        said, address = f"{type(error).__name__} {error}".strip(), self._options["base_url"]
        return QueueUnavailable(f"expected an answer from {address}, found {said}", retry_after_s=0)

    def _blocking(self) -> httpx.Client:
        self._check_process()
        with self._lock:
            if self._client is None:
                self._client = httpx.Client(**self._options)
            return self._client

    def _side(self) -> _Side:
        self._check_process()
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._sides:
                client = httpx.AsyncClient(**self._options)
                self._sides[loop] = _Side(client, Together(self._converse))
            return self._sides[loop]

    def _check_process(self) -> None:
        """After a fork the kept connections are the parent's; two speakers would garble them."""
        if self._is_closed:
            raise RuntimeError("expected an open sink, found one that was closed")
        if self._pid != os.getpid():
            self._lock = threading.Lock()  # the old one may be held by a thread that is not here
            self._pid, self._client = os.getpid(), None
            self._sides = WeakKeyDictionary()

    def close(self) -> None:
        """Send no more, and close the kept connections of blocking calls."""
        self._is_closed = True
        if self._client is not None and self._pid == os.getpid():
            self._client.close()

    async def aclose(self) -> None:
        """As `close`, and close the kept connections of this event loop."""
        self.close()
        side = self._sides.pop(asyncio.get_running_loop(), None)
        if side is not None:
            await side.client.aclose()


def _address(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url.rstrip("/"))
    except httpx.InvalidURL as error:
        raise SettingsInvalid(f"PENSTOCK_URL: expected an address, found {error}") from None
    if address.scheme not in ("http", "https") or not address.host:
        raise SettingsInvalid(
            "PENSTOCK_URL: expected an address like http://127.0.0.1:8700, "
            f"found scheme {address.scheme!r} and host {address.host!r}"
        )
    if address.userinfo:
        raise SettingsInvalid(
            "PENSTOCK_URL: expected an address without credentials, found some before the host",
            remedy="Put the token in PENSTOCK_TOKEN.",
        )
    return address


def _headers(token: str | None) -> dict[str, str]:
    headers = {"content-type": "application/json", "user-agent": "penstock-publisher"}
    token = (token or "").strip()
    if not (token.isascii() and (token.isprintable() or not token)):
        raise SettingsInvalid("PENSTOCK_TOKEN: expected printable ASCII, found other characters")
    return {**headers, "authorization": f"Bearer {token}"} if token else headers


@cache
def _trust(scheme: str) -> ssl.SSLContext:
    """Whom to believe: the known authorities, or for plain HTTP nobody, which loads in no time."""
    if scheme == "https":
        return httpx.create_ssl_context()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _is_loopback(address: httpx.URL) -> bool:
    """A server on this machine is never behind a proxy, whatever the environment says."""
    if address.host == "localhost":
        return True
    try:
        return ip_address(address.host).is_loopback
    except ValueError:
        return False
