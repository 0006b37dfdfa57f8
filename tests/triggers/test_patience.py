"""A host leaves a pass to the one that ran the last one, and not for long."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from penstock.triggers.host.look import Look
from penstock.triggers.host.patience import Patience

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
A_WHILE = timedelta(milliseconds=250)
WORK = Look(7, 10, NOON, None, 1, 11, has_run_ends=False, has_versions=False, settings_pass=1)
NO_WORK = replace(WORK, head=10)


def later(seen: Look, milliseconds: int) -> Look:
    return replace(seen, judged_at=NOON + timedelta(milliseconds=milliseconds))


def test_whoever_ran_the_last_pass_runs_the_next_at_once() -> None:
    assert Patience(A_WHILE).until(WORK, 7) is None


def test_the_very_first_pass_is_run_by_whoever_comes_first() -> None:
    assert Patience(A_WHILE).until(replace(WORK, number=0), None) is None


def test_after_what_an_operator_did_nobody_waits_for_another() -> None:
    assert Patience(A_WHILE).until(replace(WORK, was_act=True), 5) is None


def test_others_leave_it_to_that_host_for_a_while() -> None:
    patience = Patience(A_WHILE)

    assert patience.until(WORK, 5) == NOON + A_WHILE
    assert patience.until(later(WORK, 249), 5) == NOON + A_WHILE
    assert patience.until(later(WORK, 250), 5) is None


def test_a_host_that_has_just_begun_waits_as_others_do() -> None:
    assert Patience(A_WHILE).until(WORK, None) == NOON + A_WHILE


def test_as_long_as_the_other_host_goes_on_nobody_takes_over() -> None:
    patience = Patience(A_WHILE)
    for number in range(7, 40):
        seen = later(replace(WORK, number=number), number * 100)
        assert patience.until(seen, 5) == seen.judged_at + A_WHILE


def test_time_without_work_does_not_count_as_waiting() -> None:
    patience = Patience(A_WHILE)
    patience.until(WORK, 5)

    assert patience.until(later(NO_WORK, 100), 5) is None
    assert patience.until(later(WORK, 60_000), 5) == NOON + timedelta(minutes=1) + A_WHILE


def test_work_that_is_due_counts_like_an_event() -> None:
    due = replace(NO_WORK, next_due_at=NOON)
    patience = Patience(A_WHILE)

    assert patience.until(due, 5) == NOON + A_WHILE
    assert patience.until(later(due, 300), 5) is None


def test_a_host_without_patience_never_waits() -> None:
    assert Patience(timedelta()).until(WORK, 5) is None
