"""Show personal data inside a state: values of many events, far from where each was stored.

    event ── folded ──▶ {"$enc", "subject", "event", "at"} ── reducer ──▶ state, snapshots
    state ── mask_within, reveal_within ──▶ what a reader sees

A ciphertext opens only at its place, so it takes the name of its place along into the state. States
and snapshots hold nothing in the clear, and an erased subject is gone from them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256

from penstock.envelope.envelope import JsonObject, JsonValue, Stored
from penstock.registry.hidden import TRACED
from penstock.registry.registry import Registry
from penstock.store.privacy.cipher import FieldPlace
from penstock.store.privacy.marks import marks_of
from penstock.store.privacy.paths import replaced
from penstock.store.privacy.show import Hidden, hidden_in, key_for, shown, word
from penstock.store.privacy.vault import Vault
from penstock.store.timetravel.lens import Lens, upcasting


def folded(registry: Registry) -> Lens:
    """How events look before they are folded: hidden fields traceable, and then upcasted."""
    marked = sorted(each.schema_hash for each in registry.versions if marks_of(each) is not None)
    if not marked:
        return upcasting(registry)
    name = sha256(" ".join(marked).encode()).hexdigest()[:16]
    return upcasting(registry, Lens(lambda stored: traced(stored, registry), name))


def traced(stored: Stored, registry: Registry) -> Stored:
    """The event with each hidden field saying which event it is of, and where it stood."""
    found = hidden_in(stored, registry)
    if not found:
        return stored
    event = stored.envelope
    payload = replaced(event.payload, {each.path: _said(each) for each in found})
    return replace(stored, envelope=event._replace(payload=payload))


def mask_within(values: Sequence[JsonValue], tenant_id: str) -> list[JsonValue]:
    """The values with a word in place of each hidden field."""
    return [_shown(value, tenant_id, lambda field: word("$masked", field)) for value in values]


def reveal_within(values: Sequence[JsonValue], tenant_id: str, vault: Vault) -> list[JsonValue]:
    """The values with what is hidden in them readable, as far as there are keys."""
    needed = {field.key for field in _hidden_within(values, tenant_id) if field.key.number}
    keys = vault.open(needed)
    return [
        _shown(value, tenant_id, lambda field: shown(field, keys.get(field.key)))
        for value in values
    ]


def _said(field: Hidden) -> JsonObject:
    where = {"event": field.place.event_id, "at": field.place.pointer}
    return {"$enc": field.sealed, "subject": field.key.subject, **where}


def _read(value: JsonObject, tenant_id: str) -> Hidden | None:
    """The hidden field that an object stands for, if it does."""
    if value.keys() != TRACED:
        return None
    said = [value[name] for name in ("$enc", "subject", "event", "at")]
    sealed, subject, event_id, pointer = (each if isinstance(each, str) else "" for each in said)
    place = FieldPlace(tenant_id, event_id, pointer)
    return Hidden((), sealed, place, key_for(place, sealed, subject))


def _hidden_within(values: Iterable[JsonValue], tenant_id: str) -> Iterator[Hidden]:
    waiting = [*values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            field = _read(value, tenant_id)
            if field is None:
                waiting += value.values()
            else:
                yield field


def _shown(value: JsonValue, tenant_id: str, instead: Callable[[Hidden], JsonValue]) -> JsonValue:
    if isinstance(value, list):
        return [_shown(item, tenant_id, instead) for item in value]
    if not isinstance(value, dict):
        return value
    field = _read(value, tenant_id)
    if field is not None:
        return instead(field)
    return {name: _shown(inner, tenant_id, instead) for name, inner in value.items()}
