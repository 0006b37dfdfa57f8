"""Judge the events of appends: all of one are good, or none of it is taken.

    Said, Said, … ── judge_all ──▶ the events of each, or EventRefused with faults at /events/<n>

Pure but for the ids it makes. Each event goes through its own bytes, so that the limits of the
strict profile hold for it as they do at every other door. Several are judged together, which takes
half as long for each, and what is wrong with one is nothing to the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from penstock.base.errors import EventRefused, Fault, NotInProfile
from penstock.base.ids import derived_id, uuid7
from penstock.envelope.codec import encode
from penstock.envelope.envelope import DEFAULT_TENANT, JsonValue
from penstock.ingress.lot import Judged
from penstock.ingress.several import judge_several
from penstock.ingress.verdict import Accepted, Arrival, Reason, Rejected, Via
from penstock.registry.registry import Registry
from penstock.store.append.condition import Condition
from penstock.store.append.request import EVENTS_MAX, Entry
from penstock.store.append.rows import pack_event

_FAULTS_MAX = 50


@dataclass(frozen=True, slots=True)
class Calling:
    """Who appends, and how."""

    tenant_id: str = DEFAULT_TENANT
    via: Via = Via.SDK
    operator: bool = True  # may speak for Penstock itself
    key: str | None = None  # an Idempotency-Key: ids that are left out are derived from it


class Said(NamedTuple):
    """An append as its caller says it."""

    calling: Calling
    events: Sequence[JsonValue]
    condition: Condition | None = None


def judge_all(
    said: Sequence[Said], registry: Registry, *, now: datetime
) -> list[list[Judged] | EventRefused]:
    """Of each append every event with its verdict, which is Accepted; else why it is refused."""
    raws = [_written(each) for each in said]
    arrivals = [
        arrival
        for each, written in zip(said, raws, strict=True)
        if not isinstance(written, EventRefused)
        for arrival in _arrivals(each.calling, len(written), now)
    ]
    flat = [raw for written in raws if not isinstance(written, EventRefused) for raw in written]
    judged = map(Judged, flat, judge_several(flat, arrivals, registry))
    return [
        written if isinstance(written, EventRefused) else _all_good([next(judged) for _ in written])
        for written in raws
    ]


def entries_of(judged: Sequence[Judged], calling: Calling) -> list[Entry]:
    """The events as a request takes them."""
    return [
        Entry(
            accepted,
            is_new=calling.key is None and "id" not in accepted.claimed,
            row=pack_event(accepted),
        )
        for _, accepted in judged
        if isinstance(accepted, Accepted)
    ]


def _written(said: Said) -> list[bytes] | EventRefused:
    """The bytes of every event."""
    events = said.events
    if not 0 < len(events) <= EVENTS_MAX:
        detail = f"expected 1 to {EVENTS_MAX} events, found {len(events)}"
        return EventRefused(
            detail,
            reason=Reason.TOO_LARGE if events else Reason.ENVELOPE_INVALID,
            remedy="Append what one decision decided; a batch goes to POST /v1/events.",
            faults=(Fault("/events", detail),),
        )
    try:
        return [_encoded(event, nth) for nth, event in enumerate(events)]
    except EventRefused as refused:
        return refused


def _encoded(event: JsonValue, nth: int) -> bytes:
    try:
        return encode(event)
    except NotInProfile as error:
        fault = Fault(f"/events/{nth}", error.detail)
        raise EventRefused(error.detail, reason=error.reason, faults=(fault,)) from None


def _arrivals(calling: Calling, count: int, now: datetime) -> list[Arrival]:
    tenant, via, operator, key = calling.tenant_id, calling.via, calling.operator, calling.key
    if key is None:
        ids = [uuid7() for _ in range(count)]
    else:
        ids = [derived_id(0, tenant, key, str(nth)) for nth in range(count)]
    return [Arrival(now, each, via, tenant, operator=operator) for each in ids]


def _all_good(judged: list[Judged]) -> list[Judged] | EventRefused:
    rejected = [(nth, j.verdict) for nth, j in enumerate(judged) if isinstance(j.verdict, Rejected)]
    return _refused(rejected) if rejected else judged


def _refused(rejected: Sequence[tuple[int, Rejected]]) -> EventRefused:
    """One refusal for all: the code of the first, and the faults of every bad event."""
    first = rejected[0][1]
    faults = tuple(
        Fault(f"/events/{nth}{fault.pointer}", fault.detail)
        for nth, each in rejected
        for fault in each.faults
    )
    counted = f" (and {len(rejected) - 1} other events)" if len(rejected) > 1 else ""
    return EventRefused(
        first.detail + counted,
        reason=first.reason,
        remedy=first.remedy or None,
        faults=faults[:_FAULTS_MAX],
    )
