"""Send requests past the guard: resolve once, admit, connect to that very address, hear little.

    Request ── Guard.judge ──▶ resolve ──▶ Guard.admit ──▶ connect to the address ──▶ TLS and Host
                                                            of the name ──▶ Reply of 64 kB at most

There is no second look at a name between the check and the connection, so no answer of a name
server can lead elsewhere. Redirects are not followed, no proxy of the environment is asked, and
all of it together takes no longer than the time it was given, however slowly the other side drips.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from ipaddress import ip_address
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

import httpcore
import httpx

from penstock.workflows.launch.circuit import Circuits
from penstock.workflows.launch.errors import OutboundRefused, Resting, Unreachable
from penstock.workflows.launch.guard import Address, Guard, Target
from penstock.workflows.launch.request import (
    ANSWER_BYTES_MAX,
    TOTAL_S,
    Reply,
    Request,
    check_headers,
)

Resolve: TypeAlias = Callable[[str, int], Sequence[Address]]
_AGENT = "penstock"
_WIRE_BYTES_MAX = 4 * ANSWER_BYTES_MAX  # head, body, and what chunks and TLS add


class Outbound:
    """The one way out of a worker; threads share it."""

    def __init__(
        self,
        guard: Guard,
        *,
        resolve: Resolve | None = None,
        circuits: Circuits | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._guard = guard
        self._resolve = resolve or system_resolve
        self._circuits = circuits or Circuits()
        self._tls = tls
        self._lines: dict[str, _Line] = {}

    def send(self, request: Request, *, call_id: str, total_s: float = TOTAL_S) -> Reply:
        """The answer; OutboundRefused when it may not be sent, Unreachable when none came."""
        target = self._guard.judge(request.url)
        check_headers(request.headers)
        rest_s = self._circuits.rests_for(target.origin, time.monotonic())
        if rest_s > 0:
            raise Resting(
                f"expected {target.origin} to answer, found failures in a row; "
                f"it is asked again in {rest_s:.0f} s",
                rest_s=rest_s,
            )
        line = self._lines[call_id] = _Line(target, self._addresses, time.monotonic() + total_s)
        try:
            reply = self._talk(line, target, request)
        except Unreachable:
            self._circuits.note(target.origin, time.monotonic(), answered=False)
            raise
        finally:
            self._lines.pop(call_id, None)
        self._circuits.note(target.origin, time.monotonic(), answered=reply.status < 500)
        return reply

    def cancel(self, call_id: str) -> None:
        """End the request of this call, if one is under way: it becomes Unreachable."""
        line = self._lines.get(call_id)
        if line is not None:
            line.cut()

    def _talk(self, line: _Line, target: Target, request: Request) -> Reply:
        url = httpcore.URL(
            scheme=target.scheme, host=target.host, port=target.port, target=target.path
        )
        tls = (self._tls or _trust()) if target.scheme == "https" else None
        ours = {"host": target.authority, "connection": "close", "user-agent": _AGENT}
        headers = {**ours, **request.headers}
        connection = httpcore.HTTPConnection(url.origin, ssl_context=tls, network_backend=line)
        try:
            with connection, connection.stream(
                request.method, url, headers=list(headers.items()), content=request.body
            ) as response:  # fmt: skip
                body, is_cut = _beginning(response.iter_stream())
        except _FAILURES as error:
            raise Unreachable(_said(target, line, error)) from None
        names = ((k.decode("latin-1").lower(), v.decode("latin-1")) for k, v in response.headers)
        return Reply(response.status, dict(names), body, is_cut)

    def _addresses(self, target: Target, within_s: float) -> tuple[Address, ...]:
        literal = target.address
        found = [literal] if literal else _within(self._resolve, target, within_s)
        return self._guard.admit(target, found)


class _Line(httpcore.NetworkBackend):
    """One connection to one admitted address, with an end in time that nothing can move."""

    def __init__(
        self,
        target: Target,
        addresses: Callable[[Target, float], tuple[Address, ...]],
        deadline: float,
    ) -> None:
        self._target = target
        self._addresses = addresses
        self._deadline = deadline
        self._stream: _Stream | None = None
        self.is_cut = False

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first admitted address that answers; the name is not used again."""
        assert (host, port) == (self._target.host, self._target.port)  # noqa: S101
        failure: Exception = httpcore.ConnectTimeout("no address answered")
        for address in self._addresses(self._target, self.left_s()):
            try:
                plain = httpcore.SyncBackend().connect_tcp(
                    str(address), port, self.left_s(), local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            self._stream = _Stream(plain, self)
            return self._stream
        raise failure

    def left_s(self) -> float:
        """How much of the time is left; a failure when nothing is."""
        left = self._deadline - time.monotonic()
        if self.is_cut or left <= 0:
            raise httpcore.ReadTimeout("canceled" if self.is_cut else "out of time")
        return left

    def cut(self) -> None:
        """Hang up, from whatever thread."""
        self.is_cut = True
        if self._stream is not None:
            self._stream.hang_up()


class _Stream(httpcore.NetworkStream):
    """A connection whose every wait ends with the line's time, and that hears only so much."""

    def __init__(self, inner: httpcore.NetworkStream, line: _Line) -> None:
        self._inner = inner
        self._line = line
        self._heard = 0

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        found = self._inner.read(max_bytes, self._line.left_s())
        self._heard += len(found)
        if self._heard > _WIRE_BYTES_MAX:
            raise httpcore.RemoteProtocolError("an answer too long")
        return found

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        for start in range(0, len(buffer), 65_536):
            self._inner.write(buffer[start : start + 65_536], self._line.left_s())

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        self._inner = self._inner.start_tls(ssl_context, server_hostname, self._line.left_s())
        return self

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    def hang_up(self) -> None:
        held = self._inner.get_extra_info("socket")
        with contextlib.suppress(OSError):
            held.shutdown(socket.SHUT_RDWR)


_FAILURES = (
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    ssl.SSLError,
    OSError,
)


def system_resolve(host: str, port: int) -> list[Address]:
    """Every address the system knows for a name."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(ip_address(str(entry[4][0])) for entry in found))


def _within(resolve: Resolve, target: Target, within_s: float) -> Sequence[Address]:
    """Resolve, but not for ever: the system's resolver has no time limit of its own."""
    answers: SimpleQueue[Sequence[Address] | OSError | ValueError] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put(resolve(target.host, target.port))
        except (OSError, ValueError) as error:
            answers.put(error)

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=within_s)
    except Empty:
        raise httpcore.ConnectTimeout("the name was not resolved in time") from None
    if isinstance(answer, ValueError):  # such as an address with a zone
        raise OutboundRefused(f"expected plain addresses of {target.host}, found others")
    if isinstance(answer, OSError):
        raise httpcore.ConnectError("the name has no address")
    return answer


def _beginning(chunks: Iterable[bytes]) -> tuple[bytes, bool]:
    """The body up to the limit, and whether there was more."""
    body = b""
    for chunk in chunks:
        body += chunk
        if len(body) > ANSWER_BYTES_MAX:
            return body[:ANSWER_BYTES_MAX], True
    return body, False


def _said(target: Target, line: _Line, error: Exception) -> str:
    if line.is_cut:
        return f"expected an answer of {target.origin}, found the request canceled"
    what = type(error).__name__ if not str(error) else f"{type(error).__name__}: {error}"
    return f"expected an answer of {target.origin}, found {what[:200]}"


@cache
def _trust() -> ssl.SSLContext:
    return httpx.create_ssl_context()
