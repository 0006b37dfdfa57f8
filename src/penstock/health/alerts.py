"""Decide what somebody should be told: workflows that fail in a row, and work that piles up.

    workflow.failure.streak    a workflow failed so often within its window
    retry.backlog.threshold    so much waits for another try, or something is late

One alert a window for each workflow and each kind of backlog. Pure: figures and the alerts that
were sent before go in, the alerts that are due come out. Being a moment late is no lateness: what
is due is picked up within a second or so, and only what stays is worth waking somebody for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from penstock.base.clock import format_instant
from penstock.base.settings import Settings
from penstock.envelope.envelope import JsonObject
from penstock.triggers.book.backlog import Backlog
from penstock.workflows.book.figures import Streak

FAILURE_STREAK = "workflow.failure.streak"
RETRY_BACKLOG = "retry.backlog.threshold"


@dataclass(frozen=True, slots=True)
class AlertPolicy:
    """How much is too much, and how often it is said."""

    failure_threshold: int = 3
    failure_window: timedelta = timedelta(minutes=15)
    backlog_threshold: int = 25
    backlog_window: timedelta = timedelta(minutes=10)
    late_after: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing to tell."""

    event: str
    about: str  # the workflow, or the kind of backlog
    at: datetime
    window: timedelta
    data: JsonObject

    @property
    def key(self) -> str:
        """What it is remembered by."""
        return f"{self.event} {self.about}"

    @property
    def message_id(self) -> str:
        """The same for every attempt to tell it, so that a receiver can take it once."""
        digest = hashlib.sha256(self.key.encode()).hexdigest()[:16]
        return f"alert-{digest}-{int(self.at.timestamp() // self.window.total_seconds())}"

    def body(self) -> JsonObject:
        """What is posted."""
        return {"event": self.event, "data": {**self.data, "at": format_instant(self.at)}}


def policy_of(settings: Settings) -> AlertPolicy:
    """The policy of these settings."""
    return AlertPolicy(
        failure_threshold=settings.failure_alert_threshold,
        failure_window=timedelta(minutes=settings.failure_alert_window_minutes),
        backlog_threshold=settings.retry_backlog_alert_threshold,
    )


def alerts_due(
    at: datetime,
    streaks: Sequence[Streak],
    backlogs: Mapping[str, Backlog],
    sent: Mapping[str, datetime],
    policy: AlertPolicy,
) -> list[Alert]:
    """What is to be told now; `sent` has the instant of the last alert of each key."""
    threshold = policy.failure_threshold
    found: list[Alert | None] = [
        *(_streak(at, each, policy) for each in streaks if each.failures >= threshold),
        *(_backlog(at, kind, each, policy) for kind, each in backlogs.items()),
    ]
    return [each for each in found if each is not None and _is_news(each, sent)]


def _is_news(alert: Alert, sent: Mapping[str, datetime]) -> bool:
    return alert.key not in sent or alert.at - sent[alert.key] >= alert.window


def _streak(at: datetime, streak: Streak, policy: AlertPolicy) -> Alert:
    data: JsonObject = {
        "tenantId": streak.tenant_id,
        "workflowSlug": streak.workflow_slug,
        "failures": streak.failures,
        "threshold": policy.failure_threshold,
        "windowMinutes": round(policy.failure_window.total_seconds() / 60),
    }
    about = f"{streak.tenant_id}/{streak.workflow_slug}"
    return Alert(FAILURE_STREAK, about, at, policy.failure_window, data)


def _backlog(at: datetime, kind: str, backlog: Backlog, policy: AlertPolicy) -> Alert | None:
    next_at = backlog.next_attempt_at
    is_late = backlog.overdue > 0 and next_at is not None and at - next_at >= policy.late_after
    if backlog.total < policy.backlog_threshold and not is_late:
        return None
    data: JsonObject = {
        "category": kind,
        "total": backlog.total,
        "overdue": backlog.overdue,
        "nextAttemptAt": None if next_at is None else format_instant(next_at),
        "threshold": policy.backlog_threshold,
    }
    return Alert(RETRY_BACKLOG, kind, at, policy.backlog_window, data)
