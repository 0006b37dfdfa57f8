"""Appends share commits, every caller hears what became of its own, and none waits for ever."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from itertools import islice

import pytest
from tests.store.append.support import SlowLog, judge, prepare, said, started

from penstock.base.errors import AppendConflict, StoreUnavailable
from penstock.store.append import coordinator as coordinator_module
from penstock.store.append.coordinator import Coordinator
from penstock.store.append.request import Appended


def held(
    pool: ThreadPoolExecutor, coordinator: Coordinator, log: SlowLog, count: int
) -> tuple[Future[Appended], list[Future[Appended]]]:
    """One caller whose commit is under way, and so many others who wait behind it."""
    first = pool.submit(coordinator.append, said("first"))
    assert log.entered.acquire(timeout=20)
    others = [pool.submit(coordinator.append, said(f"o{n}")) for n in range(count)]
    started(coordinator, count)
    return first, others


@pytest.mark.usefixtures("together")
def test_what_arrives_while_a_commit_runs_shares_the_next_one() -> None:
    log = SlowLog()
    coordinator = Coordinator(log, judge)
    with ThreadPoolExecutor(9) as pool:
        first, others = held(pool, coordinator, log, 8)
        log.gate.release(2)
        positions = sorted(each.result(20).positions for each in [first, *others])

    assert log.batches == [1, 8]
    assert positions == [(n,) for n in range(1, 10)]
    coordinator.close()


def test_half_of_a_crowd_is_told_while_the_log_works_for_the_other_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coordinator_module, "_TELLING_S", 3600.0)  # longer than any commit
    log = SlowLog()
    coordinator = Coordinator(log, judge)
    with ThreadPoolExecutor(21) as pool:
        _, others = held(pool, coordinator, log, 20)
        log.gate.release()
        assert log.entered.acquire(timeout=20)
        assert log.batches == [1, 10, 10], "the second half is sent before the first is answered"

        log.gate.release()
        told = list(islice(as_completed(others, timeout=20), 10))
        assert log.entered.acquire(timeout=20)
        assert [each for each in others if each.done()] == [each for each in others if each in told]
        log.gate.release()
        positions = sorted(each.result(20).positions for each in others)

    assert positions == [(n,) for n in range(2, 22)]
    coordinator.close()


def test_few_callers_go_together_while_the_log_is_at_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coordinator_module, "_TELLING_S", 3600.0)
    log = SlowLog()
    coordinator = Coordinator(log, judge)
    with ThreadPoolExecutor(7) as pool:
        first, others = held(pool, coordinator, log, 6)
        log.gate.release(2)
        for each in (first, *others):
            each.result(20)

    assert log.batches == [1, 6]
    coordinator.close()


def test_each_caller_hears_its_own_outcome() -> None:
    log = SlowLog()
    coordinator = Coordinator(log, judge)
    log.log.commit([prepare(said("taken"))])
    refused = said("x", show="taken")
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(coordinator.append, said("first"))
        assert log.entered.acquire(timeout=20)
        bad = pool.submit(coordinator.append, refused)
        good = pool.submit(coordinator.append, said("good"))
        started(coordinator, 2)
        log.gate.release(2)

        assert good.result(20).positions == (3,)
        assert first.result(20).positions == (2,)
        with pytest.raises(AppendConflict):
            bad.result(20)
    coordinator.close()


@pytest.mark.parametrize("error", [StoreUnavailable("away"), ValueError("a fault of ours")])
def test_a_commit_that_fails_is_told_to_everybody_in_it_and_the_next_goes_on(
    error: Exception,
) -> None:
    log = SlowLog()
    coordinator = Coordinator(log, judge)
    log.broken = lambda: error
    with ThreadPoolExecutor(3) as pool:
        first, others = held(pool, coordinator, log, 2)
        log.gate.release(2)
        for each in (first, *others):
            with pytest.raises(StoreUnavailable):
                each.result(20)
    log.broken = None
    log.gate.release()

    assert coordinator.append(said("after")).positions == (1,)
    coordinator.close()


@pytest.mark.usefixtures("together")
def test_tasks_and_threads_share_commits() -> None:
    log = SlowLog()
    coordinator = Coordinator(log, judge)

    async def main() -> list[tuple[int, ...]]:
        first = asyncio.create_task(coordinator.append_async(said("first")))
        await asyncio.to_thread(log.entered.acquire)
        tasks = [asyncio.create_task(coordinator.append_async(said(f"t{n}"))) for n in range(3)]
        threads = [
            asyncio.create_task(asyncio.to_thread(coordinator.append, said(f"s{n}")))
            for n in range(3)
        ]
        await asyncio.to_thread(started, coordinator, 6)
        log.gate.release(2)
        return [each.positions for each in await asyncio.gather(first, *tasks, *threads)]

    assert sorted(asyncio.run(main())) == [(n,) for n in range(1, 8)]
    assert log.batches == [1, 6]
    coordinator.close()


def test_a_task_that_gives_up_does_not_hold_up_the_others() -> None:
    log = SlowLog()
    coordinator = Coordinator(log, judge)

    async def main() -> tuple[int, ...]:
        gone = asyncio.create_task(coordinator.append_async(said("gone")))
        await asyncio.to_thread(log.entered.acquire)
        kept = asyncio.create_task(coordinator.append_async(said("kept")))
        await asyncio.to_thread(started, coordinator, 1)
        gone.cancel()
        log.gate.release(2)
        return (await kept).positions

    assert asyncio.run(main()) == (2,)
    coordinator.close()


def test_closing_commits_what_waits_and_then_lets_go_of_the_log() -> None:
    log = SlowLog()
    coordinator = Coordinator(log, judge)
    with ThreadPoolExecutor(4) as pool:
        first, others = held(pool, coordinator, log, 2)
        closing = pool.submit(coordinator.close)
        log.gate.release(2)
        closing.result(20)

        assert [each.result(20).positions for each in (first, *others)] == [(1,), (2,), (3,)]
    assert log.is_closed
    with pytest.raises(StoreUnavailable):
        coordinator.append(said("late"))


def test_callers_who_come_back_at_once_go_on_sharing_commits() -> None:
    log = SlowLog()
    log.gate.release(10_000)
    coordinator = Coordinator(log, judge)

    def client(name: int) -> None:
        for n in range(40):
            coordinator.append(said(f"c{name}-{n}"))

    with ThreadPoolExecutor(16) as pool:
        for each in [pool.submit(client, n) for n in range(16)]:
            each.result(60)

    assert sum(log.batches) == 640, "every append is committed, however they were gathered"
    coordinator.close()
