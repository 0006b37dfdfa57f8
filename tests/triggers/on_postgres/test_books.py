"""Deliveries, backlogs and figures are read back as passes left them, by their own tenant."""

from __future__ import annotations

import json

import psycopg
import pytest
from tests.triggers.on_postgres.support import (
    TableLauncher,
    act,
    host_of,
    settle,
    spec,
    store,
)

from penstock.base.errors import NotFound
from penstock.triggers.book.deliveries.on_postgres import DeliveryBook
from penstock.triggers.book.figures.on_postgres import FigureBook
from penstock.triggers.book.on_postgres import TriggerBook
from penstock.triggers.host.on_postgres import TriggerHost
from penstock.triggers.words import ActKind, Status, Target

EVEN = {"type": "jsonPath", "path": "$.payload.mod", "operator": "in", "values": [0, 2, 4, 6, 8]}


def test_deliveries_are_listed_newest_first_and_filtered(
    dsn: str, host: TriggerHost, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    made = book.create(
        spec(idempotencyKeyExpression="k{{ event.payload.mod }}"), workflow_slug="sync", by="ann"
    )
    store(dsn, 12)
    settle(host)

    def found(**wanted: object) -> list[str]:
        return [
            d.event_id
            for d in deliveries.deliveries("default", made.id, **wanted)  # type: ignore[arg-type]
        ]

    assert found(limit=2) == ["evt-12", "evt-11"]
    assert found(limit=2, before=11) == ["evt-10", "evt-9"]
    assert found(status=Status.SKIPPED) == ["evt-12", "evt-11"]
    assert found(event_id="evt-3") == ["evt-3"]
    assert found(dedupe_key="k1") == ["evt-11", "evt-1"]
    assert deliveries.deliveries("other", made.id) == []
    assert [d.trigger_id for d in deliveries.of_event("default", "evt-3")] == [made.id]
    with pytest.raises(NotFound):
        deliveries.delivery("other", deliveries.deliveries("default", made.id)[0].id)


def test_the_backlog_has_a_total_what_is_overdue_and_when_the_next_is_due(
    dsn: str, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    host = host_of(dsn, TableLauncher())
    book.create(spec(), workflow_slug="broken", by="ann")
    store(dsn, 2)
    host.run_pass()

    backlog, entries = deliveries.waiting("default")

    assert (backlog.total, backlog.overdue) == (2, 0)
    assert backlog.next_attempt_at == min(d.next_attempt_at for d in entries if d.next_attempt_at)
    assert deliveries.waiting("other")[0].total == 0
    assert deliveries.waiting(None)[0].total == 2
    host.close()


def test_counters_grow_with_every_pass(
    dsn: str, host: TriggerHost, book: TriggerBook, figures: FigureBook
) -> None:
    book.create(spec(predicates=[EVEN]), workflow_slug="sync", by="ann")
    store(dsn, 10)
    settle(host)
    store(dsn, 10)

    assert figures.progress().waiting == 10
    settle(host)

    (counted,) = figures.triggers("default")
    assert (counted.filtered, counted.matched, counted.launched) == (10, 10, 10)
    assert (counted.last_status, counted.workflow_slug) == ("launched", "sync")
    (source,) = figures.sources("default")
    assert (source.total, source.throttled) == (20, 0)
    assert source.average_lag_ms is not None
    assert figures.triggers("other") == []
    assert figures.sources("other") == []
    assert figures.progress().waiting == 0


def test_what_an_operator_did_is_told_to_live_streams(
    dsn: str, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    host = host_of(dsn, TableLauncher())
    made = book.create(spec(), workflow_slug="broken", by="ann")
    store(dsn, 1)
    host.run_pass()
    (waiting,) = deliveries.deliveries("default", made.id)

    with psycopg.connect(dsn, autocommit=True) as listener:
        listener.execute("LISTEN penstock_triggers")
        host.act(act(ActKind.CANCEL, Target.DELIVERY, waiting.id))
        (heard,) = listener.notifies(timeout=5, stop_after=1)

    (frame,) = json.loads(heard.payload)["frames"]
    assert frame == {
        "type": "retry.trigger.delivery.cancelled",
        "id": waiting.id,
        "tenantId": "default",
        "by": "ann",
    }
    host.close()


def test_an_act_is_carried_out_while_a_worker_is_in_a_pass(
    dsn: str, host: TriggerHost, book: TriggerBook, figures: FigureBook
) -> None:
    made = book.create(spec(), workflow_slug="sync", by="ann")
    store(dsn, 1)
    with psycopg.connect(dsn) as busy:
        busy.execute("SELECT FROM trigger_cursor FOR UPDATE")
        assert host.run_pass().number is None  # it leaves the rest to whoever has the lock

    settle(host)
    other = host_of(dsn, TableLauncher())
    assert other.act(act(ActKind.PAUSE, Target.TRIGGER, made.id)).is_done
    other.close()

    assert [pause.trigger_id for pause in figures.paused_triggers()] == [made.id]
