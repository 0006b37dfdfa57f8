"""Show runs, steps, executions and history the way the API writes them.

Plain values that a row becomes; `wire()` gives the names of the seeds. What is derived (durations,
the context of a run) is derived here, so that it is the same wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from penstock.base.clock import format_instant
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.workflows.plan import WorkPlan
from penstock.workflows.queue.job import step_name


def instant(at: datetime | None) -> str | None:
    """An instant for the wire, or nothing."""
    return None if at is None else format_instant(at)


def took_ms(start: datetime | None, end: datetime | None) -> int | None:
    """How long something took, if it began and ended."""
    if start is None or end is None:
        return None
    return max(0, int((end - start).total_seconds() * 1000))


@dataclass(frozen=True, slots=True)
class RetrySummary:
    """What waits for another try."""

    total: int = 0
    overdue: int = 0
    next_attempt_at: datetime | None = None

    def wire(self) -> JsonObject:
        return {
            "total": self.total,
            "overdue": self.overdue,
            "nextAttemptAt": instant(self.next_attempt_at),
        }


@dataclass(frozen=True, slots=True)
class RunView:
    """One run."""

    id: str
    tenant_id: str
    definition_id: str
    definition_version: int
    workflow_slug: str
    status: str
    run_key: str | None
    parameters: JsonValue
    shared: JsonValue
    output: JsonValue
    failure_reason: str | None
    error_message: str | None
    current_step_id: str | None
    triggered_by: str
    trigger: JsonValue
    trigger_id: str | None
    partition_key: str | None
    correlation_id: str
    causation_id: str | None
    replay_of: str | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    updated_at: datetime
    retries: RetrySummary = RetrySummary()

    def wire(self, steps: Sequence[StepView] | None = None) -> JsonObject:
        """The run; with its steps also its context."""
        found: JsonObject = {
            "id": self.id,
            "workflowDefinitionId": self.definition_id,
            "workflowVersion": self.definition_version,
            "workflowSlug": self.workflow_slug,
            "status": self.status,
            "runKey": self.run_key,
            "parameters": self.parameters,
            "output": self.output,
            "failureReason": self.failure_reason,
            "errorMessage": self.error_message,
            "currentStepId": self.current_step_id,
            "triggeredBy": self.triggered_by,
            "trigger": self.trigger,
            "triggerId": self.trigger_id,
            "partitionKey": self.partition_key,
            "correlationId": self.correlation_id,
            "causationId": self.causation_id,
            "replayOf": self.replay_of,
            "createdAt": instant(self.created_at),
            "startedAt": None if self.status == "pending" else instant(self.started_at),
            "completedAt": instant(self.completed_at),
            "updatedAt": instant(self.updated_at),
            "durationMs": took_ms(self.started_at, self.completed_at),
            "retrySummary": {
                "pendingSteps": self.retries.total,
                "nextAttemptAt": instant(self.retries.next_attempt_at),
                "overdueSteps": self.retries.overdue,
            },
        }
        if steps is not None:
            found["context"] = {
                "steps": {s.address: s.context() for s in steps if s.fanout_index is None},
                "shared": self.shared,
                "lastUpdatedAt": instant(self.updated_at),
            }
        return found


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of a run, as it is now."""

    run_id: str
    address: str
    step_id: str
    fanout_index: int | None
    status: str
    attempt: int
    input: JsonValue
    output: JsonValue
    failure_reason: str | None
    error_message: str | None
    resolution_error: bool
    job_run_id: str | None
    next_attempt_at: datetime | None
    retry_state: str
    retry_attempts: int
    retry_metadata: JsonValue
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    updated_at: datetime
    last_heartbeat_at: datetime | None
    worker: str | None
    logs: str | None

    @property
    def id(self) -> str:
        return step_name(self.run_id, self.address)

    def context(self) -> JsonObject:
        """What the run's context says of it."""
        return {"status": self.status, "output": self.output}

    def wire(self) -> JsonObject:
        is_child = self.fanout_index is not None
        return {
            "id": self.id,
            "workflowRunId": self.run_id,
            "stepId": self.address,
            "status": self.status,
            "attempt": self.attempt,
            "jobRunId": self.job_run_id,
            "input": self.input,
            "output": self.output,
            "errorMessage": self.error_message,
            "failureReason": self.failure_reason,
            "resolutionError": self.resolution_error,
            "parentStepId": step_name(self.run_id, self.step_id) if is_child else None,
            "templateStepId": self.step_id if is_child else None,
            "fanoutIndex": self.fanout_index,
            "logs": self.logs,
            "worker": self.worker,
            "lastHeartbeatAt": instant(self.last_heartbeat_at),
            "retryCount": self.retry_attempts,
            "retryState": self.retry_state,
            "retryAttempts": self.retry_attempts,
            "retryMetadata": self.retry_metadata,
            "nextAttemptAt": instant(self.next_attempt_at),
            "createdAt": instant(self.created_at),
            "startedAt": instant(self.started_at),
            "completedAt": instant(self.completed_at),
            "updatedAt": instant(self.updated_at),
            "durationMs": took_ms(self.started_at, self.completed_at),
        }


@dataclass(frozen=True, slots=True)
class JobRunView:
    """One execution of a step."""

    run_id: str
    address: str
    number: int
    job_slug: str
    kind: str
    attempt: int
    status: str
    failure_reason: str | None
    error_message: str | None
    logs: str | None
    worker: str | None
    queued_at: datetime
    started_at: datetime
    completed_at: datetime | None

    def known_by(self, work: WorkPlan) -> JobRunView:
        """The same, with what its step calls."""
        return replace(self, job_slug=work.slug, kind=work.kind.value)

    def wire(self) -> JsonObject:
        return {
            "id": f"{self.run_id}.{self.address}.{self.number}",
            "workflowRunId": self.run_id,
            "workflowRunStepId": step_name(self.run_id, self.address),
            "jobSlug": self.job_slug,
            "kind": self.kind,
            "attempt": self.attempt,
            "status": self.status,
            "failureReason": self.failure_reason,
            "errorMessage": self.error_message,
            "logs": self.logs,
            "worker": self.worker,
            "queuedAt": instant(self.queued_at),
            "startedAt": instant(self.started_at),
            "completedAt": instant(self.completed_at),
            "durationMs": took_ms(self.started_at, self.completed_at),
        }


@dataclass(frozen=True, slots=True)
class Happened:
    """One entry of a run's history."""

    id: int
    address: str | None
    event_type: str  # run.* or step.*
    payload: JsonValue
    created_at: datetime

    def wire(self) -> JsonObject:
        return {
            "id": str(self.id),
            "stepId": self.address,
            "eventType": self.event_type,
            "payload": self.payload,
            "createdAt": instant(self.created_at),
        }
