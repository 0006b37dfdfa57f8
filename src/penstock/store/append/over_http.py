"""Decide over HTTP: the same `read` and `append` as a store in the program, at a server.

    store = RemoteStore("http://127.0.0.1:8700", token)
    decide(store, Query().type("seat.booked").tag("show", "42"), seats, book, initial=frozenset())

Errors come back as what they were: AppendConflict, ConditionInvalid, EventRefused. StoreUnavailable
says that it is not known what happened; an append whose events have ids may then be sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

import httpx

from penstock.base.errors import NotInProfile, StoreUnavailable
from penstock.envelope.codec import decode, encode
from penstock.envelope.envelope import JsonObject, JsonValue
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
# In an event loop each request costs the client more the more connections there are.
_FEW = httpx.Limits(max_connections=8, max_keepalive_connections=8)


class RemoteStore:
    """The store of the token's tenant at one server, blocking and awaited."""

    def __init__(self, url: str, token: str | None = None, *, timeout_s: float = 30.0) -> None:
        headers = {"content-type": "application/json"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        self._client = httpx.Client(base_url=url, headers=headers, timeout=timeout_s)
        self._async_client = httpx.AsyncClient(
            base_url=url, headers=headers, timeout=timeout_s, limits=_FEW
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
        """Close the connections of blocking calls."""
        self._client.close()

    async def aclose(self) -> None:
        """Close all connections."""
        self._client.close()
        await self._async_client.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _post(self, path: str, body: JsonObject) -> httpx.Response:
        try:
            return self._client.post(path, content=encode(body))
        except httpx.RequestError as error:
            raise _unreachable(error) from error

    async def _apost(self, path: str, body: JsonObject) -> httpx.Response:
        try:
            return await self._async_client.post(path, content=encode(body))
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
    said = f"{type(error).__name__} {error}".strip()
    return StoreUnavailable(f"expected an answer, found {said}")
