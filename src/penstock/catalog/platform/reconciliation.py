"""Declare what happens to the jobs that compare the filestore's books with its backends.

    queued ──▶ started ──▶ completed | failed | cancelled

The typed reading (`derived`) of every one of them is its payload as it is.
"""

from __future__ import annotations

from typing import Literal

from penstock.catalog.platform.fields import Count, Fields, Instant
from penstock.envelope.envelope import Severity
from penstock.registry.declare import EventType, P, Payload

Reason = Literal["drift", "audit", "manual"]
Status = Literal["queued", "running", "succeeded", "failed", "skipped", "cancelled"]


class _Job(Payload):
    """A reconciliation job."""

    id: Count
    """The job."""
    job_key: str | None = None
    """The key under which the same work is one job."""
    backend_mount_id: Count | None = None
    """The mount it compares."""
    node_id: Count | None = None
    """The node it compares."""
    path: str | None = None
    """Its path on that mount."""
    reason: Reason | None = None
    """Why it was asked for."""
    status: Status | None = None
    """How far it is."""
    detect_children: bool | None = None
    """Whether it looks into directories."""
    requested_hash: bool | None = None
    """Whether it reads content to compare it."""
    attempt: Count | None = None
    """Which attempt this is."""
    result: Fields | None = None
    """What it found."""
    error: Fields | None = None
    """What went wrong."""
    enqueued_at: Instant | None = None
    """When it was asked for."""
    started_at: Instant | None = None
    """When it began."""
    completed_at: Instant | None = None
    """When it ended."""
    duration_ms: Count | None = None
    """How long it took."""
    updated_at: Instant | None = None
    """When this was last true."""


class ReconciliationQueued(_Job):
    """A reconciliation waits for its turn."""


class ReconciliationStarted(_Job):
    """A reconciliation began."""


class ReconciliationCompleted(_Job):
    """A reconciliation ended well."""


class ReconciliationFailed(_Job):
    """A reconciliation could not be finished."""


class ReconciliationCancelled(_Job):
    """A reconciliation was called off."""


_JOB = {
    "id": 17,
    "jobKey": "1:reports/march.csv",
    "backendMountId": 1,
    "nodeId": 4711,
    "path": "reports/march.csv",
    "reason": "drift",
    "attempt": 1,
}
_END = {"completedAt": "2026-03-01T10:30:00.000Z", "durationMs": 830}
_OFFLINE = {"message": "mount is offline"}


def _event(
    step: str,
    payload: type[P],
    example: dict[str, object],
    severity: Severity | None = None,
) -> EventType[P]:
    return EventType(
        f"filestore.reconciliation.job.{step}",
        payload,
        sources=("filestore.service",),
        severity=severity,
        derived_requires=(),
        example={**_JOB, **example},
    )


EVENTS = (
    _event("queued", ReconciliationQueued, {"status": "queued"}),
    _event("started", ReconciliationStarted, {"status": "running"}),
    _event("completed", ReconciliationCompleted, {"status": "succeeded", **_END}),
    _event("failed", ReconciliationFailed, {"status": "failed", **_END, "error": _OFFLINE}),
    # Somebody's decision, not a failure.
    _event("cancelled", ReconciliationCancelled, {"status": "cancelled"}, Severity.WARNING),
)

(
    RECONCILIATION_JOB_QUEUED,
    RECONCILIATION_JOB_STARTED,
    RECONCILIATION_JOB_COMPLETED,
    RECONCILIATION_JOB_FAILED,
    RECONCILIATION_JOB_CANCELLED,
) = EVENTS
