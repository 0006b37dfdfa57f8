"""Several hosts do not take turns: one keeps the state in its memory, until it is gone."""

from __future__ import annotations

from datetime import timedelta

from tests.triggers.on_postgres.support import TableLauncher, act, await_that, runs, spec, store

from penstock.triggers.book.on_postgres import TriggerBook
from penstock.triggers.host.loop import sleep_s
from penstock.triggers.host.on_postgres import TriggerHost
from penstock.triggers.limits import Limits
from penstock.triggers.words import ActKind, Target


def patient(dsn: str, patience: timedelta) -> TriggerHost:
    return TriggerHost(dsn, TableLauncher(), Limits(), patience=patience)


def test_a_second_host_leaves_the_events_to_the_first(dsn: str, book: TriggerBook) -> None:
    book.create(spec(), workflow_slug="sync", by="ann")
    first, second = (patient(dsn, timedelta(hours=1)) for _ in range(2))
    store(dsn, 1)
    assert first.run_pass().number == 1

    for number in (2, 3, 4):
        store(dsn, 1)
        left = second.run_pass()
        assert (left.number, left.events) == (None, 0)
        assert 0.9 < sleep_s(left) <= 1.0, "it does not ask again and again"
        assert first.run_pass().number == number

    assert second.run_pass().number is None, "there is nothing left"
    assert len(runs(dsn)) == 4
    first.close()
    second.close()


def test_the_second_host_takes_over_when_the_first_is_gone(dsn: str, book: TriggerBook) -> None:
    book.create(spec(), workflow_slug="sync", by="ann")
    first, second = patient(dsn, timedelta(hours=1)), patient(dsn, timedelta(milliseconds=20))
    store(dsn, 1)
    assert first.run_pass().number == 1
    first.close()

    store(dsn, 3)
    assert second.run_pass().number is None
    await_that(lambda: second.run_pass().number == 2)
    store(dsn, 1)
    assert second.run_pass().number == 3, "from now on it is the one that goes on"
    assert len(runs(dsn)) == 5
    second.close()


def test_what_an_operator_set_free_is_not_left_to_the_process_that_heard_it(
    dsn: str, book: TriggerBook
) -> None:
    made = book.create(spec(), workflow_slug="sync", by="ann")
    worker, server = (patient(dsn, timedelta(hours=1)) for _ in range(2))
    store(dsn, 1)
    assert worker.run_pass().number == 1
    assert server.act(act(ActKind.PAUSE, Target.TRIGGER, made.id)).is_done
    store(dsn, 1)
    assert worker.run_pass().number == 3, "it judges on, though the last pass was the operator's"
    assert server.act(act(ActKind.RESUME, Target.TRIGGER, made.id)).is_done

    assert worker.run_pass().number == 5
    assert len(runs(dsn)) == 2
    worker.close()
    server.close()
