"""Show personal data to those who may see it, and that there is some to everybody else.

{"$enc": …, "subject": …} ── reveal ──▶ the value, for a reader with the scope pii:read
                                   ──▶ {"$erased": true, "subject": …}   its key is gone
                          ── mask ────▶ {"$masked": true, "subject": …}   for all others

`with_keys` is `reveal` in two steps: keys are looked up for many events, and an event is opened
when somebody who may see it wants it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from penstock.envelope.codec import load_stored
from penstock.envelope.envelope import JsonValue, Stored
from penstock.registry.registry import Registry
from penstock.store.privacy.cipher import FieldPlace, KeyPlace, Unreadable, decrypt, key_number
from penstock.store.privacy.marks import marks_of
from penstock.store.privacy.paths import Path, at, pointer_to, replaced
from penstock.store.privacy.vault import Vault

_SHAPE = {"$enc", "subject"}


class Hidden(NamedTuple):
    """One field as it is stored: what there is, where it belongs, and the key it needs."""

    path: Path
    sealed: str
    place: FieldPlace
    key: KeyPlace


def mask(stored: Stored, registry: Registry) -> Stored:
    """The event with a word in place of each hidden field; nothing else about it changes."""
    found = hidden_in(stored, registry)
    return _with(stored, {f.path: word("$masked", f) for f in found}) if found else stored


def reveal(events: Sequence[Stored], registry: Registry, vault: Vault) -> list[Stored]:
    """The events with what is hidden in them readable, as far as there are keys."""
    return [opened(stored) for stored in with_keys(events, registry, vault)]


@dataclass(frozen=True, slots=True)
class Openable(Stored):
    """An event with something hidden in it, and the keys that were there for it."""

    hidden: tuple[tuple[Hidden, bytes | None], ...] = ()


def with_keys(events: Sequence[Stored], registry: Registry, vault: Vault) -> list[Stored]:
    """The events as they are stored; those with something hidden can be `opened`."""
    found = [hidden_in(stored, registry) for stored in events]
    keys = vault.open({each.key for hidden in found for each in hidden if each.key.number})
    return [
        _openable(stored, tuple((each, keys.get(each.key)) for each in hidden))
        if hidden
        else stored
        for stored, hidden in zip(events, found, strict=True)
    ]


def opened(stored: Stored) -> Stored:
    """The event in the clear, if it came `with_keys`; else as it is."""
    if not isinstance(stored, Openable):
        return stored
    changes = {field.path: shown(field, key) for field, key in stored.hidden}
    return _with(stored, changes)


def _openable(stored: Stored, hidden: tuple[tuple[Hidden, bytes | None], ...]) -> Openable:
    said = {each.name: getattr(stored, each.name) for each in fields(stored)}
    return Openable(**said, hidden=hidden)


def hidden_in(stored: Stored, registry: Registry) -> list[Hidden]:
    """Every field of an event that is stored hidden."""
    event = stored.envelope
    marks = marks_of(registry.find(event.type, event.schema_version))
    if marks is None:
        return []
    found = []
    for field in marks.find(event.payload):
        value = at(event.payload, field.path)
        if isinstance(value, dict) and value.keys() == _SHAPE:
            sealed, subject = str(value["$enc"]), str(value["subject"])
            place = FieldPlace(event.tenant_id, event.id, pointer_to(field.path))
            found.append(Hidden(field.path, sealed, place, key_for(place, sealed, subject)))
    return found


def key_for(place: FieldPlace, sealed: str, subject: str) -> KeyPlace:
    """Which key opens a field; the number 0 is no key's."""
    return KeyPlace(place.tenant_id, subject, key_number(sealed) or 0)


def shown(field: Hidden, key: bytes | None) -> JsonValue:
    """A hidden field as a reader who may see it sees it."""
    if key is None:
        return word("$erased", field)
    try:
        return load_stored(decrypt(key, field.sealed, field.place))
    except Unreadable:
        return word("$unreadable", field)


def word(said: str, field: Hidden) -> JsonValue:
    """What stands in the place of a field that is not shown."""
    return {said: True, "subject": field.key.subject}


def _with(stored: Stored, changes: dict[Path, JsonValue]) -> Stored:
    payload = replaced(stored.envelope.payload, changes)
    return replace(stored, envelope=stored.envelope._replace(payload=payload))
