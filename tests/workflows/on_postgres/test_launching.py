"""Triggers launch runs in their own transaction: in bulk, once, and they hear of every end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg
from tests.workflows.on_postgres.support import CHAIN, TENANT, Shop, step, workflow

from penstock.envelope.envelope import Envelope, Severity, Stored
from penstock.triggers.delivery import Launch, Launched, LaunchOutcome, Refused
from penstock.triggers.port import Launcher
from penstock.triggers.trigger import Trigger, TriggerSpec
from penstock.workflows.book.on_postgres import WorkflowBook
from penstock.workflows.engine.launching.on_postgres import Launching

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def event(n: int, payload: Any = None) -> Stored:
    envelope = Envelope(
        f"evt-{n}", "seat.booked", "box.office", NOW, payload or {"n": n},
        correlation_id="trace-1", tenant_id=TENANT,
    )  # fmt: skip
    return Stored(n, envelope, NOW, Severity.INFO, "default", None, b"")


def launch(n: int, *, slug: str = "chain", trigger: str = "t1", **fields: Any) -> Launch:
    spec = TriggerSpec(name="booked", event_type="seat.booked")
    events = fields.pop("events", (event(n),))
    given = {
        "parameters": {"n": n}, "run_key": f"trigger-{trigger}-d{n}", "dedupe_key": None,
        "correlation_id": "trace-1", "causation_id": f"evt-{n}", "depth": 1, "launched_at": NOW,
    } | fields  # fmt: skip
    return Launch(
        run_id=f"run-{trigger}-{n}", tenant_id=TENANT, workflow_slug=slug,
        trigger=Trigger(trigger, TENANT, slug, 3, spec, NOW, "ana", NOW, "ana"),
        delivery_id=f"d{n}", delivery_ids=tuple(f"d{each.position}" for each in events),
        events=events, **given,
    )  # fmt: skip


def do_launch(shop: Shop, launches: Sequence[Launch]) -> list[LaunchOutcome]:
    launcher: Launcher = Launching()
    with psycopg.connect(shop.dsn) as connection:
        return launcher(connection, launches)


def ends(shop: Shop) -> list[tuple[Any, ...]]:
    return shop.ask("SELECT trigger_id, run_id, status FROM trigger_run_ends ORDER BY trigger_id")


def test_launches_become_runs_that_know_their_event(shop: Shop) -> None:
    shop.define(CHAIN)

    found = do_launch(shop, [launch(1), launch(2)])
    with shop.working():
        shop.ended("run-t1-1", "run-t1-2")

    assert found == [Launched("run-t1-1"), Launched("run-t1-2")]
    run = WorkflowBook(shop.pool).runs.run(TENANT, "run-t1-1")
    assert (run.triggered_by, run.trigger_id) == ("event-trigger", "t1")
    assert (run.correlation_id, run.causation_id) == ("trace-1", "evt-1")
    assert isinstance(run.trigger, dict)
    assert isinstance(run.trigger["event"], dict)
    assert run.trigger["event"]["payload"] == {"n": 1}
    assert sorted(ends(shop)) == [
        ("t1", "run-t1-1", "succeeded"), ("t1", "run-t1-2", "succeeded"),
    ]  # fmt: skip


def test_one_bad_launch_does_not_spoil_the_others(shop: Shop) -> None:
    picky = workflow("picky", step("a"), parametersSchema={"type": "object", "required": ["day"]})
    shop.define(CHAIN, picky, workflow("off", step("a")))
    shop.definitions.change(TENANT, "off", by="ana", status="disabled")

    found = do_launch(
        shop,
        [
            launch(1), launch(2, slug="none"), launch(3, slug="picky"), launch(4, slug="off"),
            launch(5, parameters=["no", "object"]), launch(6, run_key=" - "), launch(7),
        ],
    )  # fmt: skip

    assert [type(each) for each in found] == [Launched, *[Refused] * 5, Launched]
    words = [each.detail for each in found if isinstance(each, Refused)]
    for word, detail in zip(("'none'", "day", "disabled", "a list", "run key"), words, strict=True):
        assert word in detail


def test_a_launch_whose_key_is_taken_is_attached_and_its_trigger_hears_the_end(shop: Shop) -> None:
    shop.define(CHAIN)
    manual = shop.start("chain", run_key="orders")

    (found,) = do_launch(shop, [launch(1, run_key="Orders")])
    with shop.working():
        shop.ended(manual)

    assert found == Launched(manual, attached=True)
    assert shop.ask("SELECT count(*) FROM workflow_runs") == [(1,)]
    assert ends(shop) == [("t1", manual, "succeeded")]


def test_launches_of_one_call_that_share_a_key_share_a_run(shop: Shop) -> None:
    shop.define(CHAIN)

    found = do_launch(
        shop, [launch(1, run_key="orders"), launch(2, trigger="t2", run_key="orders")]
    )
    with shop.working():
        shop.ended("run-t1-1")

    assert found == [Launched("run-t1-1"), Launched("run-t1-1", attached=True)]
    assert ends(shop) == [("t1", "run-t1-1", "succeeded"), ("t2", "run-t1-1", "succeeded")]


def test_a_batch_gives_its_run_all_events_and_large_ones_without_payloads(shop: Shop) -> None:
    shop.define(CHAIN)
    large = tuple(event(n, {"text": "x" * 100_000}) for n in (10, 11, 12))
    do_launch(shop, [launch(2, events=(event(1), event(2))), launch(12, events=large)])

    book = WorkflowBook(shop.pool).runs
    small, cut = (book.run(TENANT, f"run-t1-{n}").trigger for n in (2, 12))
    assert isinstance(small, dict)
    assert isinstance(cut, dict)
    assert isinstance(small["events"], list)
    assert isinstance(cut["events"], list)
    assert ["payload" in each for each in small["events"]] == [True, True]  # type: ignore[operator]
    assert ["payload" in each for each in cut["events"]] == [False] * 3  # type: ignore[operator]


def test_a_run_that_no_trigger_launched_ends_without_a_word_to_triggers(shop: Shop) -> None:
    shop.define(CHAIN)
    with shop.working():
        shop.ended(shop.start("chain"))

    assert ends(shop) == []
