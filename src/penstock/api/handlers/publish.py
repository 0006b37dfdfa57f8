"""Take events in: `POST /v1/events`, one or many, native or CloudEvents.

    body ── items ──▶ Door ──▶ 202 durable · 207 some refused · 4xx refused and kept

202 is said only when every event is durable. One bad item never fails the others. A body that is
not JSON at all is one message, refused whole, because nobody can tell where its items end.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.batch import TooManyItems, split
from penstock.api.binary import MARK, read_binary
from penstock.api.body import JSON, read_bytes, require_media_type
from penstock.api.context import house_of, metrics_of
from penstock.api.problems import RequestRefused, answer, problem_of_rejected
from penstock.api.reply import reply
from penstock.base.clock import format_instant
from penstock.base.errors import Fault, NotInProfile, QueryInvalid, QueueUnavailable
from penstock.envelope.codec import decode, decode_array
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.ingress.door import DoorOutcome, Item
from penstock.ingress.verdict import Reason, Via

if TYPE_CHECKING:
    from penstock.house import House

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
# What is larger is worked on by a thread, so that others are answered meanwhile.
_INLINE_BYTES_MAX = 64_000
_LOGGER = "api.publish"
_log = structlog.get_logger(_LOGGER)
_quiet_log = logging.getLogger(_LOGGER)  # asks whether anybody listens, for next to nothing
_NOT_JSON = frozenset({Reason.MALFORMED_JSON, Reason.NOT_UTF8})


@dataclass(frozen=True, slots=True)
class _Sent:
    """What one request publishes."""

    items: Sequence[Item]
    is_batch: bool = False
    faults: tuple[Fault, ...] = ()  # of headers, which are not in the message's own words


async def publish(request: Request, caller: Caller) -> Response:
    """Publish one event or a batch."""
    house, received = house_of(request), metrics_of(request).received
    key = idempotency_key(request)
    is_binary = MARK in request.headers
    if not is_binary:
        require_media_type(request, JSON, STRUCTURED, BATCH)
    body = await read_bytes(request)
    if is_binary:
        item, faults = read_binary(dict(request.headers), body)
        sent = _Sent([item], faults=faults)
    elif len(body) <= _INLINE_BYTES_MAX:
        sent = _read(body, house.settings.batch_events_max)
    else:
        sent = await run_in_threadpool(_read, body, house.settings.batch_events_max)
    try:
        outcomes = await _through_the_door(house, sent, caller, key, len(body))
    except QueueUnavailable:
        received.labels("unavailable").inc(len(sent.items))
        raise
    if _quiet_log.isEnabledFor(logging.DEBUG):
        _note(outcomes)
    for status, count in Counter(outcome.status for outcome in outcomes).items():
        received.labels(status).inc(count)
    instance = request.scope["state"]["instance"]
    return _batch(outcomes) if sent.is_batch else _single(outcomes[0], sent.faults, instance)


async def _through_the_door(
    house: House, sent: _Sent, caller: Caller, key: str | None, size: int
) -> list[DoorOutcome]:
    if size <= _INLINE_BYTES_MAX:
        return await house.door.publish_async(
            sent.items,
            tenant_id=caller.tenant_id,
            via=Via.HTTP,
            key=key,
            operator=caller.is_operator,
        )
    return await run_in_threadpool(
        house.door.publish,
        sent.items,
        tenant_id=caller.tenant_id,
        via=Via.HTTP,
        key=key,
        operator=caller.is_operator,
    )


def _note(outcomes: Sequence[DoorOutcome]) -> None:
    """Log each event that came in by its ids; what was refused, the door has logged already."""
    for outcome in outcomes:
        if outcome.event is not None:
            _log.debug(
                "event_published",
                outcome=outcome.status,
                event_id=outcome.id,
                correlation_id=outcome.event.get("correlationId"),
                event_type=outcome.event.get("type"),
                source=outcome.event.get("source"),
            )


def _read(body: bytes, items_max: int) -> _Sent:
    """The items of a native or structured body."""
    plain = decode_array(body, items_max=items_max)
    if plain is not None:
        items = list(map(Item, *plain, repeat(True)))
        return _Sent(items, is_batch=True)
    try:
        found = split(body, items_max=items_max)
    except TooManyItems:
        raise RequestRefused(
            413, "too_large", f"expected at most {items_max} events in a batch, found more",
            remedy="Send them in several batches; PENSTOCK_BATCH_EVENTS_MAX is the limit.",
        ) from None  # fmt: skip
    if found is None:
        return _Sent([Item(raw=body)])
    if not found:
        detail = "expected at least one event, found an empty batch"
        raise RequestRefused(
            422, Reason.ENVELOPE_INVALID, detail,
            remedy="Send the events in the array.", faults=(Fault("", detail),),
        )  # fmt: skip
    items = []
    for raw in found:
        try:
            tree: JsonValue = decode(raw)
        except NotInProfile as fault:
            if fault.reason in _NOT_JSON:
                return _Sent([Item(raw=body)])
            tree = None  # the door decodes it again, and says why not
        items.append(Item(raw, tree))
    return _Sent(items, is_batch=True)


def idempotency_key(request: Request) -> str | None:
    """The key under which a repeat is the same request; None when there is none."""
    key = request.headers.get("idempotency-key")
    if key is not None and _KEY.fullmatch(key) is None:
        raise QueryInvalid(
            "expected an Idempotency-Key of 1 to 255 visible ASCII characters",
            parameter="Idempotency-Key",
        )
    return key


def _single(outcome: DoorOutcome, faults: tuple[Fault, ...], instance: str) -> Response:
    if outcome.rejected is not None:
        problem = problem_of_rejected(outcome.rejected)
        if faults:
            problem = replace(problem, detail=faults[0].detail, faults=faults)
        return answer(problem, instance)
    data: JsonObject = {
        "status": outcome.status,
        "acceptedAt": format_instant(outcome.accepted_at),
        "event": outcome.event,
    }
    return reply({"data": data}, 202)


def _batch(outcomes: Sequence[DoorOutcome]) -> Response:
    results: list[JsonValue] = [_result(index, each) for index, each in enumerate(outcomes)]
    all_taken = all(outcome.rejected is None for outcome in outcomes)
    return reply({"data": {"results": results}}, 202 if all_taken else 207)


def _result(index: int, outcome: DoorOutcome) -> JsonObject:
    found: JsonObject = {"index": index, "id": outcome.id, "status": outcome.status}
    if outcome.rejected is not None:
        found["problem"] = problem_of_rejected(outcome.rejected).to_json()
    return found
