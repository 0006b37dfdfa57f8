"""Decide who sees personal data: readers with the scope `pii:read` do, all others see a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.access.token import Caller, Scope
from penstock.envelope.envelope import Stored
from penstock.store.privacy.show import mask, reveal

if TYPE_CHECKING:
    from penstock.house import House


def seen_by(caller: Caller, house: House, events: Sequence[Stored]) -> list[Stored]:
    """The events as this caller may see them; asks for keys, so it may wait for PostgreSQL."""
    registry = house.book.current()
    if caller.may(Scope.PII_READ):
        return reveal(events, registry, house.vault)
    return [mask(stored, registry) for stored in events]
