"""Read what a caller asks of the past out of HTTP parameters.

    /v1/state        tags, type, correlationId, reducer, asOf
    /v1/state/diff   tags, type, correlationId, reducer, from, to
    /v1/replay       the same, or eventId; limit, cursor

Any other parameter is refused, since one that is ignored gives an answer nobody asked for.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.base.errors import QueryInvalid
from penstock.store.query import LIMIT_DEFAULT, LIMIT_MAX
from penstock.store.timetravel.boundary import PARAMETERS, Boundary, read_boundary
from penstock.store.timetravel.moment import AsOf, read_as_of
from penstock.store.values import read_integer

Params = Sequence[tuple[str, str]]
STATE = (*PARAMETERS, "reducer", "asOf")
DIFF = (*PARAMETERS, "reducer", "from", "to")
REPLAY = (*DIFF, "eventId", "limit", "cursor")
_SEVERAL = ("tags", "type")
_VALUE_MAX = 1_000


@dataclass(frozen=True, slots=True)
class StateAsked:
    """Whose state, folded how, as of when."""

    boundary: Boundary
    reducer: str | None
    as_of: AsOf


@dataclass(frozen=True, slots=True)
class SpanAsked:
    """Whose history, folded how, from when to when."""

    boundary: Boundary
    reducer: str | None
    begins: AsOf
    ends: AsOf


@dataclass(frozen=True, slots=True)
class ReplayAsked:
    """A page of a replay; either a boundary or an event whose history is meant."""

    boundary: Boundary | None
    event_id: str | None
    reducer: str | None
    begins: AsOf
    ends: AsOf
    limit: int
    cursor: str | None


def read_state(params: Params, *, tenant_id: str) -> StateAsked:
    """What `/v1/state` is asked."""
    given = _gather(params, STATE)
    as_of = _as_of(given, "asOf")
    return StateAsked(read_boundary(params, tenant_id=tenant_id), given.get("reducer"), as_of)


def read_diff(params: Params, *, tenant_id: str) -> SpanAsked:
    """What `/v1/state/diff` is asked; without `from` it is about everything up to `to`."""
    given = _gather(params, DIFF)
    begins, ends = _as_of(given, "from"), _as_of(given, "to")
    return SpanAsked(
        read_boundary(params, tenant_id=tenant_id), given.get("reducer"), begins or 0, ends
    )


def read_replay(params: Params, *, tenant_id: str) -> ReplayAsked:
    """What `/v1/replay` is asked."""
    given = _gather(params, REPLAY)
    event_id = given.get("eventId")
    others = [name for name, _ in params if name in PARAMETERS or name.startswith("tag.")]
    if event_id is not None and others:
        raise QueryInvalid(
            f"expected eventId alone, found {others[0]} beside it", parameter=others[0]
        )
    return ReplayAsked(
        boundary=None if event_id is not None else read_boundary(params, tenant_id=tenant_id),
        event_id=event_id,
        reducer=given.get("reducer"),
        begins=_as_of(given, "from") or 0,
        ends=_as_of(given, "to"),
        limit=_limit(given),
        cursor=given.get("cursor"),
    )


def _gather(params: Params, known: Sequence[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, value in params:
        if name.startswith("tag."):
            continue
        if name not in known:
            near = difflib.get_close_matches(name[:80], known, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise QueryInvalid(
                f"expected one of {', '.join(known)}, tag.<key>, found {name[:80]!r}{hint}",
                parameter=name[:80],
            )
        if not value or len(value) > _VALUE_MAX or "\0" in value:
            raise QueryInvalid(
                f"expected 1 to {_VALUE_MAX} characters for {name}, found {value[:40]!r}",
                parameter=name,
            )
        if name in given and name not in _SEVERAL:
            raise QueryInvalid(f"expected {name} once, found it again", parameter=name)
        given[name] = value
    return given


def _as_of(given: dict[str, str], name: str) -> AsOf:
    return read_as_of(given[name], name) if name in given else None


def _limit(given: dict[str, str]) -> int:
    try:
        return max(1, min(LIMIT_MAX, read_integer(given.get("limit", str(LIMIT_DEFAULT)))))
    except ValueError as error:
        raise QueryInvalid(str(error), parameter="limit") from None
