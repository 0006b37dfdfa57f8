"""Look at an event once: its document, the triggers that match it, and the keys it has there.

A host looks before a pass, to know what to fetch; the pass looks again. What was seen is kept here
in between, so that nothing is matched or rendered twice.
"""

from __future__ import annotations

from datetime import datetime

from penstock.envelope.envelope import JsonObject, Stored
from penstock.triggers.compiled import CompiledTrigger, Scope
from penstock.triggers.predicate import document_of
from penstock.triggers.roster import Candidates, Roster
from penstock.triggers.template import TemplateFailed


class Sight:
    """One event as the triggers of a roster see it."""

    __slots__ = ("_document", "candidates", "keys", "matching", "stored")

    def __init__(self, stored: Stored, candidates: Candidates) -> None:
        self.stored = stored
        self.candidates = candidates
        self._document: JsonObject | None = None
        self.matching: Candidates | None = None  # None: not looked yet
        self.keys: dict[str, str | TemplateFailed | None] = {}

    @property
    def document(self) -> JsonObject:
        """The event as predicates and templates see it."""
        if self._document is None:
            self._document = document_of(self.stored)
        return self._document

    def know(self, document: JsonObject, matching: Candidates) -> None:
        """Take over what somebody has seen already."""
        self._document, self.matching = document, matching

    def matches(self) -> Candidates:
        """The candidates whose predicates hold."""
        if self.matching is None:
            document = self.document if self.candidates else {}  # nobody would look at it
            self.matching = tuple([c for c in self.candidates if c.predicates.test(document)])
        return self.matching

    def key_for(self, compiled: CompiledTrigger, judged_at: datetime) -> str | None:
        """The idempotency key at a trigger; TemplateFailed when it cannot be rendered."""
        trigger_id = compiled.trigger.id
        if trigger_id not in self.keys:
            try:
                found: str | TemplateFailed | None = compiled.idempotency_key(
                    Scope(self.document, judged_at)
                )
            except TemplateFailed as failed:
                found = failed
            self.keys[trigger_id] = found
        key = self.keys[trigger_id]
        if isinstance(key, TemplateFailed):
            raise key
        return key


class Sights:
    """What was seen of the events of a pass, by position."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[int, Sight] = {}

    def of(self, stored: Stored, roster: Roster) -> Sight:
        """The event as the roster's triggers see it."""
        sight = self._seen.get(stored.position)
        if sight is None:
            envelope = stored.envelope
            sight = Sight(
                stored, roster.candidates(envelope.tenant_id, envelope.type, envelope.source)
            )
            self._seen[stored.position] = sight
        return sight

    def add(self, sight: Sight) -> None:
        """Keep what was seen of an event."""
        self._seen[sight.stored.position] = sight

    def stored(self, position: int) -> Stored | None:
        """The event of a position, if it was looked at."""
        sight = self._seen.get(position)
        return None if sight is None else sight.stored
