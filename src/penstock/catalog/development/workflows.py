"""Declare what happens to workflows of development.

    started ──▶ step completed … ⇄ paused ▸ resumed ──▶ completed

The version of the definition at work stands in the payload and is promised as metadata.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import JsonValue

from penstock.catalog.development.fields import Work, work
from penstock.catalog.platform.fields import Count, Instant, Name
from penstock.envelope.envelope import Severity
from penstock.registry.declare import EventType, P


class _Workflow(Work):
    """What every event about a workflow may say."""

    workflow_name: Name | None = None
    """The workflow's name; it becomes a tag."""
    workflow_version: Name | None = None
    """The version of its definition; it becomes `metadata.workflowVersion`."""
    workflow_run_id: Name | None = None
    """The run."""
    loop_iteration: Count | None = None
    """How often the run went round before."""


class WorkflowStarted(_Workflow):
    """A workflow of development began."""

    triggered_by: Name | None = None
    """Who or what started it."""
    parameters: JsonValue = None
    """What it was started with."""


class WorkflowStepCompleted(_Workflow):
    """One step of a workflow is done."""

    step: Name | None = None
    """The step's name."""
    step_index: Count | None = None
    """How many steps came before."""
    duration_ms: Count | None = None
    """How long the step took."""
    output: JsonValue = None
    """What the step gave back."""


class WorkflowPaused(_Workflow):
    """A workflow waits, for a person or for something it needs."""

    step: Name | None = None
    """The step it stopped at."""
    reason: str | None = None
    """What it waits for."""
    resumes_at: Instant | None = None
    """When it goes on by itself."""


class WorkflowResumed(_Workflow):
    """A workflow that waited goes on."""

    step: Name | None = None
    """The step it goes on with."""
    resumed_by: Name | None = None
    """Who or what let it go on."""
    paused_ms: Count | None = None
    """How long it had waited."""


class WorkflowCompleted(_Workflow):
    """A workflow of development came to its end."""

    outcome: Literal["success", "failed", "cancelled"] | None = None
    """How it ended."""
    steps_completed: Count | None = None
    """How many steps were done."""
    duration_ms: Count | None = None
    """How long it took in all."""


_RUN = {
    "workflowName": "resolve-issue",
    "workflowVersion": "3.1.0",
    "workflowRunId": "run-42",
    "loopIteration": 0,
}


def _workflow(
    name: str,
    payload: type[P],
    example: dict[str, Any],
    severity: Severity = Severity.INFO,
) -> EventType[P]:
    return work(
        name,
        payload,
        severity=severity,
        tags=("workflowName",),
        links={"workflowRunIds": "/workflowRunId"},
        metadata=("workflowVersion",),
        example={**_RUN, **example},
    )


WORKFLOW_STARTED = _workflow(
    "WORKFLOW.STARTED", WorkflowStarted, {"triggeredBy": "issue", "parameters": {"depth": 2}}
)
WORKFLOW_STEP_COMPLETED = _workflow(
    "WORKFLOW.STEP_COMPLETED",
    WorkflowStepCompleted,
    {"step": "plan", "stepIndex": 1, "durationMs": 5_200, "output": {"files": 3}},
)
WORKFLOW_PAUSED = _workflow(
    "WORKFLOW.PAUSED",
    WorkflowPaused,
    {"step": "approve", "reason": "approval", "resumesAt": "2026-03-01T12:00:00.000Z"},
    Severity.WARNING,
)
WORKFLOW_RESUMED = _workflow(
    "WORKFLOW.RESUMED",
    WorkflowResumed,
    {"step": "approve", "resumedBy": "ben", "pausedMs": 90_000},
)
WORKFLOW_COMPLETED = _workflow(
    "WORKFLOW.COMPLETED",
    WorkflowCompleted,
    {"outcome": "success", "stepsCompleted": 6, "durationMs": 612_000},
)

EVENTS = (
    WORKFLOW_STARTED,
    WORKFLOW_STEP_COMPLETED,
    WORKFLOW_PAUSED,
    WORKFLOW_RESUMED,
    WORKFLOW_COMPLETED,
)
