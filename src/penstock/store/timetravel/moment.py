"""Name a moment: a position of the log, or an instant, which names one too.

    asOf=1042                      that position
    asOf=2026-03-01T12:00:00Z      the last position received by then, to the millisecond
    nothing                        now: the newest position

Received times never go back along positions, so the past named by an instant never changes. The
future is refused, because it would.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from penstock.base.clock import format_instant
from penstock.base.errors import QueryInvalid
from penstock.envelope.envelope import JsonObject
from penstock.store.values import first_of, read_place

AsOf: TypeAlias = "int | datetime | None"  # None is now


@dataclass(frozen=True, slots=True)
class Moment:
    """A place in the log, and when the log reached it: None before the first event."""

    position: int
    at: datetime | None

    def to_json(self) -> JsonObject:
        at = None if self.at is None else format_instant(self.at)
        return {"position": str(self.position), "at": at}


START = Moment(0, None)


def read_as_of(text: str, parameter: str) -> int | datetime:
    """The position or the instant that a parameter says; else QueryInvalid."""
    try:
        return read_place(text)
    except ValueError:
        raise QueryInvalid(
            f"expected a position or an RFC 3339 instant with an offset, found {text[:40]!r}",
            parameter=parameter,
            remedy="Write 1042 or 2026-03-01T12:00:00Z; in a URL the + of an offset is %2B.",
        ) from None


def refuse_future(asked: int | datetime, *, head: Moment, now: datetime, parameter: str) -> None:
    """Refuse a moment that has not come."""
    if isinstance(asked, int):
        known, found = asked <= head.position, str(asked)
        limit = f"a position up to {head.position}, the newest"
    else:
        latest = now if head.at is None else max(now, head.at)
        known = first_of(asked) <= latest
        limit, found = f"an instant up to {format_instant(latest)}, which is now", asked.isoformat()
    if not known:
        raise QueryInvalid(
            f"expected {limit}, found {found}",
            parameter=parameter,
            remedy=f"The future is not known. Leave {parameter} out for the newest state.",
        )
