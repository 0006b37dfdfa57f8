"""Every verdict can be explained, and running recorded passes again gives what is on record."""

from __future__ import annotations

import random
import time
from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.triggers.on_postgres.support import (
    TYPE,
    TableLauncher,
    act,
    end_run,
    host_of,
    runs,
    settle,
    spec,
    store,
)
from tests.triggers.weeks import IDS, SOURCES, specs

from penstock.base.errors import NotFound
from penstock.triggers.book.deliveries.on_postgres import DeliveryBook
from penstock.triggers.book.on_postgres import TriggerBook
from penstock.triggers.host.on_postgres import TriggerHost
from penstock.triggers.host.record.on_postgres import TriggerRecord
from penstock.triggers.limits import Breaker, Limits, LoopGuard, RetryBackoff, SourceLimit
from penstock.triggers.trigger import Trigger
from penstock.triggers.words import ActKind, Reason, Stage, Status, Target

EVEN = {"type": "jsonPath", "path": "$.payload.mod", "operator": "in", "values": [0, 2, 4, 6, 8]}
LIMITS = Limits(
    sources=(SourceLimit(SOURCES[0], 12, 150, 60),),
    breaker=Breaker(threshold=3, window_ms=2_000, pause_ms=60),
    loops=LoopGuard(depth_max=3, launches_max=8),
    backoff=RetryBackoff(base_ms=10, max_ms=80),
)


def quick(said: dict[str, Any]) -> dict[str, Any]:
    """A spec of the made-up weeks with windows of a fraction of a second."""
    short = {"throttleWindowMs": 120, "debounceMs": 40, "batchTimeoutMs": 50}
    return {name: short.get(name, value) for name, value in said.items()}


class Days:
    """A while of everything at once, on PostgreSQL: bursts, limits, operators, two versions."""

    def __init__(self, dsn: str, book: TriggerBook, seed: int) -> None:
        self.rng, self.dsn, self.book = random.Random(seed), dsn, book
        self.launcher = TableLauncher()
        self.hosts = [host_of(dsn, self.launcher, LIMITS) for _ in range(2)]
        self.triggers = [self._make(quick(each)) for each in specs(self.rng).values()]

    def _make(self, said: dict[str, Any]) -> Trigger:
        return self.book.create(spec(**said), workflow_slug="sync", by="ann")

    def step(self) -> None:
        """One thing that may happen, and a pass of one of the hosts."""
        rng, what = self.rng, self.rng.random()
        self.launcher.is_broken = rng.random() < 0.25
        if what < 0.55:
            self._events()
        elif what < 0.7:
            self._act()
        elif what < 0.85:
            for run_id, _, _ in rng.sample(runs(self.dsn), min(3, len(runs(self.dsn)))):
                end_run(self.dsn, run_id)
        elif what < 0.9:
            name = rng.choice(self.triggers).id
            said = quick(specs(rng)[rng.choice(IDS)])
            self.book.change("default", name, spec(**said), by="bob")
        rng.choice(self.hosts).run_pass()

    def close(self) -> None:
        for host in self.hosts:
            host.close()

    def _events(self) -> None:
        rng, count = self.rng, len(runs(self.dsn))
        store(
            self.dsn,
            rng.choice([1, 1, 3, 15]),
            event_type=rng.choice([TYPE, TYPE, "metastore.record.created"]),
            source=rng.choice(SOURCES),
            ttl_ms=rng.choice([None, None, None, 20]),
            correlation=rng.choice([None, f"c{count // 40}"]),
            cause=f"evt-{rng.randint(1, count + 1)}" if rng.random() < 0.3 else None,
            payload={
                "key": rng.choice("abc"), "once": rng.choice(["", "x", f"o{count // 3}"]),
                "n": rng.randint(0, 5), "by": rng.choice([0, 1, 2]),
            },
        )  # fmt: skip

    def _act(self) -> None:
        rng, names = self.rng, [each.id for each in self.triggers]
        with psycopg.connect(self.dsn) as connection:
            waiting = connection.execute(
                "SELECT id FROM workflow_trigger_deliveries WHERE next_attempt_at IS NOT NULL"
                " ORDER BY id LIMIT 5"
            ).fetchall()
        kind, target, name = rng.choice(
            [
                (ActKind.PAUSE, Target.TRIGGER, rng.choice(names)),
                (ActKind.RESUME, Target.TRIGGER, rng.choice(names)),
                (ActKind.SKIP, Target.TRIGGER, rng.choice(names)),
                (ActKind.PAUSE, Target.SOURCE, rng.choice(SOURCES)),
                (ActKind.RESUME, Target.SOURCE, rng.choice(SOURCES)),
                (ActKind.CANCEL, Target.DELIVERY, rng.choice([*waiting, ("none",)])[0]),
                (ActKind.FORCE, Target.DELIVERY, rng.choice([*waiting, ("none",)])[0]),
                (ActKind.FORCE, Target.EVENT, "evt-5"),
            ]
        )
        rng.choice(self.hosts).act(act(kind, target, name))


