"""Hold what a check of the log found: how much was looked at, and every damage with its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from penstock.envelope.envelope import JsonObject, JsonValue

DAMAGES_MAX = 100  # of each stretch: a log that was replaced has one at every position


class Damage(NamedTuple):
    """Something that is not what it was, from one position to another."""

    position: int
    last: int
    detail: str

    def __str__(self) -> str:
        if self.position == self.last:
            return f"position {self.position}: {self.detail}"
        return f"positions {self.position} to {self.last}: {self.detail}"


def at(position: int, detail: str, *, last: int | None = None) -> Damage:
    """A damage at one position, or up to `last`."""
    return Damage(position, position if last is None else last, detail)


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What was checked, and what was found."""

    events: int  # rows that were read, each against its own hash
    sealed: int  # positions that a signed checkpoint covers
    tag_rows: int
    seals: int
    checkpoints: int  # signed notes outside the database
    root: str  # of the tree at `sealed`, as it was worked out from the rows
    damages: tuple[Damage, ...]

    @property
    def unsealed(self) -> int:
        """Events since the newest checkpoint: nobody has signed for them yet."""
        return max(0, self.events - self.sealed)

    def to_json(self) -> JsonObject:
        """The report for programs."""
        damages: list[JsonValue] = [
            {"position": d.position, "last": d.last, "detail": d.detail} for d in self.damages
        ]
        return {
            "ok": not self.damages,
            "events": self.events,
            "sealed": self.sealed,
            "unsealed": self.unsealed,
            "tagRows": self.tag_rows,
            "seals": self.seals,
            "checkpoints": self.checkpoints,
            "root": self.root,
            "firstDamage": self.damages[0].position if self.damages else None,
            "damages": damages,
        }
