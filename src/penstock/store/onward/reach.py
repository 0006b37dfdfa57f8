"""Decide how a reader who goes on from a position gets to the next events it wants.

    the next few positions ── a page full of matches? ──▶ done: they are common here
                                     │ no
              the next entries of each index ── choose ──▶ the index that leads furthest,
                                                           or a longer stretch of the log

Nothing is looked at without bound: an index up to some entries, the log up to some positions. How
far that led is part of the answer, so whoever asks goes on from there, and no query on a long log
is too slow to get past. tests/store/onward holds it to reading everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.envelope.envelope import Stored
from penstock.envelope.names import is_glob
from penstock.store.query import EventQuery
from penstock.store.walk.choose import Walk

ENTRIES_MAX = 512  # of one index, for one page
_ENTRIES_MIN = 16  # of each value, however many there are
_NEAR = 4  # positions per wanted event in which a page of common events is full
_APART = 4  # positions that an index leads past for each event, to be worth it
FAR = 10_000  # positions of the log that are filtered at once where no index helps


@dataclass(frozen=True, slots=True)
class Stretch:
    """Matching events, oldest first: all that there are up to the position `through`."""

    events: list[Stored]
    through: int


@dataclass(frozen=True, slots=True)
class Span:
    """The positions after `after`, up to `until`."""

    after: int
    until: int

    def first(self, positions: int) -> Span:
        """Its beginning."""
        return Span(self.after, min(self.until, self.after + positions))


@dataclass(frozen=True, slots=True)
class Reach:
    """Where an index leads: up to `through` no other event than those at `positions` matches."""

    positions: list[int]
    through: int


def asks_for_all(query: EventQuery) -> bool:
    """Whether every event of the tenant is wanted."""
    return query == EventQuery(query.tenant_id)


def near(span: Span, limit: int) -> Span:
    """Where a page of `limit` events is found if they are common."""
    return span.first(_NEAR * limit)


def far(span: Span) -> Span:
    """As much of the log as is held against the filters at once."""
    return span.first(FAR)


def exact_types(query: EventQuery) -> list[str] | None:
    """The names of the query's types, None when there are globs among them."""
    return None if any(map(is_glob, query.types)) else list(query.types)


def stretch(events: list[Stored], span: Span, limit: int) -> Stretch:
    """What was found in a span when `limit` events were asked for."""
    return Stretch(events, events[-1].position if len(events) >= limit else span.until)


def entries_of(walk: Walk) -> int:
    """How many entries of each value of a walk are looked at."""
    return max(_ENTRIES_MIN, ENTRIES_MAX // max(1, len(walk.values)))


def reach(span: Span, entries: Sequence[Sequence[int]], most: int) -> Reach:
    """Where the `entries` of each value lead when at most so many of each were looked at.

    A value with that many may have more behind them, so nothing is known past its last one.
    """
    full = [each[-1] for each in entries if len(each) >= most]
    through = min(full, default=span.until)
    positions = sorted({p for each in entries for p in each if p <= through})
    if len(positions) > ENTRIES_MAX:
        positions = positions[:ENTRIES_MAX]
        through = positions[-1]
    return Reach(positions, through)


def choose(span: Span, reaches: Sequence[Reach]) -> Reach | None:
    """The reach that leads furthest for each event to look at; None when the log is no longer.

    Events found by an index lie apart and cost more each, so it has to lead past several.
    """
    best = max(reaches, key=lambda each: _pace(span, each), default=None)
    return best if best is not None and _pace(span, best) >= _APART else None


def _pace(span: Span, each: Reach) -> float:
    return (each.through - span.after) / max(1, len(each.positions))
