"""Hold one append on its way into the log, and what became of it.

    events ── judge ──▶ Request ── Log.commit ──▶ Appended | AppendConflict | …

A request is all or nothing. What a log refuses it gives back as a value, so that one refused append
does not spoil those that share its commit. An event that a request names twice is stored once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from penstock.base.errors import (
    AppendConflict,
    ConditionInvalid,
    EventRefused,
    Fault,
    QueryTooSlow,
)
from penstock.envelope.envelope import Stored
from penstock.ingress.verdict import Accepted, Reason, conflict
from penstock.store.append.condition import Condition, Criteria
from penstock.store.append.packed import Packed, pack

EVENTS_MAX = 1_000  # in one append: they are stored under one lock
CONFLICTS_SHOWN = 10
NO_CONDITION = Condition()


class Entry(NamedTuple):
    """One event to append."""

    accepted: Accepted
    is_new: bool  # its id was made for this very call, so the log cannot have it
    row: bytes  # as it goes to the log, hashed; written before anybody waits for it


@dataclass(frozen=True, slots=True)
class Request:
    """Events of one tenant to append together; use `request` to build one."""

    tenant_id: str
    entries: tuple[Entry, ...]
    places: tuple[int, ...]  # for each event as it was given: which entry it is
    condition: Condition = NO_CONDITION
    packed: Packed | None = None  # None: too much for the quick way


class Appended(NamedTuple):
    """Where the events are, in the order they were given."""

    positions: tuple[int, ...]

    @property
    def after(self) -> int:
        """What the next append to the same boundary may say it has seen."""
        return max(self.positions)


@dataclass(frozen=True, slots=True)
class Found:
    """Matching events, oldest first, and up to where the log was looked at to find them."""

    events: list[Stored]
    after: int


Outcome: TypeAlias = Appended | AppendConflict | EventRefused | ConditionInvalid | QueryTooSlow
Outcomes: TypeAlias = Callable[[], Sequence[Outcome]]  # waits for them


class Log(Protocol):
    """Where appends go, and where decisions read."""

    def commit(self, requests: Sequence[Request]) -> Sequence[Outcome]:
        """Make each durable or refuse it, in their order; StoreUnavailable when none is known."""
        ...

    def send(self, requests: Sequence[Request]) -> Outcomes:
        """As `commit`, without waiting for it: those sent before come first, and are seen."""
        ...

    def read(self, tenant_id: str, criteria: Criteria, *, after: int, limit: int) -> Found:
        """The first matching events after a position, and the end of the log, at one moment."""
        ...

    def close(self) -> None: ...


def request(tenant_id: str, entries: Sequence[Entry], condition: Condition | None) -> Request:
    """The request; EventRefused when it gives one id two contents."""
    firsts: dict[str, int] = {}
    unique: list[Entry] = []
    places = []
    for nth, entry in enumerate(entries):
        place = firsts.setdefault(entry.accepted.envelope.id, len(unique))
        if place == len(unique):
            unique.append(entry)
        elif unique[place].accepted.content_hash != entry.accepted.content_hash:
            raise id_taken([nth], entry.accepted)
        places.append(place)
    condition = condition or NO_CONDITION
    packed = pack(tenant_id, [entry.row for entry in unique], condition)
    return Request(tenant_id, tuple(unique), tuple(places), condition, packed)


def id_taken(nths: Sequence[int], accepted: Accepted) -> EventRefused:
    """The refusal of an append with an id that has another content."""
    rejected = conflict(b"", accepted.envelope)
    return EventRefused(
        rejected.detail,
        reason=Reason.ID_CONFLICT,
        remedy=rejected.remedy,
        faults=tuple(Fault(f"/events/{nth}/id", rejected.detail) for nth in nths),
    )


def too_far(condition: Condition, head: int) -> ConditionInvalid:
    """The refusal of a condition that begins where the log has not been yet."""
    return ConditionInvalid(
        f"expected a position up to {head}, found {condition.after}",
        pointer="/condition/after",
        remedy="Take `after` from POST /v1/decide/read of this very log; a position of another one"
        " would let everything pass.",
    )
