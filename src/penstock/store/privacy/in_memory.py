"""Keep subjects' keys in a dictionary: the specification of the keys on PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from penstock.store.privacy.cipher import KeyPlace
from penstock.store.privacy.keys import Standing, Subject


class KeysInMemory:
    """The same questions as `on_postgres.PostgresSubjectKeys`."""

    def __init__(self) -> None:
        self._kept: dict[Subject, list[bytes | None]] = {}
        self._erased: dict[Subject, datetime] = {}

    def standings(self, subjects: Collection[Subject]) -> dict[Subject, Standing]:
        return {
            subject: Standing(len(keys), keys[-1], self._erased.get(subject))
            for subject in subjects
            if (keys := self._kept.get(subject))
        }

    def create(self, wrapped: Mapping[KeyPlace, bytes]) -> None:
        for place, key in wrapped.items():
            keys = self._kept.setdefault((place.tenant_id, place.subject), [])
            if place.number == len(keys) + 1:
                keys.append(key)

    def find(self, places: Collection[KeyPlace]) -> dict[KeyPlace, bytes]:
        found = {}
        for place in places:
            keys = self._kept.get((place.tenant_id, place.subject), [])
            key = keys[place.number - 1] if 0 < place.number <= len(keys) else None
            if key is not None:
                found[place] = key
        return found

    def erase(self, subject: Subject, at: datetime) -> int:
        """Destroy the subject's live key and remember when; how many there were."""
        keys = self._kept.setdefault(subject, [])
        count = sum(key is not None for key in keys)
        self._kept[subject] = [None] * max(1, len(keys))
        self._erased[subject] = at
        return count
