"""Erase a subject: destroy its key, and take what it said out of the dead letters.

    erase("alice@example.org") ──▶ key gone · letters blanked · tables written anew

The log does not change, so its proofs hold: what is left of the subject there is ciphertext that
nobody can open. Letters are kept as they came, so those that name the subject are blanked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import orjson

from penstock.envelope.envelope import JsonValue
from penstock.store.privacy.cipher import RootKey
from penstock.store.privacy.keys import Subject

SUBJECT_CHARS_MAX = 1_000
_SAID_MIN = 6  # shorter texts stand in bytes of any kind by chance


@dataclass(frozen=True, slots=True)
class Destroyed:
    """What became of the keys of a subject."""

    keys: int
    erased_at: datetime


@dataclass(frozen=True, slots=True)
class Erasure:
    """What was done to erase a subject."""

    subject: str  # the pseudonym
    keys: int
    letters: int
    erased_at: datetime


class Erasable(Protocol):
    """Where keys and letters can be destroyed."""

    def destroy(self, subject: Subject) -> Destroyed:
        """Take the subject's key away for good, and remember when."""
        ...

    def blank_letters(self, tenant_id: str, text: str) -> int:
        """Blank every dead letter that mentions the text; how many there were."""
        ...

    def sweep(self) -> None:
        """Write the tables anew, so that old versions of rows do not linger."""
        ...


def erase(root: RootKey, store: Erasable, tenant_id: str, subject: str) -> Erasure:
    """Erase a subject; doing it again is harmless."""
    pseudonym = root.pseudonym(tenant_id, subject)
    destroyed = store.destroy((tenant_id, pseudonym))
    letters = store.blank_letters(tenant_id, subject)
    store.sweep()
    return Erasure(pseudonym, destroyed.keys, letters, destroyed.erased_at)


def mentions(raw: bytes, subject: str) -> bool:
    """Whether a message names a subject: as a value, or anywhere in bytes that are no JSON."""
    if b"\\" not in raw and subject.encode() not in raw:
        return False  # nothing is escaped, and it is not there
    try:
        tree = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return (subject if len(subject) >= _SAID_MIN else f'"{subject}"').encode() in raw
    return _says(tree, subject)


def _says(tree: JsonValue, subject: str) -> bool:
    waiting: list[JsonValue] = [tree]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value.values(), *value]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str | int) and not isinstance(value, bool) and str(value) == subject:
            return True
    return False
