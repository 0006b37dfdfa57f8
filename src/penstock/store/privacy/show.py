"""Show personal data to those who may see it, and that there is some to everybody else.

{"$enc": …, "subject": …} ── reveal ──▶ the value, for a reader with the scope pii:read
                                   ──▶ {"$erased": true, "subject": …}   its key is gone
                          ── mask ────▶ {"$masked": true, "subject": …}   for all others
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from penstock.envelope.codec import load_stored
from penstock.envelope.envelope import JsonValue, Stored
from penstock.registry.registry import Registry
from penstock.store.privacy.cipher import FieldPlace, KeyPlace, Unreadable, decrypt, key_number
from penstock.store.privacy.marks import marks_of
from penstock.store.privacy.paths import Path, at, pointer_to, replaced
from penstock.store.privacy.vault import Vault

_SHAPE = {"$enc", "subject"}


class _Hidden(NamedTuple):
    """One field as it is stored."""

    path: Path
    sealed: str
    key: KeyPlace


def mask(stored: Stored, registry: Registry) -> Stored:
    """The event with a word in place of each hidden field; nothing else about it changes."""
    fields = _hidden_in(stored, registry)
    return _with(stored, {f.path: _word("$masked", f) for f in fields}) if fields else stored


def reveal(events: Sequence[Stored], registry: Registry, vault: Vault) -> list[Stored]:
    """The events with what is hidden in them readable, as far as there are keys."""
    found = [_hidden_in(stored, registry) for stored in events]
    keys = vault.open({field.key for fields in found for field in fields if field.key.number})
    return [
        _with(stored, {f.path: _opened(stored, f, keys.get(f.key)) for f in fields})
        if fields
        else stored
        for stored, fields in zip(events, found, strict=True)
    ]


def _hidden_in(stored: Stored, registry: Registry) -> list[_Hidden]:
    event = stored.envelope
    marks = marks_of(registry.find(event.type, event.schema_version))
    if marks is None:
        return []
    found = []
    for field in marks.find(event.payload):
        value = at(event.payload, field.path)
        if isinstance(value, dict) and value.keys() == _SHAPE:
            sealed, subject = str(value["$enc"]), str(value["subject"])
            key = KeyPlace(event.tenant_id, subject, key_number(sealed) or 0)
            found.append(_Hidden(field.path, sealed, key))
    return found


def _opened(stored: Stored, field: _Hidden, key: bytes | None) -> JsonValue:
    if key is None:
        return _word("$erased", field)
    event = stored.envelope
    where = FieldPlace(event.tenant_id, event.id, pointer_to(field.path))
    try:
        return load_stored(decrypt(key, field.sealed, where))
    except Unreadable:
        return _word("$unreadable", field)


def _word(word: str, field: _Hidden) -> JsonValue:
    return {word: True, "subject": field.key.subject}


def _with(stored: Stored, changes: dict[Path, JsonValue]) -> Stored:
    payload = replaced(stored.envelope.payload, changes)
    return replace(stored, envelope=stored.envelope._replace(payload=payload))
