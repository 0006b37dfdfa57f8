"""A trigger that causes itself is stopped, and one incident tells of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from tests.triggers.on_postgres.support import TableLauncher, runs, settle, spec, store

from penstock.envelope.envelope import JsonObject
from penstock.store.walk.on_postgres import Connection
from penstock.triggers.book.deliveries.on_postgres import DeliveryBook
from penstock.triggers.book.on_postgres import TriggerBook
from penstock.triggers.host.on_postgres import TriggerHost
from penstock.triggers.limits import Limits, LoopGuard
from penstock.triggers.words import Reason, Status

GUARD = Limits(loops=LoopGuard(depth_max=2, launches_max=3))


class Told:
    """An outbox that is a list."""

    def __init__(self) -> None:
        self.events: list[JsonObject] = []

    def __call__(self, connection: Connection, events: Sequence[JsonObject]) -> None:
        assert connection.info.transaction_status.name == "INTRANS"
        self.events.extend(events)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def guarded(dsn: str, told: Told) -> Iterator[TriggerHost]:
    opened = TriggerHost(dsn, TableLauncher(), GUARD, outbox=told)
    yield opened
    opened.close()


def test_a_correlation_that_is_used_up_launches_no_more_and_is_told_once(
    dsn: str, guarded: TriggerHost, book: TriggerBook, deliveries: DeliveryBook, told: Told
) -> None:
    made = book.create(spec(), workflow_slug="sync", by="ann")
    for _ in range(3):
        store(dsn, 2, correlation="c-1")
        settle(guarded)
    store(dsn, 1, correlation="c-2")
    settle(guarded)

    kept = deliveries.deliveries("default", made.id)[::-1]
    assert [d.status for d in kept] == [Status.LAUNCHED] * 3 + [Status.SKIPPED] * 3 + [
        Status.LAUNCHED
    ]
    assert {d.reason for d in kept[3:6]} == {Reason.LOOP}
    (incident,) = told.events
    assert incident["type"] == "penstock.loop.stopped"
    assert incident["correlationId"] == "c-1"
    assert incident["causationId"] == "evt-4"


def test_an_event_with_too_many_causes_launches_nothing(
    dsn: str, guarded: TriggerHost, book: TriggerBook, told: Told
) -> None:
    book.create(spec(), workflow_slug="sync", by="ann")
    store(dsn, 1)
    for n in range(1, 5):
        store(dsn, 1, cause=f"evt-{n}")
    settle(guarded)

    assert [event_ids for _, _, event_ids in runs(dsn)] == [["evt-1"], ["evt-2"], ["evt-3"]]
    assert {event["causationId"] for event in told.events} <= {"evt-4", "evt-5"}


def test_causes_that_form_a_circle_are_counted_once(
    dsn: str, guarded: TriggerHost, book: TriggerBook
) -> None:
    book.create(spec(), workflow_slug="sync", by="ann")
    store(dsn, 1, cause="evt-2")
    store(dsn, 1, cause="evt-1")
    store(dsn, 1, cause="nobody")

    settle(guarded)

    assert len(runs(dsn)) == 3
