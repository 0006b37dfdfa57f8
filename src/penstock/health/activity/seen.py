"""Hold what triggers and workflows do at one moment, as it was read from the store.

    Activity ──▶ pages.py        /admin/event-health and /admin/queue-health
             ──▶ series.py       Prometheus
             ──▶ alerts.py       what somebody should be told

Everything is of one tenant, or of all of them; queues are always those of the whole platform.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from penstock.base.clock import format_instant
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.triggers.book.backlog import Backlog
from penstock.triggers.book.figure import Progress, SourceFigures, TriggerFigures
from penstock.triggers.delivery import Pause, SourcePause
from penstock.workflows.book.figures import RetryBacklog
from penstock.workflows.book.views import RetrySummary
from penstock.workflows.queue.figures import QueueFigures, WorkerSeen

ENTRIES_MAX = 50
_NOTHING = Backlog(0, 0, None)
_NO_STEPS = RetryBacklog(RetrySummary(), ())
_NO_JOBS = QueueFigures(0, 0, 0, 0, 0, 0.0, None, None)


def instant(at: datetime | None) -> str | None:
    """An instant for the wire, or nothing."""
    return None if at is None else format_instant(at)


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many deliveries wait at a trigger."""

    total: int
    paused: int  # of them: because the trigger is paused
    planned: int  # of them: for a batch to fill, for quiet, for a run to end


@dataclass(frozen=True, slots=True)
class EventRetry:
    """An event that waits because its source must."""

    event_id: str
    source: str
    event_type: str | None  # None: it has left the log
    attempts: int
    next_attempt_at: datetime | None
    overdue: bool
    retry_state: str
    last_error: str
    metadata: JsonValue
    created_at: datetime
    updated_at: datetime

    def wire(self) -> JsonObject:
        return {
            "eventId": self.event_id,
            "source": self.source,
            "eventType": self.event_type,
            "eventSource": self.source,
            "attempts": self.attempts,
            "nextAttemptAt": instant(self.next_attempt_at),
            "overdue": self.overdue,
            "retryState": self.retry_state,
            "lastError": self.last_error,
            "metadata": self.metadata,
            "createdAt": instant(self.created_at),
            "updatedAt": instant(self.updated_at),
        }


@dataclass(frozen=True, slots=True)
class DeliveryRetry:
    """A delivery that is to be judged again."""

    delivery_id: str
    trigger_id: str
    definition_id: str | None  # None: there is no such workflow
    workflow_slug: str
    trigger_name: str | None
    event_id: str
    event_type: str
    event_source: str
    status: str
    reason: str | None
    attempts: int
    retry_attempts: int
    next_attempt_at: datetime | None
    overdue: bool
    retry_state: str
    last_error: str | None
    run_id: str | None
    dedupe_key: str | None
    metadata: JsonValue
    created_at: datetime
    updated_at: datetime

    def wire(self) -> JsonObject:
        return {
            "deliveryId": self.delivery_id,
            "triggerId": self.trigger_id,
            "workflowDefinitionId": self.definition_id,
            "workflowSlug": self.workflow_slug,
            "triggerName": self.trigger_name,
            "eventId": self.event_id,
            "eventType": self.event_type,
            "eventSource": self.event_source,
            "status": self.status,
            "reason": self.reason,
            "attempts": self.attempts,
            "retryAttempts": self.retry_attempts,
            "nextAttemptAt": instant(self.next_attempt_at),
            "overdue": self.overdue,
            "retryState": self.retry_state,
            "lastError": self.last_error,
            "workflowRunId": self.run_id,
            "dedupeKey": self.dedupe_key,
            "metadata": self.metadata,
            "createdAt": instant(self.created_at),
            "updatedAt": instant(self.updated_at),
        }


@dataclass(frozen=True, slots=True)
class ScheduleFired:
    """A schedule and the slot it fired last."""

    id: str
    workflow_slug: str
    name: str | None
    slot_at: datetime
    next_run_at: datetime | None
    last_error: str | None
    updated_at: datetime

    def wire(self) -> JsonObject:
        return {
            "scheduleId": self.id,
            "workflowSlug": self.workflow_slug,
            "name": self.name,
            "slot": instant(self.slot_at),
            "nextRunAt": instant(self.next_run_at),
            "lastError": self.last_error,
            "updatedAt": instant(self.updated_at),
        }


@dataclass(frozen=True, slots=True)
class Schedules:
    """The schedules, as a queue of what is to be fired."""

    due: int
    ahead: int
    off: int
    failing: int  # whose last slot could not be launched
    next_run_at: datetime | None
    late_ms: float | None  # of those that are due, on average
    recent: Sequence[ScheduleFired] = ()


@dataclass(frozen=True, slots=True)
class Outbox:
    """Events that committed with a change and are not in the log yet."""

    waiting: int
    oldest_ms: float
    refused: int


Definitions: TypeAlias = Mapping[tuple[str, str], str]  # (tenant, slug) -> id


@dataclass(frozen=True, slots=True)
class Activity:
    """Everything at one moment."""

    progress: Progress
    sources: Sequence[SourceFigures] = ()
    triggers: Sequence[TriggerFigures] = ()
    definitions: Definitions = field(default_factory=dict)
    paused_sources: Sequence[SourcePause] = ()
    paused_triggers: Sequence[Pause] = ()
    waiting: Mapping[str, Waiting] = field(default_factory=dict)  # by trigger
    events: tuple[Backlog, Sequence[EventRetry]] = (_NOTHING, ())
    deliveries: tuple[Backlog, Sequence[DeliveryRetry]] = (_NOTHING, ())
    steps: RetryBacklog = _NO_STEPS
    judging_wait_ms: float | None = None
    jobs: QueueFigures = _NO_JOBS
    workers: Sequence[WorkerSeen] = ()
    schedules: Schedules = Schedules(0, 0, 0, 0, None, None)
    outbox: Outbox = Outbox(0, 0.0, 0)

    @property
    def at(self) -> datetime:
        """When this was, by the database's clock, which also set every instant in here."""
        return self.progress.asked_at

    def age_s(self, at: datetime) -> float:
        """How long ago an instant was, then."""
        return (self.at - at).total_seconds()
