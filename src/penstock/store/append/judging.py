"""Judge the events of an append: all of them are good, or none is taken.

    events ── judge each ──▶ entries, or EventRefused with every fault under /events/<n>

Pure but for the ids it makes. Each event goes through its own bytes, so that the limits of the
strict profile hold for it as they do at every other door.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.base.errors import EventRefused, Fault, NotInProfile
from penstock.base.ids import derived_id, uuid7
from penstock.envelope.codec import encode
from penstock.envelope.envelope import DEFAULT_TENANT, JsonValue
from penstock.ingress.lot import Judged
from penstock.ingress.pipeline import judge
from penstock.ingress.verdict import Accepted, Arrival, Reason, Rejected, Via
from penstock.registry.registry import Registry
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


def judge_all(
    events: Sequence[JsonValue], calling: Calling, registry: Registry, *, now: datetime
) -> list[Judged]:
    """Every event with its verdict, which is Accepted; else EventRefused."""
    if not 0 < len(events) <= EVENTS_MAX:
        detail = f"expected 1 to {EVENTS_MAX} events, found {len(events)}"
        raise EventRefused(
            detail,
            reason=Reason.TOO_LARGE if events else Reason.ENVELOPE_INVALID,
            remedy="Append what one decision decided; a batch goes to POST /v1/events.",
            faults=(Fault("/events", detail),),
        )
    judged = [_judge(event, nth, calling, registry, now) for nth, event in enumerate(events)]
    rejected = [(nth, j.verdict) for nth, j in enumerate(judged) if isinstance(j.verdict, Rejected)]
    if rejected:
        raise _refused(rejected)
    return judged


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


def _judge(
    event: JsonValue, nth: int, calling: Calling, registry: Registry, now: datetime
) -> Judged:
    tenant, key = calling.tenant_id, calling.key
    fallback = uuid7() if key is None else derived_id(0, tenant, key, str(nth))
    arrival = Arrival(now, fallback, calling.via, tenant, operator=calling.operator)
    try:
        raw = encode(event)
    except NotInProfile as error:
        raise EventRefused(
            error.detail, reason=error.reason, faults=(Fault(f"/events/{nth}", error.detail),)
        ) from None
    return Judged(raw, judge(raw, arrival, registry))


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
