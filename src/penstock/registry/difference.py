"""Say what changed between two schemas, one place and one sentence at a time.

narrows   a payload that fitted before may not fit now: publishers and stored events break
widens    a payload that fits now may not have fitted before: readers of the old version break
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from penstock.envelope.envelope import JsonObject


class Change(StrEnum):
    """What happened at a place."""

    ADDED = "added"  # a field that was not declared before
    REMOVED = "removed"  # a field that is not declared any more
    REQUIRED = "required"  # a field that must be there now
    OPTIONAL = "optional"  # a field that may be missing now
    RETYPED = "retyped"  # another kind of value
    NARROWED = "narrowed"  # fewer values than before
    WIDENED = "widened"  # more values than before
    CHANGED = "changed"  # both, or nobody can tell


@dataclass(frozen=True, slots=True)
class Difference:
    """One change at one place of the payload; `*` in the pointer stands for any item or name."""

    pointer: str
    change: Change
    detail: str
    narrows: bool = False
    widens: bool = False

    @property
    def sentence(self) -> str:
        """The change in words that stand alone."""
        return f"{self.pointer or 'the payload'} {self.detail}"

    def wire(self) -> JsonObject:
        """The difference as the API shows it."""
        return {
            "pointer": self.pointer,
            "change": self.change.value,
            "detail": self.detail,
            "breaksBackward": self.narrows,
            "breaksForward": self.widens,
        }


def narrowed(pointer: str, detail: str) -> Difference:
    """Fewer values fit than before."""
    return Difference(pointer, Change.NARROWED, detail, narrows=True)


def widened(pointer: str, detail: str) -> Difference:
    """More values fit than before."""
    return Difference(pointer, Change.WIDENED, detail, widens=True)


def changed(pointer: str, detail: str) -> Difference:
    """Other values fit than before, as far as anybody can tell."""
    return Difference(pointer, Change.CHANGED, detail, narrows=True, widens=True)
