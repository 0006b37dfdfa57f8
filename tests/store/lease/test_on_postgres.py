"""One ingress at a time may settle, and one that was replaced is refused in the transaction."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import psycopg
import pytest

from penstock.envelope.envelope import Envelope, Severity
from penstock.ingress.lot import Judged, Lot
from penstock.ingress.rows import write
from penstock.ingress.verdict import Accepted
from penstock.store.intake.on_postgres import Fenced, PostgresIntake
from penstock.store.lease.on_postgres import IngressLease

AT = datetime(2026, 3, 1, tzinfo=UTC)


def judged(event_id: str) -> Judged:
    envelope = Envelope(event_id, "a.b", "s.x", AT, {})
    return Judged(b"{}", Accepted(envelope, Severity.INFO, "default", None, b"h", b"{}", {}))


def test_an_ingress_that_was_replaced_settles_nothing_more(database: str) -> None:
    stop = threading.Event()
    old, new = IngressLease(database), IngressLease(database)
    first = old.hold(stop)
    old.close()  # as if its connection had been lost while it slept
    second = new.hold(stop)
    intake = PostgresIntake(database)

    with pytest.raises(Fenced):
        intake.settle(Lot(writer="w", messages=write([judged("late")]), epoch=first))
    intake.settle(Lot(writer="w", messages=write([judged("good")]), epoch=second))

    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT id FROM workflow_events").fetchall() == [("good",)]
    intake.close()
    new.close()


def test_holding_the_lease_again_keeps_its_epoch(database: str) -> None:
    lease, stop = IngressLease(database), threading.Event()

    assert lease.hold(stop) == lease.hold(stop)
    lease.close()


def test_positions_are_gapless_and_each_event_is_stored_once_by_concurrent_intakes(
    database: str,
) -> None:
    def settle(writer: int) -> None:
        intake = PostgresIntake(database)
        for n in range(20):
            lot = [judged(f"{writer}-{n}-{k}") for k in range(5)] + [judged(f"shared-{n}")]
            intake.settle(Lot(writer=f"w{writer}", messages=write(lot)))
        intake.close()

    threads = [threading.Thread(target=settle, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    with psycopg.connect(database) as connection:
        row = connection.execute(
            "SELECT count(*), count(DISTINCT id), min(position), max(position),"
            " (SELECT position FROM head), (SELECT duplicates FROM ledger_totals)"
            " FROM workflow_events"
        ).fetchone()
    assert row == (420, 420, 1, 420, 420, 60)
