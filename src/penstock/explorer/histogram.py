"""Spread matching events over time: equal buckets by when they occurred, counted per severity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from penstock.base.clock import format_instant
from penstock.base.errors import QueryInvalid
from penstock.envelope.envelope import JsonObject, Severity
from penstock.store.query import EventQuery, read_integer, read_query

BUCKETS_MAX = 200
BUCKETS_DEFAULT = 60
SPAN_DEFAULT = timedelta(hours=1)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Events that occurred from `start` on and before `end`, by severity; silence is left out.

    The last bucket of a histogram also holds the very end of the stretch, which a query includes.
    """

    start: datetime
    end: datetime
    counts: Mapping[Severity, int] = field(default_factory=dict)

    @property
    def events(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class Ruler:
    """Where buckets begin: `buckets` of them, `step` apart, from `start` on."""

    start: datetime
    step: timedelta
    buckets: int


def read_histogram(params: Sequence[tuple[str, str]], *, tenant_id: str) -> tuple[EventQuery, int]:
    """The query and the number of buckets, from HTTP parameters."""
    query, _, cursor = read_query(params, tenant_id=tenant_id, also=("buckets",))
    if cursor is not None or any(name == "limit" for name, _ in params):
        raise QueryInvalid(
            "expected neither limit nor cursor: a histogram has no pages",
            parameter="limit" if cursor is None else "cursor",
        )
    said = [value for name, value in params if name == "buckets"]
    if len(said) > 1:
        raise QueryInvalid("expected buckets once", parameter="buckets")
    try:
        buckets = read_integer(said[0]) if said else BUCKETS_DEFAULT
    except ValueError as error:
        raise QueryInvalid(str(error), parameter="buckets") from None
    return query, max(1, min(BUCKETS_MAX, buckets))


def window_of(query: EventQuery, now: datetime) -> tuple[datetime, datetime]:
    """Both ends of the stretch of time that a query means: by default the hour that ends now."""
    first, last = query.occurred_from, query.occurred_to
    if last is None:
        last = now if first is None or first <= now else first + SPAN_DEFAULT
    return (last - SPAN_DEFAULT if first is None else first), last


def rule(first: datetime, last: datetime, buckets: int) -> Ruler:
    """At most `buckets` equal buckets of whole milliseconds: an hour in sixty has whole minutes."""
    span = last - first
    step = max(_MILLISECOND, _MILLISECOND * -(-span // (_MILLISECOND * buckets)))
    return Ruler(first, step, buckets=max(1, -(-span // step)))


def fill(ruler: Ruler, counted: Iterable[tuple[datetime, Severity, int]]) -> list[Bucket]:
    """Every bucket in order, the silent ones too; `counted` says where a bucket starts."""
    found: list[dict[Severity, int]] = [{} for _ in range(ruler.buckets)]
    for start, severity, events in counted:
        counts = found[min((start - ruler.start) // ruler.step, ruler.buckets - 1)]
        counts[severity] = counts.get(severity, 0) + events
    starts = [ruler.start + n * ruler.step for n in range(ruler.buckets)]
    return [
        Bucket(start, start + ruler.step, counts)
        for start, counts in zip(starts, found, strict=True)
    ]


def histogram_wire(buckets: Sequence[Bucket]) -> JsonObject:
    """The answer as JSON."""
    return {
        "buckets": [
            {
                "start": format_instant(bucket.start),
                "end": format_instant(bucket.end),
                "count": bucket.events,
                "severities": {str(s): bucket.counts[s] for s in Severity if s in bucket.counts},
            }
            for bucket in buckets
        ]
    }
