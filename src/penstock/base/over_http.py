"""Keep connections to one server: for threads, for tasks, and for whoever comes later.

A process that was forked, and an event loop that was started later, get connections of their own,
because neither can share a socket with another. A server on this machine is never behind a proxy,
whatever the environment says.

Tasks take turns in the order in which they came. Left to the client's pool, whoever has just been
answered is often served before those who wait, and with many tasks some wait ten times as long.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from functools import cache
from ipaddress import ip_address
from typing import NamedTuple, TypedDict

import httpx

from penstock.base.errors import SettingsInvalid

_CONNECT_S = 5.0
_THREADS = httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=30.0)
# In an event loop a request costs the client more the more connections there are.
_AT_ONCE = 8
_TASKS = httpx.Limits(
    max_connections=_AT_ONCE, max_keepalive_connections=_AT_ONCE, keepalive_expiry=30.0
)


class _Options(TypedDict):
    base_url: httpx.URL
    headers: dict[str, str]
    timeout: httpx.Timeout
    trust_env: bool
    verify: ssl.SSLContext


class _Loop(NamedTuple):
    """What one event loop has."""

    client: httpx.AsyncClient
    turns: asyncio.Semaphore


class Connections:
    """The connections of one client to one server. Threads and tasks may share them."""

    def __init__(self, url: str, token: str | None, *, agent: str, timeout_s: float) -> None:
        self.address = _address(url)
        self._options: _Options = {
            "base_url": self.address,
            "headers": _headers(token, agent),
            "timeout": httpx.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s)),
            "trust_env": not is_loopback(self.address),
            "verify": _trust(self.address.scheme),
        }
        self._timeout_s = timeout_s
        self._is_closed = False
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._client: httpx.Client | None = None
        self._loops: dict[asyncio.AbstractEventLoop, _Loop] = {}

    def post(self, path: str, body: bytes) -> httpx.Response:
        """What the server answers; httpx.RequestError when it does not."""
        return self._of_threads().post(path, content=body)

    async def apost(self, path: str, body: bytes) -> httpx.Response:
        """As `post`, awaited."""
        client, turns = self._of_loop()
        try:
            async with asyncio.timeout(self._timeout_s):
                await turns.acquire()
        except TimeoutError:
            raise httpx.PoolTimeout("no connection was free in time") from None
        try:
            return await client.post(path, content=body)
        finally:
            turns.release()

    def close(self) -> None:
        """Be used no more, and close what is kept for blocking calls."""
        self._is_closed = True
        if self._client is not None and self._pid == os.getpid():
            self._client.close()

    async def aclose(self) -> None:
        """As `close`, and close what is kept for this event loop."""
        self.close()
        kept = self._loops.pop(asyncio.get_running_loop(), None)
        if kept is not None:
            await kept.client.aclose()

    def _of_threads(self) -> httpx.Client:
        self._check_process()
        with self._lock:
            if self._client is None:
                self._client = httpx.Client(**self._options, limits=_THREADS)
            return self._client

    def _of_loop(self) -> _Loop:
        self._check_process()
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._loops:
                # Connections know their loop, so one that is over would never be let go of.
                self._loops = {
                    each: kept for each, kept in self._loops.items() if not each.is_closed()
                }
                client = httpx.AsyncClient(**self._options, limits=_TASKS)
                self._loops[loop] = _Loop(client, asyncio.Semaphore(_AT_ONCE))
            return self._loops[loop]

    def _check_process(self) -> None:
        """After a fork the kept connections are the parent's; two speakers would garble them."""
        if self._is_closed:
            raise RuntimeError("expected open connections, found that they were closed")
        if self._pid != os.getpid():
            self._lock = threading.Lock()  # the old one may be held by a thread that is not here
            self._pid, self._client = os.getpid(), None
            self._loops = {}


def said_by(error: httpx.RequestError) -> str:
    """Why there is no answer, in a few words."""
    return f"{type(error).__name__} {error}".strip()


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


def _headers(token: str | None, agent: str) -> dict[str, str]:
    headers = {"content-type": "application/json", "user-agent": agent}
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


def is_loopback(address: httpx.URL) -> bool:
    """Whether a server is on this machine."""
    if address.host == "localhost":
        return True
    try:
        return ip_address(address.host).is_loopback
    except ValueError:
        return False
