"""Declare what happens to workflows and jobs: a definition changes, a run goes through its states.

    pending ──▶ running ──▶ succeeded | failed | canceled (a job also: expired)

The run is required to publish, and nothing else.
"""

from __future__ import annotations

from pydantic import JsonValue

from penstock.catalog.platform.fields import Count, Fields, Instant, Name
from penstock.envelope.envelope import Severity
from penstock.registry.declare import EventType, P, Payload

_WORKFLOW_SOURCES = ("core.workflows",)
_JOB_SOURCES = ("core.jobs",)


class DefinitionUpdated(Payload):
    """A workflow's definition was created or changed."""

    workflow_definition_id: Name
    """The workflow."""
    workflow_slug: Name | None = None
    """The workflow's name in addresses."""
    name: str | None = None
    """The workflow's name for people."""
    version: Count | None = None
    """The definition's version after the change."""
    actor: str | None = None
    """Who changed it."""


class _Run(Payload):
    """What workflow runs and job runs have in common."""

    status: str | None = None
    """The state the run is in now."""
    attempt: Count | None = None
    """Which attempt this is."""
    parameters: JsonValue = None
    """What the run was started with."""
    triggered_by: str | None = None
    """Who or what started it."""
    started_at: Instant | None = None
    """When it began."""
    completed_at: Instant | None = None
    """When it ended."""
    duration_ms: Count | None = None
    """How long it took."""
    error_message: str | None = None
    """What went wrong."""
    metrics: Fields | None = None
    """What it measured."""


class _WorkflowRun(_Run):
    """A run of a workflow."""

    workflow_run_id: Name
    """The run."""
    workflow_definition_id: Name | None = None
    """The workflow."""
    workflow_slug: Name | None = None
    """The workflow's name in addresses."""
    run_key: str | None = None
    """The key under which the run counts once."""
    partition_key: str | None = None
    """Which partition it works on."""
    current_step_id: str | None = None
    """The step it is at."""
    trigger: Fields | None = None
    """The event or schedule that started it."""
    output: JsonValue = None
    """What it gave back."""


class WorkflowRunUpdated(_WorkflowRun):
    """Something about a workflow run changed."""


class WorkflowRunPending(_WorkflowRun):
    """A workflow run waits for its turn."""


class WorkflowRunRunning(_WorkflowRun):
    """A workflow run began."""


class WorkflowRunSucceeded(_WorkflowRun):
    """A workflow run ended well."""


class WorkflowRunFailed(_WorkflowRun):
    """A workflow run ended in an error."""


class WorkflowRunCanceled(_WorkflowRun):
    """A workflow run was called off."""


class _JobRun(_Run):
    """A run of a job."""

    job_run_id: Name
    """The run."""
    job_slug: Name | None = None
    """The job."""
    workflow_definition_id: Name | None = None
    """The workflow it is part of."""
    workflow_run_id: Name | None = None
    """The workflow run it is part of."""
    workflow_run_step_id: Name | None = None
    """The step of that run."""
    result: JsonValue = None
    """What it gave back."""


class JobRunPending(_JobRun):
    """A job run waits for its turn."""


class JobRunRunning(_JobRun):
    """A job run began."""


class JobRunSucceeded(_JobRun):
    """A job run ended well."""


class JobRunFailed(_JobRun):
    """A job run ended in an error."""


class JobRunCanceled(_JobRun):
    """A job run was called off."""


class JobRunExpired(_JobRun):
    """A job run passed its time limit."""


_DEFINITION = {"workflowDefinitionId": "wf-alpha", "workflowSlug": "weather-daily"}
_JOB = {"jobRunId": "job-7", "jobSlug": "load-weather"}
_BEGAN = "2026-03-01T10:30:00.000Z"
_ENDED: dict[str, object] = {
    "startedAt": _BEGAN,
    "completedAt": "2026-03-01T10:31:12.000Z",
    "durationMs": 72_000,
}


def _workflow(
    status: str,
    payload: type[P],
    example: dict[str, object],
    severity: Severity | None = None,
) -> EventType[P]:
    return EventType(
        f"workflow.run.{status}",
        payload,
        sources=_WORKFLOW_SOURCES,
        severity=severity,
        links={"workflowRunIds": "/workflowRunId"},
        example={**_DEFINITION, "workflowRunId": "run-42", "status": status, **example},
    )


def _job(
    status: str,
    payload: type[P],
    example: dict[str, object],
    severity: Severity | None = None,
) -> EventType[P]:
    return EventType(
        f"job.run.{status}",
        payload,
        sources=_JOB_SOURCES,
        severity=severity,
        links={"workflowRunIds": "/workflowRunId"},
        example={**_JOB, "workflowRunId": "run-42", "status": status, **example},
    )


EVENTS = (
    EventType(
        "workflow.definition.updated",
        DefinitionUpdated,
        sources=_WORKFLOW_SOURCES,
        links={"workflowDefinitionIds": "/workflowDefinitionId"},
        example={**_DEFINITION, "name": "Weather, daily", "version": 4, "actor": "ana"},
    ),
    _workflow("updated", WorkflowRunUpdated, {"currentStepId": "publish"}),
    _workflow("pending", WorkflowRunPending, {"triggeredBy": "event-trigger"}),
    _workflow("running", WorkflowRunRunning, {"startedAt": _BEGAN}),
    _workflow("succeeded", WorkflowRunSucceeded, {**_ENDED, "output": {"rows": 1440}}),
    _workflow("failed", WorkflowRunFailed, {**_ENDED, "errorMessage": "publish: disk full"}),
    # Somebody's decision, not a failure.
    _workflow("canceled", WorkflowRunCanceled, _ENDED, Severity.WARNING),
    _job("pending", JobRunPending, {"attempt": 1}),
    _job("running", JobRunRunning, {"attempt": 1, "startedAt": _BEGAN}),
    _job("succeeded", JobRunSucceeded, {**_ENDED, "result": {"rows": 1440}}),
    _job("failed", JobRunFailed, {**_ENDED, "errorMessage": "exit code 1"}),
    _job("canceled", JobRunCanceled, _ENDED, Severity.WARNING),
    _job("expired", JobRunExpired, _ENDED, Severity.ERROR),
)

(
    WORKFLOW_DEFINITION_UPDATED,
    WORKFLOW_RUN_UPDATED,
    WORKFLOW_RUN_PENDING,
    WORKFLOW_RUN_RUNNING,
    WORKFLOW_RUN_SUCCEEDED,
    WORKFLOW_RUN_FAILED,
    WORKFLOW_RUN_CANCELED,
    JOB_RUN_PENDING,
    JOB_RUN_RUNNING,
    JOB_RUN_SUCCEEDED,
    JOB_RUN_FAILED,
    JOB_RUN_CANCELED,
    JOB_RUN_EXPIRED,
) = EVENTS
