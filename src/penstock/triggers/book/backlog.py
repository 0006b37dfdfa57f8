"""Sum up what waits, in the three figures that operators look at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much waits, how much of it is late, and when the next is due."""

    total: int
    overdue: int
    next_attempt_at: datetime | None
