"""Refuse a change of a trigger that was made for another version of it."""

from __future__ import annotations

from penstock.base.errors import PenstockError


class TriggerConflict(PenstockError):
    """Somebody changed the trigger since it was read. Nothing was changed now."""

    code = "trigger_conflict"
    remedy = "Read it again, make the change to what it is now, and send its ETag in If-Match."

    def __init__(self, *, expected: int, found: int) -> None:
        super().__init__(f"expected version {expected} of the trigger, found version {found}")
        self.found = found
