"""Know who reads a field: the triggers, views and templates that a removed field would break.

The registry does not know them; rooms that do implement `Readers`, and the house joins the two.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from penstock.envelope.envelope import JsonObject


@dataclass(frozen=True, slots=True)
class Reader:
    """Something that reads one field of one type's payload."""

    kind: str  # trigger, view, template, …
    name: str
    pointer: str

    def wire(self) -> JsonObject:
        """The reader as the API shows it."""
        return {"kind": self.kind, "name": self.name, "pointer": self.pointer}


class Readers(Protocol):
    """Whoever can say what reads a path."""

    def reading(self, event_type: str, pointers: Collection[str]) -> list[Reader]:
        """Everything that reads one of these places of the type's payload, or below it."""
        ...


class NoReaders:
    """Nothing reads anything: the answer until somebody knows better."""

    def reading(self, event_type: str, pointers: Collection[str]) -> list[Reader]:  # noqa: ARG002
        return []
