"""Triggers start real runs, hear of their ends, and an event becomes a finished run in no time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.triggers.on_postgres.support import await_that, settle, spec, store
from tests.workflows.on_postgres.support import Shop, step, workflow
from tests.workflows.on_postgres.support import shop as open_shop

from penstock.triggers.book.deliveries.on_postgres import DeliveryBook
from penstock.triggers.book.on_postgres import TriggerBook
from penstock.triggers.host.loop import TriggerLoop
from penstock.triggers.host.on_postgres import TriggerHost
from penstock.triggers.host.record.on_postgres import TriggerRecord
from penstock.triggers.limits import Limits
from penstock.triggers.wake.on_postgres import Wake
from penstock.triggers.words import Reason, Role, Status
from penstock.workflows.engine.launching.on_postgres import Launching
from penstock.workflows.outbox.on_postgres import put

TWO_STEPS = workflow("sync", step("a"), step("b", "a"))


@pytest.fixture
def shop(dsn: str) -> Iterator[Shop]:
    with open_shop(dsn) as found:
        found.definitions.create("default", TWO_STEPS, by="tests")
        yield found


@pytest.fixture
def host(dsn: str) -> Iterator[TriggerHost]:
    opened = TriggerHost(dsn, Launching(), Limits(), outbox=put)
    yield opened
    opened.close()


@contextmanager
def looping(dsn: str, host: TriggerHost) -> Iterator[None]:
    loop = TriggerLoop(host, Wake(dsn))
    thread = threading.Thread(target=loop.run)
    thread.start()
    yield
    loop.stop()
    thread.join(10)


def test_every_event_becomes_one_finished_run_within_its_concurrency(
    dsn: str, shop: Shop, host: TriggerHost, book: TriggerBook, record: TriggerRecord
) -> None:
    made = book.create(spec(maxConcurrency=3), workflow_slug="sync", by="ann")

    with looping(dsn, host), shop.working():
        store(dsn, 40)
        await_that(
            lambda: (
                shop.ask("SELECT count(*) FROM workflow_runs WHERE status = 'succeeded'") == [(40,)]
            )
        )

    rows = shop.ask("SELECT count(*), count(DISTINCT causation_id) FROM workflow_runs")
    assert rows == [(40, 40)]
    settle(host)
    assert shop.ask("SELECT count(*) FROM trigger_active_runs") == [(0,)]
    assert record.backtest("default", made.id).equals_record


def test_an_unknown_workflow_fails_the_delivery_and_says_so(
    dsn: str, shop: Shop, host: TriggerHost, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    good = book.create(spec(), workflow_slug="sync", by="ann")
    bad = book.create(spec(), workflow_slug="nothing", by="ann")
    store(dsn, 1)

    host.run_pass()

    (failed,) = deliveries.deliveries("default", bad.id)
    assert (failed.status, failed.reason) == (Status.FAILED, Reason.LAUNCH_REFUSED)
    assert failed.last_error == "expected a workflow 'nothing', found none"
    assert deliveries.deliveries("default", good.id)[0].status is Status.LAUNCHED


def test_a_run_key_in_use_attaches_to_the_real_run(
    dsn: str,
    shop: Shop,
    host: TriggerHost,
    book: TriggerBook,
    deliveries: DeliveryBook,
    record: TriggerRecord,
) -> None:
    made = book.create(spec(runKeyTemplate="nightly"), workflow_slug="sync", by="ann")
    store(dsn, 3)

    settle(host)

    roles = [d.role for d in deliveries.deliveries("default", made.id)[::-1]]
    assert roles == [Role.TRIGGERED, Role.ATTACHED, Role.ATTACHED]
    assert shop.ask("SELECT count(*) FROM workflow_runs") == [(1,)]
    assert record.backtest("default", made.id).equals_record
