"""Say what one pass did, for whoever ran it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PassSummary:
    """What a pass did; `number` is None when there was nothing to do, and nothing was recorded."""

    number: int | None
    judged_at: datetime  # by the database's clock
    position: int  # everything up to here was taken up
    events: int = 0
    deliveries: int = 0  # made or changed
    launches: int = 0
    next_due_at: datetime | None = None
    has_more: bool = False  # another pass would find work at once
