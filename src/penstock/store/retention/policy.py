"""Decide which events may leave the hot table; nothing expires silently.

    older than the policy says? ─▶ sealed? ─▶ in the archive? ─▶ Move(up to that position)
              └─ no                  └─ no        └─ no ───────▶ Stay(why)

Pure. Positions leave from the oldest on and without a hole, so what is left is still a log.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Policy:
    """How long events stay in the hot table; for ever when `days` is None."""

    days: int | None = None

    def cutoff(self, now: datetime) -> datetime | None:
        """Events received before this may leave, once they are safe elsewhere."""
        return None if self.days is None else now - timedelta(days=self.days)


@dataclass(frozen=True, slots=True)
class Move:
    """Everything up to this position may leave."""

    up_to: int


@dataclass(frozen=True, slots=True)
class Stay:
    """Everything stays, and why."""

    reason: str
    is_refused: bool = False  # the policy would have events leave, and they may not


Decision: TypeAlias = Move | Stay


def decide(policy: Policy, *, old_up_to: int, sealed_up_to: int, archived: bool) -> Decision:
    """Whether events up to `old_up_to`, the last that is old enough, may leave."""
    if policy.days is None:
        return Stay("no PENSTOCK_RETENTION_DAYS is set: events stay for ever")
    if old_up_to < 1:
        return Stay(f"no event is older than {policy.days} days")
    if sealed_up_to < old_up_to:
        reason = f"expected seals up to position {old_up_to}, found them up to {sealed_up_to}"
        return Stay(reason, is_refused=True)
    if not archived:
        reason = f"expected an archive that has every event up to position {old_up_to}, found none"
        return Stay(reason, is_refused=True)
    return Move(old_up_to)
