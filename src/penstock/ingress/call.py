"""Keep the books of one publish call, from judging to answering.

    add each item ──▶ settle(what is known) ──▶ fresh: to be queued · refused: to be kept · outcomes

Pure: who is asked about known ids, and when, is the door's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal, NamedTuple

from penstock.envelope import check
from penstock.envelope.envelope import Envelope, JsonObject
from penstock.ingress.recent import Key, RecentIds
from penstock.ingress.verdict import Accepted, Rejected, Verdict, Via, conflict
from penstock.transport.port import UNBOUND, Message

_new = tuple.__new__  # several are made for every event, and their own way of making is slower


class DoorOutcome(NamedTuple):
    """What the caller hears about one item."""

    id: str | None
    status: Literal["accepted", "duplicate", "rejected"]
    accepted_at: datetime
    envelope: Envelope | None = None
    rejected: Rejected | None = None

    @property
    def event(self) -> JsonObject | None:
        """The event as it will be stored, on the wire; written only for those who ask."""
        return None if self.envelope is None else check.write(self.envelope)


class Fresh(NamedTuple):
    """An event that is to be queued."""

    key: Key
    content_hash: bytes
    written: bytes


class Call:
    """One publish call."""

    def __init__(self, now: datetime, via: Via, recent: RecentIds, *, derived: bool) -> None:
        self.now = now
        self.at_ms = round(now.timestamp() * 1000)
        self._via = via
        self._recent = recent
        self._derived = derived  # ids come from an Idempotency-Key, so the store may know them
        self._judged: list[tuple[bytes, Verdict, bytes]] = []
        self._seen: dict[Key, bytes] = {}
        self._outcomes: list[DoorOutcome] = []
        self.unsure: list[Key] = []
        self.fresh: list[Fresh] = []
        self.refused: list[Rejected] = []

    def add(self, raw: bytes, verdict: Verdict, written: bytes) -> None:
        """Take in one item, its verdict, and what would be queued."""
        self._judged.append((raw, verdict, written))

    def recall(self) -> None:
        """Sort the items by what was accepted lately; `unsure` are the ids to ask the store for."""
        said = [
            _key(verdict)
            for _, verdict, _ in self._judged
            if isinstance(verdict, Accepted) and (self._derived or "id" in verdict.claimed)
        ]
        found = self._recent.find(said)
        self.unsure = [
            key
            for key in said
            if key not in found and (self._derived or self._recent.may_be_known(key[1]))
        ]
        self.settle(found)

    def settle(self, known: Mapping[Key, bytes]) -> None:
        """Sort the items by what is known: new ones, repeats, and what is refused."""
        self._seen.update(known)
        self.fresh, self.refused, self._outcomes = [], [], []
        seen = dict(self._seen)
        for raw, verdict, written in self._judged:
            if isinstance(verdict, Rejected):
                self._refuse(verdict)
                continue
            key = _key(verdict)
            before = seen.get(key)
            if before is None:
                content = seen[key] = verdict.content_hash
                self.fresh.append(_new(Fresh, (key, content, written)))
                self._answer(verdict.envelope, "accepted")
            elif before == verdict.content_hash:
                self._answer(verdict.envelope, "duplicate")
            else:
                self._refuse(conflict(raw, verdict.envelope, self._via))

    def outcomes(self) -> list[DoorOutcome]:
        """What the caller hears, in the order of the items."""
        return self._outcomes

    def messages(self, written: Iterable[tuple[bytes, str]]) -> list[Message]:
        """What goes on the queue, of bytes and their tenants."""
        at_ms, via = self.at_ms, self._via
        return [_new(Message, (each, at_ms, tenant or UNBOUND, via)) for each, tenant in written]

    def _refuse(self, rejected: Rejected) -> None:
        self.refused.append(rejected)
        self._outcomes.append(DoorOutcome(rejected.event_id, "rejected", self.now, None, rejected))

    def _answer(self, envelope: Envelope, status: Literal["accepted", "duplicate"]) -> None:
        said = (envelope.id, status, self.now, envelope, None)
        self._outcomes.append(_new(DoorOutcome, said))


def _key(accepted: Accepted) -> Key:
    return accepted.envelope.tenant_id, accepted.envelope.id
