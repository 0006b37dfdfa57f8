"""Those who wait for a commit are judged by whoever makes it, and hear of their own faults only."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from tests.store.append.support import SlowLog, event, judge, prepare, said, started

from penstock.base.errors import AppendConflict, ConditionInvalid, EventRefused
from penstock.store.append.condition import Condition, Criterion
from penstock.store.append.coordinator import Coordinator
from penstock.store.append.judging import Said
from penstock.store.append.request import Appended, Request


class Watched:
    """Judges, and notes on which thread and how many at once."""

    def __init__(self) -> None:
        self.on: list[tuple[str, int]] = []
        self.fault: Callable[[Said], bool] = lambda _: False

    def __call__(self, several: Sequence[Said]) -> list[Request | Exception]:
        self.on.append((threading.current_thread().name, len(several)))
        if any(map(self.fault, several)):
            raise LookupError("a fault of an extension")
        return judge(several)


def behind(
    pool: ThreadPoolExecutor, coordinator: Coordinator, log: SlowLog, several: Sequence[Said]
) -> list[Future[Appended]]:
    """Callers who wait, in this order, while the commit of another one runs."""
    pool.submit(coordinator.append, prepare(said("first")))
    assert log.entered.acquire(timeout=20)
    callers = []
    for n, each in enumerate(several, 1):
        callers.append(pool.submit(coordinator.append, each))
        started(coordinator, n)
    return callers


def test_whoever_finds_nobody_at_work_judges_its_own_append() -> None:
    log, watched = SlowLog(), Watched()
    coordinator = Coordinator(log, watched)
    log.gate.release()

    assert coordinator.append(said("mine")).positions == (1,)
    assert watched.on == [(threading.current_thread().name, 1)]
    coordinator.close()


@pytest.mark.usefixtures("together")
def test_those_who_wait_are_judged_together_by_the_one_thread() -> None:
    log, watched = SlowLog(), Watched()
    coordinator = Coordinator(log, watched)
    with ThreadPoolExecutor(6) as pool:
        callers = behind(pool, coordinator, log, [said(f"w{n}") for n in range(5)])
        log.gate.release(2)
        positions = [each.result(20).positions for each in callers]

    assert watched.on == [("append", 5)]
    assert log.batches == [1, 5]
    assert positions == [(n,) for n in range(2, 7)]
    coordinator.close()


def test_tasks_are_judged_by_the_one_thread_too() -> None:
    log, watched = SlowLog(), Watched()
    coordinator = Coordinator(log, watched)
    log.gate.release()

    assert asyncio.run(coordinator.append_async(said("mine"))).positions == (1,)
    assert watched.on == [("append", 1)]
    coordinator.close()


def test_whoever_is_refused_by_the_judge_hears_it_alone() -> None:
    log = SlowLog()
    coordinator = Coordinator(log, judge)
    good, nothing = said("good"), said("nothing")._replace(events=[])
    unknown = said("x")._replace(events=[event("x") | {"type": "nobody.knows"}])
    no_json: list[Any] = [object()]
    astray = said("x")._replace(condition=Condition((Criterion(types=("nobody.knows",)),)))
    several = [unknown, good, nothing, said("x")._replace(events=no_json), astray]
    with ThreadPoolExecutor(6) as pool:
        callers = behind(pool, coordinator, log, several)
        log.gate.release(2)
        found = [type(each.exception(20)) for each in callers]

        assert found == [EventRefused, type(None), EventRefused, EventRefused, ConditionInvalid]
        assert callers[1].result().positions == (2,)
    coordinator.close()


def test_what_makes_the_judge_itself_fail_fails_alone() -> None:
    log, watched = SlowLog(), Watched()
    coordinator = Coordinator(log, watched)
    watched.fault = lambda each: each.events == [event("bad", tags={"show": "bad"})]
    with ThreadPoolExecutor(4) as pool:
        callers = behind(pool, coordinator, log, [said("bad"), said("one"), said("two")])
        log.gate.release(2)

        assert [each.result(20).positions for each in callers[1:]] == [(2,), (3,)]
        with pytest.raises(LookupError, match="of an extension"):
            callers[0].result(20)
    coordinator.close()


def test_where_all_who_wait_are_refused_the_next_caller_finds_nobody_at_work() -> None:
    log = SlowLog()
    coordinator = Coordinator(log, judge)
    nothing = said("nothing")._replace(events=[])
    with ThreadPoolExecutor(3) as pool:
        callers = behind(pool, coordinator, log, [nothing, nothing])
        log.gate.release(2)
        for each in callers:
            with pytest.raises(EventRefused):
                each.result(20)
        assert pool.submit(coordinator.append, said("next")).result(20).positions == (2,)
    coordinator.close()


def test_an_append_that_meets_another_of_its_batch_keeps_its_turn_and_is_judged_once() -> None:
    log, watched = SlowLog(), Watched()
    coordinator = Coordinator(log, watched)
    with ThreadPoolExecutor(4) as pool:
        racers = [said(f"r{n}", show="one") for n in range(3)]
        callers = behind(pool, coordinator, log, racers)
        log.gate.release(4)
        found = [type(each.exception(20)) for each in callers]

    assert found == [type(None), AppendConflict, AppendConflict]
    assert watched.on == [("append", 3)]
    assert log.batches == [1, 1, 1, 1]
    coordinator.close()
