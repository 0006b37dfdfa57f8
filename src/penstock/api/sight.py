"""Decide who sees personal data: readers with the scope `pii:read` do, all others see a mask.

Events, states made of them and the live stream ask here, so that they agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.access.token import Caller, Scope
from penstock.envelope.envelope import JsonObject, JsonValue, Stored
from penstock.store.privacy.show import mask, reveal
from penstock.store.privacy.within import mask_within, reveal_within
from penstock.store.timetravel.diff import Change, same

if TYPE_CHECKING:
    from penstock.house import House


def sees_personal(caller: Caller) -> bool:
    """Whether personal data is shown to this caller."""
    return caller.may(Scope.PII_READ)


def seen_by(caller: Caller, house: House, events: Sequence[Stored]) -> list[Stored]:
    """The events as this caller may see them; asks for keys, so it may wait for PostgreSQL."""
    registry = house.book.current()
    if sees_personal(caller):
        return reveal(events, registry, house.vault)
    return [mask(stored, registry) for stored in events]


def state_seen_by(caller: Caller, house: House, state: JsonObject) -> JsonValue:
    """A state as this caller may see it."""
    return _values_seen_by(caller, house, [state])[0]


def changes_seen_by(caller: Caller, house: House, changes: Sequence[Change]) -> list[Change | None]:
    """Changes as this caller may see them; None for one that is none to them.

    A value that is written again is another ciphertext. Who may read it sees that it is the same;
    to all others it may be another one.
    """
    values = [value for change in changes for value in (change.before, change.after)]
    seen = iter(_values_seen_by(caller, house, values))
    found: list[Change | None] = []
    for change in changes:
        before, after = next(seen), next(seen)
        is_none = sees_personal(caller) and change.kind == "changed" and same(before, after)
        found.append(None if is_none else replace(change, before=before, after=after))
    return found


def _values_seen_by(caller: Caller, house: House, values: Sequence[JsonValue]) -> list[JsonValue]:
    if sees_personal(caller):
        return reveal_within(values, caller.tenant_id, house.vault)
    return mask_within(values, caller.tenant_id)
