"""List the shapes that events arrive in beside our own: each a recogniser and two functions.

    tree ── dialect_of ──▶ Dialect ── to_native ──▶ native wire form, judged like any other
                              │      ◀─ from_stored ── Stored
                              └────── in_words_of ──▶ faults at the places that the sender knows

The bus envelope of seed 001 is the native form and has no dialect. Which shape came is not kept:
four arrive, one is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from penstock.base.errors import Fault
from penstock.catalog import cloudevents, cloudevents_attributes, domain_event, governed_event
from penstock.envelope.envelope import JsonObject, Stored


@dataclass(frozen=True, slots=True)
class Dialect:
    """One shape: how to know it, to read it and to write it."""

    name: str
    mark: str  # a key that every event in this shape has, and none in the native form
    recognises: Callable[[JsonObject], bool]
    to_native: Callable[[JsonObject], JsonObject | tuple[Fault, ...]]
    from_stored: Callable[[Stored], JsonObject]
    places: Mapping[str, str]  # field of ours -> where it stands in theirs

    def in_words_of(self, fault: Fault) -> Fault:
        """A fault of the native form, at the place of the document that was sent."""
        field, slash, rest = fault.pointer[1:].partition("/")
        place = self.places.get(field, field)
        return Fault(f"/{place}{slash}{rest}", fault.detail) if fault.pointer else fault


DIALECTS: Final = (
    Dialect(
        "cloudevents",
        "specversion",
        cloudevents.recognises,
        cloudevents.to_native,
        cloudevents.from_stored,
        {ours: theirs for theirs, ours in cloudevents_attributes.SAME.items()},
    ),
    Dialect(
        "governed",
        "version",
        governed_event.recognises,
        governed_event.to_native,
        governed_event.from_stored,
        governed_event.PLACES,
    ),
    Dialect(
        "domain",
        "timestamp",
        domain_event.recognises,
        domain_event.to_native,
        domain_event.from_stored,
        domain_event.PLACES,
    ),
)


def dialect_of(tree: JsonObject) -> Dialect | None:
    """The dialect that a message speaks; None when it is in the native form, or in no form."""
    for dialect in DIALECTS:
        if dialect.mark in tree and dialect.recognises(tree):
            return dialect
    return None
