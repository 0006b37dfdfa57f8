"""Show a schedule as the book keeps it: what it says, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.workflows.book.views import instant
from penstock.workflows.schedule import Schedule


@dataclass(frozen=True, slots=True)
class KeptSchedule:
    """A schedule with its state."""

    schedule: Schedule
    version: int
    next_run_at: datetime | None
    last_window: JsonValue
    last_error: str | None
    created_by: str
    updated_at: datetime
    updated_by: str

    @property
    def id(self) -> str:
        return self.schedule.id

    def wire(self) -> JsonObject:
        """The schedule as the API shows it."""
        return {
            "id": self.schedule.id,
            "workflowSlug": self.schedule.workflow_slug,
            **self.schedule.spec.wire(),
            "version": self.version,
            "nextRunAt": instant(self.next_run_at),
            "lastMaterializedWindow": self.last_window,
            "catchupCursor": instant(self.schedule.cursor),
            "lastError": self.last_error,
            "createdAt": instant(self.schedule.created_at),
            "createdBy": self.created_by,
            "updatedAt": instant(self.updated_at),
            "updatedBy": self.updated_by,
        }
