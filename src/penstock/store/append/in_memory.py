"""Append to a list: the specification of the log on PostgreSQL, read in a minute."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime

from penstock.base.errors import AppendConflict, EventRefused
from penstock.envelope.envelope import Stored
from penstock.store.append.condition import Criteria, match_any
from penstock.store.append.request import (
    CONFLICTS_SHOWN,
    Appended,
    Entry,
    Found,
    Outcome,
    Outcomes,
    Request,
    id_taken,
    too_far,
)


class LogInMemory:
    """A log whose positions are places in a list."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.events: list[Stored] = []
        self._now = now
        self._lock = threading.Lock()

    def commit(self, requests: Sequence[Request]) -> list[Outcome]:
        """One after the other, as if each had come alone.

        But for one thing: an `after` that lies beyond the log is judged by where the log ended
        before, since nobody can have read what was not there yet.
        """
        with self._lock:
            head = len(self.events)
            return [self._append(request, head) for request in requests]

    def send(self, requests: Sequence[Request]) -> Outcomes:
        """As `commit`, at once."""
        found = self.commit(requests)
        return lambda: found

    def read(self, tenant_id: str, criteria: Criteria, *, after: int, limit: int) -> Found:
        """The first matching events after a position; `after` is the last one when there are more.

        A decision that has not seen everything must not append as if it had.
        """
        with self._lock:
            found = [e for e in self._of(tenant_id, criteria) if e.position > after]
            if len(found) > limit:
                return Found(found[:limit], found[limit - 1].position)
            return Found(found, len(self.events))

    def close(self) -> None:
        """Nothing to let go of."""

    def _append(self, request: Request, head: int) -> Outcome:
        condition = request.condition
        known = [self._find(request.tenant_id, entry) for entry in request.entries]
        taken = _taken(request, known)
        if taken is not None:
            return taken
        if not all(known):
            if condition.criteria and (condition.after or 0) > head:
                return too_far(condition, head)
            refused = self._refused(request)
            if refused is not None:
                return refused
        positions = [
            self._store(entry) if stored is None else stored.position
            for entry, stored in zip(request.entries, known, strict=True)
        ]
        return Appended(tuple(positions[place] for place in request.places))

    def _refused(self, request: Request) -> AppendConflict | None:
        condition, tenant = request.condition, request.tenant_id
        after = condition.after or 0
        late = [e.position for e in self._of(tenant, condition.criteria) if e.position > after]
        if late:
            return AppendConflict(tuple(late[:CONFLICTS_SHOWN]), after=after)
        there = [e.position for e in self._of(tenant, condition.fail_if_exists)]
        if there:
            return AppendConflict(tuple(there[:CONFLICTS_SHOWN]), after=0, exists=True)
        return None

    def _of(self, tenant_id: str, criteria: Criteria) -> list[Stored]:
        return [
            stored
            for stored in self.events
            if stored.envelope.tenant_id == tenant_id and match_any(criteria, stored.envelope)
        ]

    def _find(self, tenant_id: str, entry: Entry) -> Stored | None:
        key = (tenant_id, entry.accepted.envelope.id)
        for stored in self.events:
            if (stored.envelope.tenant_id, stored.envelope.id) == key:
                return stored
        return None

    def _store(self, entry: Entry) -> int:
        accepted = entry.accepted
        position = len(self.events) + 1
        self.events.append(
            Stored(
                position=position,
                envelope=accepted.envelope,
                received_at=self._now(),
                severity=accepted.severity,
                severity_rule=accepted.severity_rule,
                schema_hash=accepted.schema_hash,
                content_hash=accepted.content_hash,
            )
        )
        return position


def _taken(request: Request, known: Sequence[Stored | None]) -> EventRefused | None:
    """The refusal of an append with an id that the log has with another content."""
    wrong = [
        n
        for n, (entry, stored) in enumerate(zip(request.entries, known, strict=True))
        if stored is not None and stored.content_hash != entry.accepted.content_hash
    ]
    if not wrong:
        return None
    nths = [nth for nth, place in enumerate(request.places) if place in wrong]
    return id_taken(nths, request.entries[wrong[0]].accepted)
