"""What triggers and workflows do is read as it is, for one tenant or for all."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from tests.health.scene import Scene, busy_scene, quiet_scene

from penstock.base.errors import StoreUnavailable
from penstock.health.activity.on_postgres import ActivityReader
from penstock.health.activity.seen import Outbox, Waiting
from penstock.triggers.book.backlog import Backlog


@pytest.fixture
def busy(database: str) -> Iterator[Scene]:
    with busy_scene(database) as scene:
        yield scene


@pytest.fixture
def quiet(database: str) -> Iterator[Scene]:
    with quiet_scene(database) as scene:
        yield scene


def test_where_nothing_happened_everything_is_nothing(quiet: Scene) -> None:
    found = ActivityReader(quiet.pool).read(None)

    assert (found.sources, found.triggers, found.paused_sources, found.paused_triggers) == (
        [], [], [], [],
    )  # fmt: skip
    nothing = Backlog(0, 0, None)
    assert (found.events[0], found.deliveries[0], found.steps.summary.total) == (
        nothing, nothing, 0,
    )  # fmt: skip
    assert (found.progress.waiting, found.jobs.waiting, found.judging_wait_ms) == (0, 0, None)
    assert (found.schedules.due, found.outbox) == (0, Outbox(0, 0.0, 0))
    totals = ActivityReader(quiet.pool).totals()
    assert (set(totals.deliveries.values()), totals.launches.count, totals.runs) == ({0}, 0, {})


def test_events_whose_source_must_wait_are_retries_with_their_types(busy: Scene) -> None:
    backlog, entries = ActivityReader(busy.pool).read(None).events

    # The third event of the noisy source tripped its limit; the fourth queued behind it.
    assert (backlog.total, backlog.overdue) == (4, 0)
    assert backlog.next_attempt_at is not None
    assert [entry.source for entry in entries] == [
        "noisy.api", "noisy.api", "slow.api", "slow.api",
    ]  # fmt: skip
    assert {entry.event_type for entry in entries} == {"metastore.record.updated"}
    assert {entry.retry_state for entry in entries} == {"scheduled"}
    assert entries[0].last_error == "rate_limit"
    assert entries[-1].next_attempt_at is None  # until somebody resumes it


def test_deliveries_that_wait_as_planned_are_no_retries(busy: Scene) -> None:
    found = ActivityReader(busy.pool).read(None)
    backlog, entries = found.deliveries

    by_trigger = {entry.trigger_name for entry in entries}
    assert by_trigger == {"throttles", "fails"}
    assert backlog.total == len(entries)
    assert found.waiting[busy.triggers["collects"]] == Waiting(total=5, paused=0, planned=5)
    assert busy.triggers["launches"] not in found.waiting
    throttled = next(entry for entry in entries if entry.trigger_name == "throttles")
    assert (throttled.definition_id, throttled.reason) == ("wf-sync", "throttle_window")
    failed = next(entry for entry in entries if entry.trigger_name == "fails")
    assert failed.definition_id is None  # there is no such workflow


def test_a_tenant_sees_its_own(busy: Scene) -> None:
    found = ActivityReader(busy.pool).read("globex")

    assert [each.name for each in found.triggers] == ["theirs"]
    assert (found.sources, found.paused_sources, found.definitions) == ([], [], {})
    assert (found.events[0].total, found.deliveries[0].total, found.steps.entries) == (0, 0, ())
    assert found.schedules.recent == []


def test_schedules_and_the_outbox_are_queues_too(busy: Scene) -> None:
    found = ActivityReader(busy.pool).read(None)

    schedules = found.schedules
    assert (schedules.due, schedules.ahead, schedules.off, schedules.failing) == (1, 1, 1, 1)
    assert schedules.late_ms is not None
    assert schedules.late_ms > 50_000
    assert [each.name for each in schedules.recent] == ["hourly"]
    assert (found.outbox.waiting, found.outbox.refused) == (1, 1)
    assert (found.jobs.waiting, found.jobs.active, found.jobs.delayed) == (1, 1, 1)
    assert [each.name for each in found.workers] == ["here:1"]


def test_totals_are_the_same_before_and_after_they_are_kept(busy: Scene) -> None:
    reader = ActivityReader(busy.pool)
    counted = reader.totals()

    busy.do("UPDATE workflow_runs SET completed_at = completed_at - interval '1 minute'")
    busy.do("UPDATE workflow_trigger_deliveries SET updated_at = updated_at - interval '1 minute'")
    reader.keep_totals()
    busy.run("later-", "failed", 2)
    reader.keep_totals()

    kept = reader.totals()
    assert kept.runs["succeeded"].count == counted.runs["succeeded"].count == 4
    assert (counted.runs["failed"].count, kept.runs["failed"].count) == (1, 3)
    assert kept.launches.count == counted.launches.count > 0
    assert kept.runs["failed"].buckets()[-1] == ("+Inf", 3)
    assert kept.active_runs == {"running": 1}
    with psycopg.connect(busy.dsn) as connection:
        rows = connection.execute("SELECT label, sum(count) FROM health_totals GROUP BY 1")
        assert {"succeeded": 4, "failed": 1}.items() <= dict(rows.fetchall()).items()


def test_a_run_whose_end_is_committed_late_is_counted_all_the_same(quiet: Scene) -> None:
    reader = ActivityReader(quiet.pool)
    quiet.run("r-", "running", 1)
    with psycopg.connect(quiet.dsn) as slow:
        slow.execute("UPDATE workflow_runs SET status = 'succeeded', completed_at = now()")
        before = slow.execute("SELECT now()").fetchone()
        reader.keep_totals()
        with psycopg.connect(quiet.dsn) as other:
            edge = other.execute("SELECT max(until) FROM health_edges").fetchone()
        assert before is not None
        assert edge is not None
        assert edge[0] <= before[0]
    reader.keep_totals()

    assert reader.totals().runs["succeeded"].count == 1


def test_a_database_that_is_away_is_an_error_of_ours(quiet: Scene) -> None:
    reader = ActivityReader(quiet.pool)
    quiet.pool.close()

    with pytest.raises(StoreUnavailable):
        reader.read(None)
    with pytest.raises(StoreUnavailable):
        reader.keep_totals()
