"""Make, find and unwrap the keys of subjects.

    subjects and when their newest event happened ──▶ what there is of each, keys made where needed

Two processes may make a key for the same subject at once: the first one's is kept, and the other
reads it. A wrapped key that the root key does not open stops everything: a key of our own in its
place would make the data of that subject unreadable for good.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from datetime import datetime

from penstock.base.errors import SetupIncomplete
from penstock.store.privacy.cipher import KEY, NONCE, KeyPlace, RootKey, Unreadable
from penstock.store.privacy.keys import Standing, Subject, SubjectKeys

_TRIES = 3
_UNKNOWN = Standing()


class Vault:
    """The keys of one installation."""

    def __init__(
        self, root: RootKey, keys: SubjectKeys, *, random: Callable[[int], bytes] = os.urandom
    ) -> None:
        self.root = root
        self._keys = keys
        self._random = random

    def standings(self, needed: Mapping[Subject, datetime]) -> dict[Subject, Standing]:
        """What there is of each subject; one whose newest event is not erased has a key then."""
        for _ in range(_TRIES):
            found = self._keys.standings(needed)
            lacking = {
                subject: found.get(subject, _UNKNOWN)
                for subject, newest_at in needed.items()
                if not _is_served(found.get(subject, _UNKNOWN), newest_at)
            }
            if not lacking:
                return found
            self._keys.create(self._made(lacking))
        raise SetupIncomplete("expected the keys that were just made, found none")

    def open(self, places: Collection[KeyPlace]) -> dict[KeyPlace, bytes]:
        """The keys that are still there, unwrapped."""
        found = self._keys.find(places) if places else {}
        return {place: self.unwrap(place, wrapped) for place, wrapped in found.items()}

    def unwrap(self, place: KeyPlace, wrapped: bytes) -> bytes:
        """One key; SetupIncomplete when this installation's root did not wrap it."""
        try:
            return self.root.unwrap(wrapped, place)
        except Unreadable:
            raise SetupIncomplete(
                "a subject's key was wrapped by another root key than the one in privacy.key",
                remedy="Put back the privacy.key that this database was used with.",
            ) from None

    def nonce(self) -> bytes:
        """Random bytes that are used once."""
        return self._random(NONCE)

    def _made(self, lacking: Mapping[Subject, Standing]) -> dict[KeyPlace, bytes]:
        places = [KeyPlace(*subject, each.newest + 1) for subject, each in lacking.items()]
        return {place: self.root.wrap(self._random(KEY), place, self.nonce()) for place in places}


def _is_served(standing: Standing, newest_at: datetime) -> bool:
    """Whether the subject has a key, or no event that needs one."""
    if standing.wrapped is not None:
        return True
    return standing.erased_at is not None and newest_at <= standing.erased_at
