"""Decide what one subscriber reads next, so that it sees every event once, in order.

    HISTORY ── close enough ──▶ JOINING ── page sent ──▶ LIVE
       ▲                           │ overflow              │ overflow: `lagged`
       └───────────────────────────┴───────────────────────┘

In HISTORY the subscriber reads pages by position at its own pace. It joins when one page surely
reaches the live position: from that moment on the hub keeps later events for it, and the page
brings the rest. Rows after the live position are left to the hub, so nothing comes twice and
nothing is missed; tests/stream/test_feed.py walks random logs through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class Mode(StrEnum):
    """Where a subscriber's next events come from."""

    HISTORY = "history"  # pages of the log
    JOINING = "joining"  # one last page; the hub already keeps what comes after it
    LIVE = "live"  # the hub


@dataclass(frozen=True, slots=True)
class Feed:
    """How far a subscriber has come: everything up to `position` was read for it."""

    position: int
    mode: Mode


@dataclass(frozen=True, slots=True)
class Read:
    """The page to read next: so many matches at most. Those after `until` are not for this page."""

    after: int
    limit: int
    until: int


@dataclass(frozen=True, slots=True)
class Hole:
    """Positions missing from a log that has no gaps: an alarm."""

    first: int
    last: int


def begin(after: int | None, live: int) -> Feed:
    """A new subscriber: live from now on, or from a position it had before."""
    return Feed(live, Mode.LIVE) if after is None else Feed(after, Mode.HISTORY)


def plan(feed: Feed, live: int, limit: int) -> tuple[Feed, Read | None]:
    """What to read before going live; None when nothing is left to read."""
    if feed.position >= live:
        return replace(feed, mode=Mode.LIVE), None
    # No more than this many events are left, so a page of `limit` of them reaches `live`.
    close = live - feed.position <= limit
    mode = Mode.JOINING if close else Mode.HISTORY
    return replace(feed, mode=mode), Read(after=feed.position, limit=limit, until=live)


def turn(feed: Feed, read: Read, through: int) -> Feed:
    """The feed after a page that has everything of its subscriber up to `through`.

    A page that did not come to `until` was full or found no room; the hub must not go on from it.
    """
    if through >= read.until:
        return replace(feed, position=read.until)
    return Feed(through, Mode.HISTORY)


def fall_back(position: int) -> Feed:
    """The feed of a subscriber whose buffer overflowed: it reads on from what it was handed."""
    return Feed(position, Mode.HISTORY)


def next_limit(limit: int, looked_at: int, *, cut: bool, limit_max: int) -> int:
    """How many rows to ask for next, so that big events are not read only to be thrown away."""
    return max(1, looked_at) if cut else min(limit_max, limit * 2)


def holes(after: int, positions: Sequence[int]) -> list[Hole]:
    """What is missing in a run of the whole log, all tenants, that starts after `after`."""
    found = []
    for position in positions:
        if position != after + 1:
            found.append(Hole(after + 1, position - 1))
        after = position
    return found
