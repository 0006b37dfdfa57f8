"""Show the working of a verdict: each comparison with what was actually there.

A trace is made to be read and kept, so values are cut to a size that a person takes in.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.triggers.clause import Leaf

VALUES_SHOWN: Final = 5
CHARS_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Trace:
    """One node of the working: a comparison, or a group of them."""

    operator: str  # of a comparison; else all, any or not
    outcome: bool
    path: str | None = None
    operand: JsonValue = None
    actual: tuple[JsonValue, ...] = ()  # the first findings, cut
    found: int = 0  # how many there were
    inner: tuple[Trace, ...] = ()

    @property
    def missing(self) -> bool:
        """Whether the path led nowhere."""
        return self.path is not None and self.found == 0

    def wire(self) -> JsonObject:
        """The working as the API shows it."""
        said: JsonObject = {"operator": self.operator, "outcome": self.outcome}
        if self.path is None:
            return said | {"inner": [each.wire() for each in self.inner]}
        return said | {
            "path": self.path,
            "operand": self.operand,
            "actual": list(self.actual),
            "found": self.found,
            "missing": self.missing,
        }


def leaf_trace(leaf: Leaf, found: list[Any], *, outcome: bool) -> Trace:
    """The working of one comparison."""
    operand: JsonValue = list(leaf.values) if leaf.values is not None else leaf.value
    actual = tuple(cut(value) for value in found[:VALUES_SHOWN])
    return Trace(str(leaf.operator), outcome, leaf.path, operand, actual, len(found))


def cut(value: Any) -> JsonValue:
    """A value short enough to read; an array or object as the beginning of its JSON."""
    if isinstance(value, str):
        return value if len(value) <= CHARS_SHOWN else f"{value[:CHARS_SHOWN]}…"
    if value is None or isinstance(value, bool | int | float | Decimal):
        return value
    text = encode(value).decode()
    return value if len(text) <= CHARS_SHOWN else f"{text[:CHARS_SHOWN]}…"
