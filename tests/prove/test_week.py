"""Back-tests equal recorded deliveries over a generated week of throttling, pauses and failures."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.prove.week import MONDAY, SUNDAY, OnLists, OnPostgres, Specs, Week
from tests.triggers.evaluating import trigger

from penstock.base.on_postgres import open_pool
from penstock.triggers.backtest import differences, outcomes_of, replay
from penstock.triggers.book.deliveries.on_postgres import DeliveryBook
from penstock.triggers.delivery import Delivery
from penstock.triggers.host.record.on_postgres import TriggerRecord
from penstock.triggers.words import Reason, Status


def on_lists(wanted: Specs) -> OnLists:
    return OnLists([trigger(name, **spec) for name, spec in wanted.items()])


@pytest.mark.parametrize("seed", range(3))
def test_a_backtest_equals_the_recorded_deliveries_of_a_week(seed: int) -> None:
    week = Week(seed, 1_200, on_lists)
    week.live()
    assert isinstance(week.stage, OnLists)
    twin = week.stage.twin

    again = replay(twin.passes, twin.versions, outcomes_of(twin.history), twin.log)

    assert again.unforeseen == []
    assert differences(twin.deliveries, twin.history, again) == []
    assert len(twin.events) == 1_200
    assert twin.passes[-1].judged_at - twin.passes[0].judged_at > (SUNDAY - MONDAY) * 0.9


def test_the_weeks_have_throttling_pauses_failures_and_every_way_to_end() -> None:
    statuses, reasons = Counter[Status](), Counter[Reason | None]()
    for seed in range(3):
        week = Week(seed, 1_000, on_lists)
        week.live()
        assert isinstance(week.stage, OnLists)
        for entry in week.stage.twin.history:
            statuses[entry.status] += 1
            reasons[entry.reason] += 1

    assert set(statuses) == set(Status)
    assert min(reasons[each] for each in (
        Reason.THROTTLE_WINDOW, Reason.PAUSED, Reason.LAUNCH_REFUSED, Reason.DUPLICATE_KEY,
        Reason.MAX_CONCURRENCY, Reason.PARAMETERS_FAILED, Reason.SUPERSEDED, Reason.LOOP,
    )) > 0  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_the_same_week_on_postgresql_decides_as_the_lists_do_and_its_backtest_is_the_record(
    database: str, seed: int
) -> None:
    with open_pool(database, "owner", size_max=3) as pool:
        week = Week(seed, 150, lambda wanted: OnPostgres(database, pool, wanted))
        assert isinstance(week.stage, OnPostgres)
        try:
            week.live()
        finally:
            week.stage.close()
        record, book, twin = TriggerRecord(pool), DeliveryBook(pool), week.stage.lists.twin

        for each in week.stage.triggers:
            found = record.backtest("default", each.id)
            assert list(found.differences) == []
            kept = {d.id: d for d in _all(book, each.id)}
            mine = {d.id: d for d in twin.deliveries if d.trigger_id == each.id}
            assert [kept[name] for name in sorted(kept)] == [mine[name] for name in sorted(mine)]
        assert len(twin.runs) > 20
        assert len({d.status for d in twin.deliveries}) >= 4


def _all(book: DeliveryBook, trigger_id: str) -> list[Delivery]:
    found: list[Delivery] = []
    before: int | None = None
    while more := book.deliveries("default", trigger_id, limit=200, before=before):
        found += more
        before = more[-1].event_position
    return found
