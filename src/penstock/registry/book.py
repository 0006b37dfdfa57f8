"""Keep the current registry at hand, and put new schemas into it.

    store ── load ──▶ Registry (cached) ── refresh: one small question ──▶ a newer one, if there is

The cached registry goes on answering while the store is away, so that publishing does. After a
failed question the book asks nothing for a second. Callers ask one after the other, since what one
came for may have been registered after the question before; but nobody waits long for another's.
tests/registry/test_registry_store.py runs every store through the same promises.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Protocol

from penstock.base.clock import Clock, SystemClock
from penstock.base.errors import SchemaConflict, StoreUnavailable
from penstock.registry.declare import EventType, Vocabulary
from penstock.registry.proposal import Proposal, declared, settle
from penstock.registry.registry import Mode, Registry
from penstock.registry.schema import SchemaVersion
from penstock.registry.upcast import Upcasts

_QUIET = timedelta(seconds=1)
_PATIENCE_S = 0.25  # a question takes a millisecond; longer, and the store is as good as away


class RegistryStore(Protocol):
    """Where schema versions live."""

    def load(self) -> tuple[int, list[SchemaVersion]]:
        """Every version, and the revision they make up; StoreUnavailable when it is away."""
        ...

    def revision(self) -> int:
        """A number that grows with every change; StoreUnavailable when it is away."""
        ...

    def register(self, proposal: Proposal, *, by: str) -> tuple[SchemaVersion, bool]:
        """The version as kept, and whether anything changed.

        SchemaInvalid, SchemaConflict; SchemaBreaking when it breaks the version before it.
        """
        ...

    def as_of(self, at: datetime) -> list[SchemaVersion]:
        """Every version as it was at an instant; StoreUnavailable when it is away."""
        ...


class RegistryBook:
    """The registry of one process, kept up to date. Safe to share between threads."""

    def __init__(self, store: RegistryStore, *, mode: Mode, clock: Clock | None = None) -> None:
        self._store = store
        self._mode = mode
        self._clock = clock or SystemClock()
        self._cached: Registry | None = None
        self._declared: dict[str, EventType] = {}
        self._upcasts = Upcasts()
        self._quiet_until: datetime | None = None
        self._asking = threading.Lock()

    def current(self) -> Registry:
        """The registry as last seen; loaded first if it was never seen."""
        return self._cached or self._load()

    def refresh(self) -> Registry:
        """The registry as it is now, or as last seen while the store is away."""
        if self._cached is None:
            return self._load()
        if self._is_quiet() or not self._asking.acquire(timeout=_PATIENCE_S):
            return self._cached
        try:
            if not self._is_quiet() and self._store.revision() != self._cached.revision:
                return self._load()
        except StoreUnavailable:
            self._quiet_until = self._clock.now() + _QUIET
        finally:
            self._asking.release()
        return self._cached

    def register(self, proposal: Proposal, *, by: str) -> tuple[SchemaVersion, bool]:
        """Register a schema; from here on `current` knows it."""
        version, changed = self._store.register(proposal, by=by)
        if changed:
            self._load()
        return version, changed

    def declare(
        self, vocabularies: Iterable[Vocabulary], by: str = "system"
    ) -> tuple[SchemaConflict, ...]:
        """Register what code declares and the store lacks; from here on its upcasters are known.

        A type that is published with another schema under the same version stays as published;
        the conflicts come back, for the log. Statuses that an operator set stay too.
        """
        pages = tuple(vocabularies)
        self._declared = {event.name: event for page in pages for event in page.events}
        self._upcasts = Upcasts(pages)
        known = self._load()
        conflicts = []
        for vocabulary in pages:
            for event in vocabulary.events:
                proposal = declared(event, vocabulary.name)
                held = known.find(event.name, event.version)
                try:
                    if held is None or settle([held], proposal, by=by, at=held.updated_at)[1]:
                        self._store.register(proposal, by=by)
                except SchemaConflict as conflict:
                    conflicts.append(conflict)
        self._load()
        return tuple(conflicts)

    def declaration(self, event_type: str) -> EventType | None:
        """What code declares under that name."""
        return self._declared.get(event_type)

    def as_of(self, at: datetime) -> Registry:
        """The registry as it was at an instant; StoreUnavailable while the store is away."""
        return Registry(self._store.as_of(at), mode=self._mode, upcasts=self._upcasts)

    def _load(self) -> Registry:
        revision, versions = self._store.load()
        loaded = Registry(versions, mode=self._mode, revision=revision, upcasts=self._upcasts)
        cached = self._cached
        # Two threads may load at once; the newer of the two stays.
        if cached is None or cached.revision <= revision:
            self._cached = cached = loaded
        return cached

    def _is_quiet(self) -> bool:
        return self._quiet_until is not None and self._clock.now() < self._quiet_until


__all__ = ["Proposal", "RegistryBook", "RegistryStore"]
