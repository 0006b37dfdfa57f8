"""Ask the admin API of one server, with one token, and turn its problems into `Refused`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeAlias

import httpx

from penstock.base.errors import Fault
from penstock.base.over_http import is_loopback
from penstock.cli.fields import rows, text
from penstock.cli.refused import Refused
from penstock.envelope.codec import encode, load_stored
from penstock.envelope.envelope import JsonObject, JsonValue

Parameters: TypeAlias = Sequence[tuple[str, str]]
_CONNECT_S = 5.0


class Client:
    """A connection to one server; use it as a context manager."""

    def __init__(self, url: str, token: str | None, *, timeout_s: float = 30.0) -> None:
        self.url = url.rstrip("/")
        headers = {"user-agent": "penstock-cli"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        # A server on this machine has no proxy before it, whatever the environment says.
        local = is_loopback(httpx.URL(self.url))
        self._timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_S))
        self._http = httpx.Client(
            base_url=self.url, headers=headers, timeout=self._timeout, trust_env=not local
        )

    def get(self, path: str, parameters: Parameters = ()) -> JsonObject:
        """The `data` of an answer, or its whole when it has none."""
        return _data(self._ask("GET", path, parameters=parameters))

    def post(self, path: str, body: JsonValue) -> JsonObject:
        """The `data` of the answer to a JSON body."""
        return self.post_raw(path, encode(body))

    def post_raw(
        self, path: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> JsonObject:
        """The same for a body that is JSON already."""
        return _data(self._ask("POST", path, body=body, headers=headers))

    def patch(
        self, path: str, body: JsonValue, headers: Mapping[str, str] | None = None
    ) -> JsonObject:
        """The `data` of the answer to a change."""
        return _data(self._ask("PATCH", path, body=encode(body), headers=headers))

    def put(self, path: str, body: JsonValue) -> JsonObject:
        """The `data` of the answer to a whole new state."""
        return _data(self._ask("PUT", path, body=encode(body)))

    def delete(self, path: str, headers: Mapping[str, str] | None = None) -> None:
        self._ask("DELETE", path, headers=headers)

    @contextlib.contextmanager
    def stream(
        self, path: str, parameters: Parameters, headers: dict[str, str], *, quiet_s: float
    ) -> Iterator[Iterator[bytes]]:
        """The bytes of an answer that goes on; silence longer than `quiet_s` ends it."""
        timeout = httpx.Timeout(quiet_s, connect=_CONNECT_S)
        with self._unless_unreachable(), self._http.stream(
            "GET", path, params=list(parameters), headers=headers, timeout=timeout
        ) as response:  # fmt: skip
            if response.status_code >= 400:
                response.read()
            _raise_for(response)
            yield response.iter_bytes()

    def _ask(
        self,
        method: str,
        path: str,
        *,
        parameters: Parameters = (),
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        kind = {"content-type": "application/json"} if body is not None else {}
        with self._unless_unreachable():
            response = self._http.request(
                method,
                path,
                params=list(parameters),
                content=body,
                headers={**kind, **(headers or {})},
            )
        _raise_for(response)
        return response

    @contextlib.contextmanager
    def _unless_unreachable(self) -> Iterator[None]:
        try:
            yield
        except httpx.TransportError as error:
            found = f"{type(error).__name__} {error}".strip()
            raise Refused(
                "server_unavailable",
                f"expected an answer from {self.url}, found {found}",
                "Start it with `penstock up`, or name another one in PENSTOCK_URL.",
            ) from None

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _data(response: httpx.Response) -> JsonObject:
    body = _parsed(response.content) if response.content else {}
    if not isinstance(body, dict):
        raise Refused(
            "not_understood",
            f"expected a JSON object from {response.url.path}, found something else",
            "Check that PENSTOCK_URL names a Penstock server of this version.",
        )
    data = body.get("data")
    return data if isinstance(data, dict) else body


def _parsed(content: bytes) -> JsonValue:
    """What the server said, digit by digit; None when it is not JSON."""
    try:
        return load_stored(content)
    except ValueError:
        return None


def _raise_for(response: httpx.Response) -> None:
    if response.status_code < 400:
        return
    problem = _parsed(response.content)
    found = problem if isinstance(problem, dict) else {}
    retry_after = response.headers.get("retry-after", "")
    raise Refused(
        text(found, "code") or f"http_{response.status_code}",
        text(found, "detail") or f"the server answered {response.status_code}",
        text(found, "remedy") or "Check that PENSTOCK_URL names a Penstock server.",
        faults=tuple(Fault(text(e, "pointer"), text(e, "detail")) for e in rows(found, "errors")),
        dead_letter_id=text(found, "deadLetterId") or None,
        status=response.status_code,
        retry_after_s=float(retry_after) if retry_after.isdigit() else None,
    )
