"""Keep schema versions in memory: the specification of every registry store."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime

from penstock.base.clock import Clock, SystemClock
from penstock.registry.proposal import Proposal, check, settle
from penstock.registry.schema import SchemaVersion


class InMemoryRegistryStore:
    """A registry store that is gone when the process is."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._versions: dict[tuple[str, int], SchemaVersion] = {}
        self._history: list[SchemaVersion] = []
        self._revision = 0
        self._lock = threading.Lock()

    def load(self) -> tuple[int, list[SchemaVersion]]:
        with self._lock:
            return self._revision, [self._versions[key] for key in sorted(self._versions)]

    def revision(self) -> int:
        return self._revision

    def register(self, proposal: Proposal, *, by: str) -> tuple[SchemaVersion, bool]:
        check(proposal)
        with self._lock:
            existing = [
                each for each in self._versions.values() if each.event_type == proposal.event_type
            ]
            version, changed = settle(existing, proposal, by=by, at=self._clock.now())
            if changed:
                version = replace(version, id=version.id or len(self._versions) + 1)
                self._versions[version.event_type, version.version] = version
                self._history.append(version)
                self._revision += 1
            return version, changed

    def as_of(self, at: datetime) -> list[SchemaVersion]:
        with self._lock:
            known = {
                (each.event_type, each.version): each
                for each in self._history
                if each.updated_at <= at
            }
        return [known[key] for key in sorted(known)]
