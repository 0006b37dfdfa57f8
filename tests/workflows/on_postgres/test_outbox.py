"""Runs tell of themselves: their events reach the log once, in order, with their cause."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.workflows.on_postgres.support import (
    CHAIN,
    TENANT,
    Handlers,
    Shop,
    step,
    wait_for,
    workflow,
)

from penstock.base.clock import SystemClock
from penstock.base.on_postgres import open_pool
from penstock.catalog.vocabularies import ALL
from penstock.envelope.envelope import Stored
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.store.append.appends import Appends
from penstock.store.append.on_postgres import PostgresLog
from penstock.store.on_postgres import EventReader
from penstock.store.query import EventQuery
from penstock.workflows.outbox.on_postgres import PostgresOutbox, put
from penstock.workflows.outbox.relay import OutboxRelay
from penstock.workflows.port import Failed, Failure


@contextmanager
def appending(dsn: str) -> Iterator[tuple[Appends, EventReader]]:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    with open_pool(dsn, "penstock_reader", size_max=3) as readers:
        appends = Appends(PostgresLog(dsn, readers), registry=book.current, clock=SystemClock())
        try:
            yield appends, EventReader(readers, cursor_key=b"k" * 32)
        finally:
            appends.close()


def of_runs(reader: EventReader) -> list[Stored]:
    found = reader.page(EventQuery(TENANT), limit=200).events[::-1]
    return [each for each in found if each.envelope.type.startswith("workflow.run.")]


def test_a_run_tells_of_every_state_once_and_in_order(shop: Shop) -> None:
    shop.define(CHAIN)
    run = shop.start("chain", correlation_id="trace-1", causation_id="evt-1")
    with shop.working():
        shop.ended(run)

    with appending(shop.dsn) as (appends, reader):
        PostgresOutbox(shop.pool, appends).move()
        events = [each.envelope for each in of_runs(reader)]

    assert [e.type for e in events] == [
        f"workflow.run.{word}" for word in ("pending", "running", "succeeded")
    ]
    assert [e.id for e in events] == [
        f"run-{run}-{word}" for word in ("pending", "running", "succeeded")
    ]
    assert {(e.correlation_id, e.causation_id, e.source) for e in events} == {
        ("trace-1", "evt-1", "core.workflows")
    }
    last = events[-1].payload
    assert isinstance(last, dict)
    assert last["output"] == {"c": {"n": 1}}
    assert shop.ask("SELECT count(*) FROM event_outbox") == [(0,)]


@pytest.mark.parametrize("word", ["failed", "canceled"])
def test_a_run_that_ends_badly_tells_of_that(shop: Shop, word: str) -> None:
    once = {"maxAttempts": 1}
    shop.define(workflow("bad", step("a", handler="refuse", retryPolicy=once)))
    run = shop.start("bad")
    if word == "canceled":
        shop.acts.cancel(TENANT, run, by="ana")
    refusing = Handlers(refuse=lambda _call: Failed(Failure.HANDLER_ERROR, "disk full"))
    with shop.working(refusing):
        shop.ended(run)

    with appending(shop.dsn) as (appends, reader):
        PostgresOutbox(shop.pool, appends).move()
        last = of_runs(reader)[-1].envelope

    assert last.type == f"workflow.run.{word}"
    assert last.correlation_id == run
    assert isinstance(last.payload, dict)
    assert ("disk full" if word == "failed" else "ana") in str(last.payload["errorMessage"])


def test_a_relay_that_dies_before_it_deletes_stores_nothing_twice(shop: Shop) -> None:
    shop.define(CHAIN)
    shop.start("chain")
    shop.do("CREATE TABLE kept AS SELECT * FROM event_outbox")

    with appending(shop.dsn) as (appends, reader):
        outbox = PostgresOutbox(shop.pool, appends)
        outbox.move()
        shop.do(  # as it was before the delete was committed
            "INSERT INTO event_outbox (tenant_id, event, run_id, run_status, created_at)"
            " SELECT tenant_id, event, run_id, run_status, created_at FROM kept"
        )
        with shop.working():  # and the run has gone on since
            shop.ended(*[row[0] for row in shop.ask("SELECT id FROM workflow_runs")])
        while outbox.move():
            pass
        events = of_runs(reader)

    assert [e.envelope.type.split(".")[-1] for e in events] == ["pending", "running", "succeeded"]
    assert shop.ask("SELECT count(*) FROM event_outbox") == [(0,)]


def test_an_event_that_the_log_refuses_does_not_hold_up_the_others(shop: Shop) -> None:
    shop.define(CHAIN)
    with shop.pool.connection() as connection:
        put(connection, [{"id": "bad", "type": "no.such.type", "source": "x", "tenantId": TENANT}])
    shop.start("chain")

    with appending(shop.dsn) as (appends, reader):
        outbox = PostgresOutbox(shop.pool, appends)
        outbox.move()
        found, backlog = of_runs(reader), outbox.backlog()

    assert len(found) == 1
    assert (backlog.waiting, backlog.refused) == (0, 1)
    assert "type_unknown" in shop.ask("SELECT refused FROM event_outbox")[0][0]


def test_the_relay_moves_events_until_told_to_stop(shop: Shop) -> None:
    shop.define(CHAIN)
    with appending(shop.dsn) as (appends, _), shop.working():
        relay, stop = OutboxRelay(PostgresOutbox(shop.pool, appends)), threading.Event()
        thread = threading.Thread(target=relay.run, args=(stop,))
        thread.start()
        shop.ended(shop.start("chain"))
        wait_for(lambda: relay.moved >= 4)  # the definition's, and three of the run
        stop.set()
        relay.nudge()
        thread.join(5)

    assert not thread.is_alive()
