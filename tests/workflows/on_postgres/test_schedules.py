"""Schedules fire once per slot, however many schedulers look."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.workflows.on_postgres.support import CHAIN, TENANT, Shop, step, wait_for, workflow

from penstock.base.errors import NotFound
from penstock.workflows.book.conflict import WorkflowChanged
from penstock.workflows.book.on_postgres import WorkflowBook
from penstock.workflows.engine.schedules.on_postgres import PostgresSchedules
from penstock.workflows.errors import ScheduleInvalid
from penstock.workflows.scheduler import Scheduler

EACH_MINUTE = {"name": "each minute", "cron": "* * * * *", "catchUp": "all"}


def settled_ago(shop: Shop, minutes: int) -> None:
    """As if no scheduler had looked for a while."""
    shop.do(
        "UPDATE workflow_schedules SET catchup_cursor = date_trunc('minute', now()) - %s * interval"
        " '1 minute', next_run_at = now() - interval '1 second'",
        minutes,
    )


def test_two_schedulers_make_one_run_and_one_event_for_each_slot(shop: Shop) -> None:
    shop.define(CHAIN)
    WorkflowBook(shop.pool).schedules.create(TENANT, "chain", EACH_MINUTE, by="ana")
    settled_ago(shop, 10)
    start = threading.Barrier(4)

    def fire(_n: int) -> int:
        mine = PostgresSchedules(shop.pool)
        start.wait()
        return sum(mine.fire().runs for _ in range(3))

    with ThreadPoolExecutor(4) as threads:
        made = sum(threads.map(fire, range(4)))

    slots = "SELECT count(*), count(DISTINCT correlation_id) FROM workflow_runs"
    assert shop.ask(slots) == [(made, made)]
    assert made in {10, 11}  # a minute may have begun meanwhile
    told = "SELECT count(*), count(DISTINCT run_id) FROM event_outbox WHERE run_status = 'pending'"
    assert shop.ask(told) == [(made, made)]


def test_a_slot_that_was_fired_is_not_fired_again_though_its_cursor_was_lost(shop: Shop) -> None:
    shop.define(CHAIN)
    WorkflowBook(shop.pool).schedules.create(TENANT, "chain", EACH_MINUTE, by="ana")
    schedules = PostgresSchedules(shop.pool)
    settled_ago(shop, 5)
    schedules.fire()
    before = {row[0] for row in shop.ask("SELECT id FROM workflow_runs")}
    with shop.working():
        shop.ended(*before)

    settled_ago(shop, 5)
    schedules.fire()

    after = {row[0] for row in shop.ask("SELECT id FROM workflow_runs")}
    assert before <= after
    assert len(after - before) <= 1  # a minute may have begun meanwhile


def test_a_run_of_a_schedule_knows_its_slot(shop: Shop) -> None:
    shop.define(workflow("daily", step("a", parameters={"end": "{{ parameters.end }}"})))
    book = WorkflowBook(shop.pool)
    document = {
        **EACH_MINUTE, "catchUp": "last", "parameters": {"end": "{{ schedule.window.end }}"},
    }  # fmt: skip
    kept = book.schedules.create(TENANT, "daily", document, by="ana")
    settled_ago(shop, 3)

    PostgresSchedules(shop.pool).fire()
    (run,) = book.runs.runs(TENANT)
    with shop.working():
        shop.ended(run.id)

    shown = book.schedules.get(TENANT, kept.id).wire()
    assert isinstance(shown["lastMaterializedWindow"], dict)
    assert shop.output(run.id) == {"a": {"end": shown["lastMaterializedWindow"]["end"]}}
    assert run.correlation_id.startswith(f"sched:{kept.id}:")
    assert (run.triggered_by, shown["catchupCursor"] is not None) == ("schedule", True)


def test_a_schedule_whose_workflow_cannot_start_says_so_and_goes_on(shop: Shop) -> None:
    shop.define(CHAIN)
    book = WorkflowBook(shop.pool)
    kept = book.schedules.create(TENANT, "chain", {**EACH_MINUTE, "catchUp": "last"}, by="ana")
    shop.definitions.change(TENANT, "chain", by="ana", status="disabled")
    settled_ago(shop, 2)

    fired = PostgresSchedules(shop.pool).fire()

    assert (fired.runs, fired.refused) == (0, 1)
    after = book.schedules.get(TENANT, kept.id)
    assert "disabled" in (after.last_error or "")
    assert after.next_run_at is not None


def test_the_scheduler_fires_by_itself_until_told_to_stop(shop: Shop) -> None:
    shop.define(CHAIN)
    WorkflowBook(shop.pool).schedules.create(TENANT, "chain", EACH_MINUTE, by="ana")
    settled_ago(shop, 4)
    scheduler, stop = Scheduler(PostgresSchedules(shop.pool), sleep_s_max=0.05), threading.Event()
    thread = threading.Thread(target=scheduler.run, args=(stop,))

    thread.start()
    wait_for(lambda: scheduler.runs >= 4)
    stop.set()
    thread.join(5)

    assert not thread.is_alive()


def test_schedules_are_changed_by_version_and_belong_to_their_tenant(shop: Shop) -> None:
    shop.define(CHAIN)
    book = WorkflowBook(shop.pool).schedules
    kept = book.create(TENANT, "chain", EACH_MINUTE, by="ana")

    changed = book.change(TENANT, kept.id, {**EACH_MINUTE, "isActive": False}, by="b")
    assert (changed.version, changed.next_run_at) == (2, None)
    with pytest.raises(WorkflowChanged):
        book.change(TENANT, kept.id, EACH_MINUTE, by="c", expected_version=1)
    with pytest.raises(WorkflowChanged):
        book.delete(TENANT, kept.id, expected_version=1)
    with pytest.raises(ScheduleInvalid):
        book.create(TENANT, "chain", {"name": "x", "cron": "not cron"}, by="ana")
    with pytest.raises(NotFound):
        book.create(TENANT, "none", EACH_MINUTE, by="ana")
    with pytest.raises(NotFound):
        book.get("another", kept.id)
    book.delete(TENANT, kept.id)
    assert book.list(TENANT) == []
