"""Append on a condition, and read what a decision depends on: `/v1/append`, `/v1/decide/read`.

    {"events": […], "condition": {"query": {"items": […]}, "after": "1042"}}  ──▶ 200 positions
                                                                              └─▶ 409 conflict

An append answers 200 when its events are durable and readable. A bad event refuses all of them, and
`errors` points at each. The read gives events and `after` of one moment; with more than `limit`
events, `after` is the last of them, and an append that takes it for everything is refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.body import JSON, read_bytes, require_media_type
from penstock.api.context import house_of, metrics_of
from penstock.api.handlers.publish import idempotency_key
from penstock.api.problems import RequestRefused
from penstock.api.reply import reply
from penstock.api.sight import seen_by
from penstock.base.errors import EventRefused, Fault
from penstock.envelope.codec import decode
from penstock.envelope.envelope import JsonObject, JsonValue, Stored
from penstock.ingress.verdict import Via
from penstock.store.append.appends import READ_MAX
from penstock.store.append.judging import Calling
from penstock.store.append.wire import read_condition, read_criteria, read_position
from penstock.store.view import view

_NODES_MAX = 1_000_000  # of a whole body; each event has its own limit besides
_DEPTH_MAX = 34  # an event of the deepest kind, in its array, in the body


async def append(request: Request, caller: Caller) -> Response:
    """Append events if nothing that the condition names has happened."""
    house, received = house_of(request), metrics_of(request).received
    key = idempotency_key(request)
    body = await _body(request, ("events", "condition"))
    events = body.get("events")
    if not isinstance(events, list):
        raise _misshapen("/events", "expected an array of events")
    condition = read_condition(body.get("condition"))
    calling = Calling(caller.tenant_id, Via.HTTP, operator=caller.is_operator, key=key)
    try:
        appended = await house.appends.calling(calling).aappend(events, condition)
    except EventRefused:
        received.labels("rejected").inc(len(events))
        raise
    received.labels("accepted").inc(len(events))
    positions: list[JsonValue] = [str(position) for position in appended.positions]
    return reply({"data": {"positions": positions, "after": str(appended.after)}})


async def read(request: Request, caller: Caller) -> Response:
    """The events that a decision depends on, and what to append `after`."""
    house = house_of(request)
    body = await _body(request, ("query", "limit", "from"))
    criteria = read_criteria(body.get("query"))
    limit = _limit(body.get("limit"))
    first = read_position(body.get("from"), "/from") or 1
    store = house.appends.of(caller.tenant_id)
    found = await store.aread(criteria, after=max(0, first - 1), limit=limit)

    def shown() -> list[JsonValue]:
        registry, now = house.book.current(), house.clock.now()
        events: list[Stored] = seen_by(caller, house, found.events)
        return [view(stored, registry, now=now) for stored in events]

    events = await run_in_threadpool(shown)
    return reply({"data": {"events": events, "after": str(found.after)}})


async def _body(request: Request, known: Collection[str]) -> JsonObject:
    """The body, an object with known members only."""
    require_media_type(request, JSON)
    raw = await read_bytes(request)
    tree = decode(raw, bytes_max=len(raw), nodes_max=_NODES_MAX, depth_max=_DEPTH_MAX)
    if not isinstance(tree, dict):
        raise _misshapen("", "expected an object")
    for name in tree:
        if name not in known:
            near = difflib.get_close_matches(name[:80], known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise _misshapen(f"/{name[:80]}", f"expected {', '.join(known)} only{hint}")
    return tree


def _limit(tree: JsonValue) -> int:
    if tree is None:
        return READ_MAX
    if type(tree) is not int or not 1 <= tree <= READ_MAX:
        raise _misshapen("/limit", f"expected a whole number from 1 to {READ_MAX}")
    return tree


def _misshapen(pointer: str, detail: str) -> RequestRefused:
    return RequestRefused(
        422,
        "body_invalid",
        detail,
        remedy="Correct the fields that `errors` names; /openapi.json has the shape.",
        faults=(Fault(pointer, detail),),
    )
