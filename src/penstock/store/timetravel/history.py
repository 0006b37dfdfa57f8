"""Say what time travel asks of a store: the events of a boundary in order, and where moments lie.

Everything here only reads. Positions are gapless and commit-ordered, so what lies at or before a
moment never changes, and a history can be read a stretch at a time without holding anything open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from penstock.envelope.envelope import Stored
from penstock.store.timetravel.boundary import Boundary
from penstock.store.timetravel.moment import Moment

STRETCH = 500  # entries of an index that are looked at in one go


@dataclass(frozen=True, slots=True)
class Stretch:
    """All events of a boundary from where the last stretch ended up to a position."""

    events: list[Stored]
    upto: int


class History(Protocol):
    """The log, as seen by somebody who looks back."""

    def head(self) -> Moment:
        """The newest position."""
        ...

    def locate(self, asked: int | datetime) -> Moment:
        """The position asked for, or the last one received by an instant."""
        ...

    def walk(
        self, boundary: Boundary, *, after: int, upto: int, size: int = STRETCH
    ) -> Iterator[Stretch]:
        """The events after a position, oldest first; the last stretch ends at `upto`."""
        ...

    def has_grown(self, boundary: Boundary, *, after: int, by: int) -> bool:
        """Whether a boundary may have got so many events since."""
        ...

    def find(self, tenant_id: str, event_id: str) -> Stored | None:
        """One event by its id."""
        ...
