"""Try a proposed schema on payloads that were really stored, newest first, within limits.

    newest page ─▶ next page ─▶ … ──▶ Evidence: of 12,431 events 313 would fail, grouped by cause
       └ until the window, the events or the time are used up: then it is not complete, and says so

What is said of an event is where and why it would fail, never what it holds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from penstock.base.clock import format_instant
from penstock.base.errors import Fault, QueryTooSlow
from penstock.envelope.envelope import JsonObject, JsonValue

EVENTS_MAX = 200_000
PAGE_EVENTS = 2_000
_GROUPS_MAX = 20
_SAMPLES_MAX = 3
_SOURCES_MAX = 5
_INDEX = re.compile(r"/\d+(?=/|$)")


@dataclass(frozen=True, slots=True)
class KeptPayload:
    """A stored payload, and what is needed to name its event."""

    position: int
    event_id: str
    source: str
    schema_version: int | None
    payload: JsonValue


class StoredPayloads(Protocol):
    """Where stored payloads are read from, a page at a time."""

    def page(
        self, tenant_id: str, event_type: str, *, before: int | None, since: datetime,
        limit: int, within_s: float,
    ) -> list[KeptPayload]:  # fmt: skip
        """The newest events below a position that were received since; QueryTooSlow."""
        ...


@dataclass(frozen=True, slots=True)
class Window:
    """How far to look: so many days back, so many events, so much time."""

    since: datetime
    days: int
    events_max: int = EVENTS_MAX
    seconds_max: float = 10.0


@dataclass(frozen=True, slots=True)
class Group:
    """Events that would fail at the same place for the same reason."""

    pointer: str
    detail: str
    events: int
    sources: tuple[tuple[str, int], ...]
    samples: tuple[tuple[str, int], ...]  # id and position

    def wire(self) -> JsonObject:
        return {
            "pointer": self.pointer,
            "detail": self.detail,
            "events": self.events,
            "sources": [{"source": name, "events": count} for name, count in self.sources],
            "samples": [{"id": name, "position": str(place)} for name, place in self.samples],
        }


@dataclass(frozen=True, slots=True)
class Evidence:
    """What stored events say about a proposed schema."""

    window: Window
    examined: int
    failing: int
    groups: tuple[Group, ...]
    is_complete: bool  # every event of the window was looked at

    @property
    def sentence(self) -> str:
        """The finding in words."""
        newest = "" if self.is_complete else "the newest "
        days = f"{self.window.days} days" if self.window.days != 1 else "day"
        of = f"of {newest}{counted(self.examined)} of the last {days}"
        if not self.failing:
            return f"{of} none would fail"
        causes = [f"{g.pointer or 'the payload'} {g.detail} ({g.events:,})" for g in self.groups]
        return f"{of} {self.failing:,} would fail: {'; '.join(causes)}"

    def wire(self) -> JsonObject:
        """The evidence as the API shows it."""
        return {
            "examined": self.examined,
            "failing": self.failing,
            "complete": self.is_complete,
            "days": self.window.days,
            "since": format_instant(self.window.since),
            "groups": [group.wire() for group in self.groups],
        }


@dataclass(slots=True)
class _Cause:
    events: int = 0
    sources: Counter[str] = field(default_factory=Counter)
    samples: list[tuple[str, int]] = field(default_factory=list)


def counted(events: int) -> str:
    """So many events, in words."""
    return f"{events:,} event" if events == 1 else f"{events:,} events"


def gather(
    stored: StoredPayloads,
    faults_of: Callable[[KeptPayload], Sequence[Fault]],
    window: Window,
    *,
    tenant_id: str,
    event_type: str,
    seconds: Callable[[], float],
) -> Evidence:
    """Ask of every stored event in the window what would be wrong with it."""
    causes: dict[tuple[str, str], _Cause] = {}
    examined = failing = 0
    before: int | None = None
    ends = seconds() + window.seconds_max
    complete = False
    while examined < window.events_max and (left := ends - seconds()) > 0:
        limit = min(PAGE_EVENTS, window.events_max - examined)
        try:
            page = stored.page(
                tenant_id, event_type, before=before, since=window.since, limit=limit,
                within_s=left,
            )  # fmt: skip
        except QueryTooSlow:
            break
        for kept in page:
            failing += _note(causes, kept, faults_of(kept))
        examined += len(page)
        complete = len(page) < limit
        if complete:
            break
        before = page[-1].position
    return Evidence(window, examined, failing, _ranked(causes), complete)


def _note(
    causes: dict[tuple[str, str], _Cause], kept: KeptPayload, faults: Sequence[Fault]
) -> bool:
    """Count an event under each of its causes once; whether it has any."""
    for key in {(_INDEX.sub("/*", fault.pointer), fault.detail) for fault in faults}:
        cause = causes.setdefault(key, _Cause())
        cause.events += 1
        cause.sources[kept.source] += 1
        if len(cause.samples) < _SAMPLES_MAX:
            cause.samples.append((kept.event_id, kept.position))
    return bool(faults)


def _ranked(causes: dict[tuple[str, str], _Cause]) -> tuple[Group, ...]:
    ranked = sorted(causes.items(), key=lambda item: (-item[1].events, item[0]))
    return tuple(
        Group(
            pointer,
            detail,
            cause.events,
            tuple(cause.sources.most_common(_SOURCES_MAX)),
            tuple(cause.samples),
        )
        for (pointer, detail), cause in ranked[:_GROUPS_MAX]
    )
