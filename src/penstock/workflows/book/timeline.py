"""Turn runs, deliveries and pauses into entries of one timeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.workflows.book.figures import TimelineEntry
from penstock.workflows.book.views import RunView, instant, took_ms


def of_run(run: RunView) -> TimelineEntry:
    """A run, at the instant it was made."""
    return TimelineEntry(
        "run", run.id, run.created_at, run.status,
        {
            "runKey": run.run_key,
            "triggeredBy": run.triggered_by,
            "durationMs": took_ms(run.started_at, run.completed_at),
            "errorMessage": run.error_message,
        },
    )  # fmt: skip


def of_delivery(row: Sequence[Any]) -> TimelineEntry:
    """What a trigger made of an event, at the instant of its last word."""
    key, trigger_id, event_id, status, reason, error, run_id, created_at, updated_at = row
    return TimelineEntry(
        "trigger", key, updated_at, status,
        {
            "triggerId": trigger_id,
            "eventId": event_id,
            "reason": reason,
            "errorMessage": error,
            "workflowRunId": run_id,
            "createdAt": instant(created_at),
        },
    )  # fmt: skip


def of_scheduler(row: Sequence[Any]) -> TimelineEntry:
    """A failure or a pause, at the instant it began."""
    category, subject, at, reason, until = row
    return TimelineEntry(
        "scheduler", f"{category}:{subject}:{instant(at)}", at, category,
        {"category": category, "subject": subject, "reason": reason, "until": instant(until)},
    )  # fmt: skip
