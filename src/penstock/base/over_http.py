"""Keep connections to one server: for threads, for tasks, and for whoever comes later.

A process that was forked, and an event loop that was started later, get connections of their own,
because neither can share a socket with another. A server on this machine is never behind a proxy,
whatever the environment says.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from functools import cache
from ipaddress import ip_address
from typing import TypedDict
from weakref import WeakKeyDictionary

import httpx

from penstock.base.errors import SettingsInvalid

_CONNECT_S = 5.0
_THREADS = httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=30.0)
# In an event loop a request costs the client more the more connections there are.
_TASKS = httpx.Limits(max_connections=8, max_keepalive_connections=8, keepalive_expiry=30.0)


class _Options(TypedDict):
    base_url: httpx.URL
    headers: dict[str, str]
    timeout: httpx.Timeout
    trust_env: bool
    verify: ssl.SSLContext


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
        self._is_closed = False
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._client: httpx.Client | None = None
        self._async_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient]
        self._async_clients = WeakKeyDictionary()

    def blocking(self) -> httpx.Client:
        """For whoever waits on a thread."""
        self._check_process()
        with self._lock:
            if self._client is None:
                self._client = httpx.Client(**self._options, limits=_THREADS)
            return self._client

    def awaiting(self) -> httpx.AsyncClient:
        """For the tasks of the running event loop."""
        self._check_process()
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._async_clients:
                self._async_clients[loop] = httpx.AsyncClient(**self._options, limits=_TASKS)
            return self._async_clients[loop]

    def close(self) -> None:
        """Be used no more, and close what is kept for blocking calls."""
        self._is_closed = True
        if self._client is not None and self._pid == os.getpid():
            self._client.close()

    async def aclose(self) -> None:
        """As `close`, and close what is kept for this event loop."""
        self.close()
        client = self._async_clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _check_process(self) -> None:
        """After a fork the kept connections are the parent's; two speakers would garble them."""
        if self._is_closed:
            raise RuntimeError("expected open connections, found that they were closed")
        if self._pid != os.getpid():
            self._lock = threading.Lock()  # the old one may be held by a thread that is not here
            self._pid, self._client = os.getpid(), None
            self._async_clients = WeakKeyDictionary()


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
