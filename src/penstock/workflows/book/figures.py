"""Sum up runs: how a workflow did, what waits for another try, what happened when.

Plain values with `wire()`, in the shapes that the health pages and the timeline show.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.workflows.book.views import RetrySummary, instant
from penstock.workflows.queue.job import step_name


@dataclass(frozen=True, slots=True)
class StatusFigures:
    """The runs of one status."""

    status: str
    count: int
    average_ms: float | None
    p50_ms: float | None
    p95_ms: float | None


@dataclass(frozen=True, slots=True)
class Stats:
    """How the runs of a workflow went in a stretch of time."""

    since: datetime
    until: datetime
    by_status: tuple[StatusFigures, ...]
    failure_reasons: tuple[tuple[str, int], ...]

    def count(self, status: str) -> int:
        return sum(each.count for each in self.by_status if each.status == status)

    def wire(self) -> JsonObject:
        ended = self.count("succeeded") + self.count("failed")
        good = next((each for each in self.by_status if each.status == "succeeded"), None)
        return {
            "range": {"from": instant(self.since), "to": instant(self.until)},
            "totalRuns": sum(each.count for each in self.by_status),
            "statusCounts": {each.status: each.count for each in self.by_status},
            "successRate": round(self.count("succeeded") / ended, 4) if ended else None,
            "failureRate": round(self.count("failed") / ended, 4) if ended else None,
            "averageDurationMs": _rounded(good.average_ms if good else None),
            "p50DurationMs": _rounded(good.p50_ms if good else None),
            "p95DurationMs": _rounded(good.p95_ms if good else None),
            "failureReasons": [{"reason": r, "count": n} for r, n in self.failure_reasons],
        }


@dataclass(frozen=True, slots=True)
class Bucket:
    """The runs that began in one stretch of a chart."""

    at: datetime
    total: int
    succeeded: int
    failed: int
    canceled: int
    average_ms: float | None

    def wire(self) -> JsonObject:
        return {
            "at": instant(self.at),
            "total": self.total,
            "succeeded": self.succeeded,
            "failed": self.failed,
            "canceled": self.canceled,
            "averageDurationMs": _rounded(self.average_ms),
        }


@dataclass(frozen=True, slots=True)
class RetryEntry:
    """A step that waits for another try."""

    run_id: str
    address: str
    step_id: str
    definition_id: str
    workflow_slug: str
    status: str
    attempt: int
    retry_attempts: int
    next_attempt_at: datetime | None
    overdue: bool
    retry_state: str
    retry_metadata: JsonValue
    failure_reason: str | None
    error_message: str | None
    updated_at: datetime

    def wire(self) -> JsonObject:
        return {
            "workflowRunStepId": step_name(self.run_id, self.address),
            "workflowRunId": self.run_id,
            "workflowDefinitionId": self.definition_id,
            "workflowSlug": self.workflow_slug,
            "stepId": self.address,
            "status": self.status,
            "attempt": self.attempt,
            "retryAttempts": self.retry_attempts,
            "nextAttemptAt": instant(self.next_attempt_at),
            "overdue": self.overdue,
            "retryState": self.retry_state,
            "retryCount": self.retry_attempts,
            "retryMetadata": self.retry_metadata,
            "failureReason": self.failure_reason,
            "errorMessage": self.error_message,
            "updatedAt": instant(self.updated_at),
        }


@dataclass(frozen=True, slots=True)
class RetryBacklog:
    """Every step that waits for another try, in sum, and the first of them."""

    summary: RetrySummary
    entries: tuple[RetryEntry, ...]

    def wire(self) -> JsonObject:
        return {
            "summary": self.summary.wire(),
            "entries": [each.wire() for each in self.entries],
        }


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """Something that happened around a workflow."""

    kind: Literal["run", "trigger", "scheduler"]
    id: str
    at: datetime
    status: str
    details: JsonObject

    def wire(self) -> JsonObject:
        return {
            "kind": self.kind,
            "id": self.id,
            "timestamp": instant(self.at),
            "status": self.status,
            **self.details,
        }


@dataclass(frozen=True, slots=True)
class Streak:
    """A workflow that failed often lately."""

    tenant_id: str
    workflow_slug: str
    failures: int


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
