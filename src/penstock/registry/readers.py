"""Know who reads a field: the triggers, steps and templates that a removed field would break.

The registry does not know them; rooms that do implement `Readers`, and the house joins them. What
another tenant has counts as well, since types are everybody's, but it is not named.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from penstock.envelope.envelope import JsonObject

UNNAMED = "of another tenant"


@dataclass(frozen=True, slots=True)
class Reader:
    """Something that reads one field of one type's payload."""

    kind: str  # trigger, template, step, …
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


class Joined:
    """Several readers as one."""

    def __init__(self, *readers: Readers) -> None:
        self._readers: Sequence[Readers] = readers

    def reading(self, event_type: str, pointers: Collection[str]) -> list[Reader]:
        """What any of them knows, each once."""
        found = (each for one in self._readers for each in one.reading(event_type, pointers))
        return list(dict.fromkeys(found))


class Unnamed:
    """The readers of other tenants: what kind they are and what they read, not whose."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    def reading(self, event_type: str, pointers: Collection[str]) -> list[Reader]:
        """What they read, each kind and place once."""
        found = self._readers.reading(event_type, pointers)
        return list(dict.fromkeys(replace(each, name=UNNAMED) for each in found))
