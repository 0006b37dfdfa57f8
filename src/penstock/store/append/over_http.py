"""Decide over HTTP: the same `read` and `append` as a store in the program, at a server.

    store = RemoteStore()  # at PENSTOCK_URL with PENSTOCK_TOKEN, or where it is told
    decide(store, Query().type("seat.booked").tag("show", "42"), seats, book, initial=frozenset())

Errors come back as what they were: AppendConflict, ConditionInvalid, EventRefused. StoreUnavailable
says that it is not known what happened; an append whose events have ids may then be sent again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import httpx

from penstock.base.errors import NotInProfile, StoreUnavailable
from penstock.base.over_http import Connections, said_by
from penstock.envelope.codec import decode, encode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.publish.address import named
from penstock.store.append.condition import Condition, Criteria
from penstock.store.append.remote import (
    append_body,
    error_of,
    read_appended,
    read_body,
    read_found,
)
from penstock.store.append.request import Appended, Found

_APPEND, _READ = "/v1/append", "/v1/decide/read"
_BYTES_MAX, _NODES_MAX, _DEPTH_MAX = 256_000_000, 20_000_000, 48
_LIMIT = 5_000


class RemoteStore:
    """The store of the token's tenant at one server, blocking and awaited."""

    def __init__(
        self, url: str | None = None, token: str | None = None, *, timeout_s: float = 30.0
    ) -> None:
        self._connections = Connections(
            *named(url, token, os.environ), agent="penstock-store", timeout_s=timeout_s
        )

    def append(self, events: Sequence[JsonValue], condition: Condition | None = None) -> Appended:
        """Append events in wire form, all or none; see `EventStore.append`."""
        body = append_body(events, condition)
        return read_appended(_answer(self._post(_APPEND, body), condition))

    def read(self, criteria: Criteria, *, after: int = 0, limit: int = _LIMIT) -> Found:
        """The first matching events after a position; see `EventStore.read`."""
        return read_found(_answer(self._post(_READ, read_body(criteria, after, limit))))

    async def aappend(
        self, events: Sequence[JsonValue], condition: Condition | None = None
    ) -> Appended:
        """As `append`, awaited."""
        body = append_body(events, condition)
        return read_appended(_answer(await self._apost(_APPEND, body), condition))

    async def aread(self, criteria: Criteria, *, after: int = 0, limit: int = _LIMIT) -> Found:
        """As `read`, awaited."""
        answered = await self._apost(_READ, read_body(criteria, after, limit))
        return read_found(_answer(answered))

    def close(self) -> None:
        """Ask no more, and close the connections of blocking calls."""
        self._connections.close()

    async def aclose(self) -> None:
        """As `close`, and close the connections of this event loop."""
        await self._connections.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _post(self, path: str, body: JsonObject) -> httpx.Response:
        try:
            return self._connections.post(path, encode(body))
        except httpx.RequestError as error:
            raise _unreachable(error) from error

    async def _apost(self, path: str, body: JsonObject) -> httpx.Response:
        try:
            return await self._connections.apost(path, encode(body))
        except httpx.RequestError as error:
            raise _unreachable(error) from error


def _answer(response: httpx.Response, condition: Condition | None = None) -> JsonValue:
    try:
        tree = decode(
            response.content, bytes_max=_BYTES_MAX, nodes_max=_NODES_MAX, depth_max=_DEPTH_MAX
        )
    except NotInProfile:
        tree = None
    if response.status_code != httpx.codes.OK:
        raise error_of(response.status_code, tree, condition)
    return tree


def _unreachable(error: httpx.RequestError) -> StoreUnavailable:
    return StoreUnavailable(f"expected an answer, found {said_by(error)}")
