"""Somebody is told of failures in a row and of work that piles up: once a window, for no blip."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from penstock.base.settings import Settings
from penstock.health.alerts import AlertPolicy, alerts_due, policy_of
from penstock.triggers.book.backlog import Backlog
from penstock.workflows.book.figures import Streak

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
POLICY = AlertPolicy()


def late(by_s: float, total: int = 1) -> Backlog:
    return Backlog(total, 1, NOW - timedelta(seconds=by_s))


def test_three_failed_runs_in_fifteen_minutes_are_a_streak() -> None:
    (alert,) = alerts_due(NOW, [Streak("acme", "sync", 3)], {}, {}, POLICY)

    assert alert.body() == {
        "event": "workflow.failure.streak",
        "data": {
            "tenantId": "acme", "workflowSlug": "sync", "failures": 3, "threshold": 3,
            "windowMinutes": 15, "at": "2026-01-31T12:00:00.000Z",
        },
    }  # fmt: skip
    assert alerts_due(NOW, [Streak("acme", "sync", 2)], {}, {}, POLICY) == []


@pytest.mark.parametrize(("total", "told"), [(24, False), (25, True), (26, True)])
def test_twenty_five_waiting_retries_are_a_backlog(total: int, told: bool) -> None:
    found = alerts_due(NOW, [], {"triggers": Backlog(total, 0, None)}, {}, POLICY)

    assert [each.body()["event"] for each in found] == ["retry.backlog.threshold"] * told


def test_any_retry_that_stays_late_is_a_backlog() -> None:
    (alert,) = alerts_due(NOW, [], {"workflowSteps": late(31)}, {}, POLICY)

    assert alert.data["category"] == "workflowSteps"
    assert (alert.data["total"], alert.data["overdue"]) == (1, 1)


def test_a_retry_that_is_late_by_a_moment_wakes_nobody() -> None:
    assert alerts_due(NOW, [], {"events": late(29)}, {}, POLICY) == []


def test_every_workflow_and_every_kind_of_backlog_is_told_for_itself() -> None:
    streaks = [Streak("acme", "sync", 3), Streak("acme", "load", 4), Streak("globex", "sync", 3)]
    backlogs = {"events": late(60), "triggers": late(60), "workflowSteps": late(60)}

    found = alerts_due(NOW, streaks, backlogs, {}, POLICY)

    assert len({each.key for each in found}) == 6


@pytest.mark.parametrize(
    ("event", "minutes", "told"),
    [
        ("workflow.failure.streak acme/sync", 14.9, False),
        ("workflow.failure.streak acme/sync", 15, True),
        ("retry.backlog.threshold events", 9.9, False),
        ("retry.backlog.threshold events", 10, True),
    ],
)
def test_what_was_told_is_told_again_after_its_window(
    event: str, minutes: float, told: bool
) -> None:
    sent = {event: NOW - timedelta(minutes=minutes)}

    found = alerts_due(NOW, [Streak("acme", "sync", 9)], {"events": late(60)}, sent, POLICY)

    assert (event in [each.key for each in found]) is told


def test_an_alert_has_one_id_however_often_it_is_tried_and_another_in_the_next_window() -> None:
    def told(at: datetime) -> str:
        return alerts_due(at, [Streak("acme", "sync", 3)], {}, {}, POLICY)[0].message_id

    assert told(NOW) == told(NOW + timedelta(seconds=30))
    assert told(NOW) != told(NOW + POLICY.failure_window)


def test_the_settings_say_how_much_is_too_much() -> None:
    settings = Settings(
        failure_alert_threshold=7, failure_alert_window_minutes=5, retry_backlog_alert_threshold=99
    )

    assert policy_of(settings) == AlertPolicy(7, timedelta(minutes=5), 99)
    assert policy_of(Settings()) == AlertPolicy()
