"""Pack a request as `append_quick` takes it, before anybody waits for it.

    entries, condition ── pack ──▶ Packed ── joined with those of a batch ──▶ seven parameters
                                      └── alone, and of one event ──▶ the five of `append_one`

Putting a batch together happens while all its callers wait, so what can be done beforehand is done
here, by each caller: a request keeps its events and criteria as elements of the arrays to send,
and what it adds to the ledger of each source. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias

from penstock.envelope.envelope import Envelope
from penstock.store.append.arrays import INT8, array_of, sized
from penstock.store.append.condition import Condition, Criterion
from penstock.store.append.rows import pack_source

QUICK_FORMS = (1,) * 7  # all binary
ONE_FORMS = (1,) * 5
_SIZE = 4
_MILLISECOND = timedelta(milliseconds=1)
_LONG = struct.Struct("!q").pack
_LONG_ELEMENT = struct.Struct("!iq").pack
Key: TypeAlias = tuple[str, str]  # tenant, source


class Sourced(NamedTuple):
    """What one source appends, and how late it comes."""

    events: int
    lag_total_ms: int
    lag_last_ms: int
    lag_max_ms: int
    last_at: datetime


class Packed(NamedTuple):
    """A request whose criteria are one tag each, ready to be joined with others."""

    events: int
    rows: bytes
    criteria: int
    tenants: bytes
    tags: bytes
    afters: bytes
    after: int  # the furthest place that a criterion names
    sources: tuple[tuple[Key, Sourced], ...]


class Kinds(NamedTuple):
    """The names of our own types on the wire; every database gives them others."""

    row: int
    source: int


def pack(
    tenant_id: str,
    events: Sequence[tuple[Envelope, bytes]],
    condition: Condition,
    now: datetime,
) -> Packed | None:
    """The request; None when a criterion asks for more than one tag."""
    clauses = list(condition.clauses())
    if not all(is_one_tag(criterion) for criterion, _, _ in clauses):
        return None
    tags = [sized(f"{c.tags[0][0]}:{c.tags[0][1]}".encode()) for c, _, _ in clauses]
    return Packed(
        len(events),
        b"".join([sized(row) for _, row in events]),
        len(clauses),
        sized(tenant_id.encode()) * len(clauses),
        b"".join(tags),
        b"".join([_LONG_ELEMENT(8, after) for _, after, _ in clauses]),
        condition.after or 0,
        _sources([event for event, _ in events], now),
    )


def quick_parameters(batch: Sequence[Packed], kinds: Kinds) -> list[bytes]:
    """The parameters of `append_quick`."""
    events, rows, criteria, tenants, tags, afters, furthest, sources = zip(*batch, strict=True)
    asked = sum(criteria)
    added = [pack_source(*key, each[:4], each.last_at) for key, each in _together(sources)]
    return [
        _LONG(max(furthest)),
        _LONG(sum(events)),
        array_of(b"".join(rows), sum(events), kinds.row),
        array_of(b"".join(tenants), asked),
        array_of(b"".join(tags), asked),
        array_of(b"".join(afters), asked, INT8),
        array_of(b"".join(map(sized, added)), len(added), kinds.source),
    ]


def is_one(packed: Packed) -> bool:
    """Whether it is one event on one tag at most, as nearly all are."""
    return packed.events == 1 and packed.criteria <= 1


def one_parameters(packed: Packed) -> list[bytes]:
    """The parameters of `append_one`; an element of an array begins with its size."""
    ((tenant_id, source), figures) = packed.sources[0]
    return [
        tenant_id.encode(),
        packed.tags[_SIZE:],  # no tag is empty: where none is asked for, none is found
        _LONG(packed.after),
        packed.rows[_SIZE:],
        pack_source(tenant_id, source, figures[:4], figures.last_at),
    ]


def is_one_tag(criterion: Criterion) -> bool:
    """Whether a criterion is one tag of any type, as nearly all are."""
    return len(criterion.tags) == 1 and not criterion.types


def _sources(events: Iterable[Envelope], now: datetime) -> tuple[tuple[Key, Sourced], ...]:
    found = [_source(event, now) for event in events]
    return tuple(found if len(found) == 1 else _together([found]))


def _source(event: Envelope, now: datetime) -> tuple[Key, Sourced]:
    lag = max(0, (now - event.occurred_at) // _MILLISECOND)
    return (event.tenant_id, event.source), Sourced(1, lag, lag, lag, event.occurred_at)


def _together(
    parts: Iterable[Iterable[tuple[Key, Sourced]]],
) -> Iterable[tuple[Key, Sourced]]:
    """What each source adds in all; the last one that speaks has the last word."""
    found: dict[Key, Sourced] = {}
    for part in parts:
        for key, new in part:
            old = found.get(key)
            found[key] = new if old is None else Sourced(
                old.events + new.events, old.lag_total_ms + new.lag_total_ms, new.lag_last_ms,
                max(old.lag_max_ms, new.lag_max_ms), new.last_at,
            )  # fmt: skip
    return found.items()