def statuses_after(dsn: str, trigger_id: str, position: int) -> Counter[str]:
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT status FROM workflow_trigger_deliveries"
            " WHERE trigger_id = %s AND event_position > %s",
            (trigger_id, position),
        )
        return Counter(status for (status,) in rows)


@pytest.mark.parametrize("seed", range(4))
def test_a_backtest_of_the_past_equals_the_record(
    dsn: str, book: TriggerBook, record: TriggerRecord, seed: int
) -> None:
    days = Days(dsn, book, seed)
    until = time.monotonic() + 3
    steps = 0
    while time.monotonic() < until or steps < 60:
        days.step()
        steps += 1
    days.close()

    backtests = [record.backtest("default", each.id) for each in days.triggers]

    assert [list(each.differences) for each in backtests] == [[]] * len(backtests)
    assert sum(each.found.launches for each in backtests) == len(runs(dsn)) > 0
    statuses = sum((each.found.statuses for each in backtests), Counter[str]())
    assert len(statuses) >= 3
    for each in days.triggers:
        kept = statuses_after(dsn, each.id, 20)
        later = record.backtest("default", each.id, after=20)
        assert list(later.differences) == []
        assert (later.deliveries, later.found.statuses) == (kept.total(), kept)


def test_explanations_worked_out_again_equal_those_that_were_kept(
    dsn: str, book: TriggerBook, record: TriggerRecord
) -> None:
    days = Days(dsn, book, 7)
    for _ in range(40):
        days.step()
    days.close()
    with psycopg.connect(dsn) as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM workflow_events")]

    for trigger in days.triggers:
        for event_id in ids[:: max(1, len(ids) // 8)]:
            kept = record.explain("default", trigger.id, event_id)
            again = record.explain("default", trigger.id, event_id, recompute=True)
            assert again == kept
            assert again.wire() | {"recomputed": False} == kept.wire()


def test_a_delivery_that_is_no_longer_kept_is_explained_by_its_passes(
    dsn: str, host: TriggerHost, book: TriggerBook, record: TriggerRecord
) -> None:
    made = book.create(spec(predicates=[EVEN]), workflow_slug="sync", by="ann")
    store(dsn, 4)
    settle(host)
    kept = record.explain("default", made.id, "evt-2")

    with psycopg.connect(dsn) as connection:
        connection.execute("DELETE FROM workflow_trigger_delivery_history")
        connection.execute("DELETE FROM workflow_trigger_deliveries")
    again = record.explain("default", made.id, "evt-2")

    assert again == kept
    assert (again.recomputed, kept.recomputed) == (True, False)
    assert (again.verdict, again.stage) == (Status.LAUNCHED, Stage.LAUNCH)


def test_a_filtered_event_is_explained_with_each_predicate_and_the_actual_value(
    dsn: str, host: TriggerHost, book: TriggerBook, record: TriggerRecord
) -> None:
    made = book.create(spec(predicates=[EVEN]), workflow_slug="sync", by="ann")
    store(dsn, 3)
    settle(host)

    found = record.explain("default", made.id, "evt-3")

    assert (found.verdict, found.stage, found.trigger_version) == ("filtered", Stage.PREDICATES, 1)
    assert found.judged_at is not None
    assert found.sentence() == "not started: $.payload.mod in [0,2,4,6,8], found 3"


def test_an_explanation_goes_by_the_version_that_was_in_force(
    dsn: str, host: TriggerHost, book: TriggerBook, record: TriggerRecord
) -> None:
    made = book.create(spec(predicates=[EVEN]), workflow_slug="sync", by="ann")
    store(dsn, 1)
    settle(host)
    book.change("default", made.id, spec(), by="bob")
    store(dsn, 1)
    settle(host)

    first, second = (record.explain("default", made.id, f"evt-{n}") for n in (1, 2))

    assert (first.trigger_version, first.verdict) == (1, "filtered")
    assert (second.trigger_version, second.verdict) == (2, Status.LAUNCHED)


def test_what_no_pass_has_come_to_is_pending_and_what_came_before_is_unwanted(
    dsn: str, host: TriggerHost, book: TriggerBook, record: TriggerRecord
) -> None:
    store(dsn, 1)
    settle(host)
    made = book.create(spec(), workflow_slug="sync", by="ann")
    store(dsn, 1, event_type="metastore.record.deleted")
    settle(host)
    store(dsn, 1)

    before, other, new = (record.explain("default", made.id, f"evt-{n}") for n in (1, 2, 3))

    assert (before.verdict, before.reason) == ("unwanted", "not_defined")
    assert (other.verdict, other.reason, other.stage) == ("unwanted", None, None)
    assert (new.verdict, new.judged_at) == (Status.PENDING, None)


def test_a_held_event_is_explained_by_its_source(
    dsn: str, host: TriggerHost, book: TriggerBook, record: TriggerRecord
) -> None:
    made = book.create(spec(predicates=[EVEN]), workflow_slug="sync", by="ann")
    host.act(act(ActKind.PAUSE, Target.SOURCE, "metastore.api", reason="too noisy"))
    store(dsn, 1)
    settle(host)

    held = record.explain("default", made.id, "evt-1")
    host.act(act(ActKind.RESUME, Target.SOURCE, "metastore.api"))
    settle(host)
    judged = record.explain("default", made.id, "evt-1")

    assert (held.verdict, held.stage, held.judged_at) == (Status.PENDING, Stage.SOURCE, None)
    assert held.reason == "too noisy"
    assert (judged.verdict, judged.reason) == ("filtered", Reason.FILTERED)


def test_nobody_explains_what_belongs_to_another_tenant(
    dsn: str, host: TriggerHost, book: TriggerBook, record: TriggerRecord
) -> None:
    made = book.create(spec(), workflow_slug="sync", by="ann")
    store(dsn, 1)
    settle(host)

    for tenant, trigger_id, event_id in (
        ("other", made.id, "evt-1"),
        ("default", "nobody", "evt-1"),
        ("default", made.id, "evt-99"),
    ):
        with pytest.raises(NotFound):
            record.explain(tenant, trigger_id, event_id)
    with pytest.raises(NotFound):
        record.backtest("other", made.id)


def test_a_backtest_up_to_an_instant_leaves_later_passes_out(
    dsn: str, host: TriggerHost, book: TriggerBook, record: TriggerRecord, deliveries: DeliveryBook
) -> None:
    made = book.create(spec(maxConcurrency=1), workflow_slug="sync", by="ann")
    store(dsn, 3)
    settle(host)
    first = deliveries.deliveries("default", made.id)[-1]
    end_run(dsn, runs(dsn)[0][0])
    settle(host)

    early = record.backtest("default", made.id, until=first.updated_at + timedelta(microseconds=1))
    whole = record.backtest("default", made.id)

    assert (early.found.launches, early.equals_record) == (1, True)
    assert (whole.found.launches, whole.equals_record) == (2, True)


def test_the_limits_that_were_in_force_are_part_of_the_record(
    dsn: str, book: TriggerBook, record: TriggerRecord
) -> None:
    made = book.create(spec(), workflow_slug="broken", by="ann")
    for threshold in (2, 50):
        host = host_of(dsn, TableLauncher(), Limits(breaker=Breaker(threshold=threshold)))
        store(dsn, 4)
        host.run_pass()
        host.close()

    assert record.backtest("default", made.id).equals_record
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("SELECT first_pass FROM trigger_settings").fetchall()
    assert len(rows) == 2
