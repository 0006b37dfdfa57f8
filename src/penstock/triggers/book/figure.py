"""Hold the figures about triggers that health pages and metrics show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """What passes have counted for a source since the beginning."""

    tenant_id: str
    source: str
    total: int
    throttled: int
    dropped: int
    failures: int
    total_lag_ms: int
    last_lag_ms: int
    max_lag_ms: int
    last_event_at: datetime | None

    @property
    def average_lag_ms(self) -> int | None:
        """From occurring to being judged, on average; None before the first event."""
        return round(self.total_lag_ms / self.total) if self.total else None


@dataclass(frozen=True, slots=True)
class TriggerFigures:
    """What passes have counted for a trigger since the beginning."""

    tenant_id: str
    trigger_id: str
    name: str
    workflow_slug: str
    filtered: int
    matched: int
    launched: int
    throttled: int
    skipped: int
    failed: int
    paused: int
    dead: int
    last_status: str | None
    last_updated_at: datetime | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far passes have come."""

    number: int  # of the last pass
    position: int  # everything up to here was taken up
    head: int  # the end of the log
    judged_at: datetime  # when the last pass was
    next_due_at: datetime | None
    asked_at: datetime  # by the database's clock

    @property
    def waiting(self) -> int:
        """Events that no pass has taken up yet."""
        return max(0, self.head - self.position)
