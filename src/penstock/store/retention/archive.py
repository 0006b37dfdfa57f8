"""Ask an archive whether it has what is to leave: the port that the lake will implement."""

from __future__ import annotations

from typing import Protocol


class Archive(Protocol):
    """Where events are kept for good."""

    def has(self, up_to_position: int, /) -> bool:
        """Whether every event up to that position is in the archive, durable and verified."""
        ...


class NoArchive:
    """No archive: it has nothing, so nothing leaves."""

    def has(self, _up_to_position: int, /) -> bool:
        return False


class WayOut(Protocol):
    """How rows leave an append-only table.

    Triggers refuse every deletion, and switching them off is what `audit verify` exists to find; so
    a way out swaps the table for one that never held the rows, and leaves their seals in place.
    """

    def release(self, up_to_position: int) -> int:
        """Take out every event up to that position; how many those were."""
        ...
