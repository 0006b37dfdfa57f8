"""Whoever waits for an append is woken, whoever else gave up."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from tests.store.append.support import prepare, said

from penstock.base.errors import StoreUnavailable
from penstock.store.append.request import Appended
from penstock.store.append.tickets import TaskTicket, ThreadTicket, tell

REQUEST = prepare(said("anybody"))
AWAY = StoreUnavailable("away")


def test_threads_wake_one_another_and_each_hears_its_own_outcome() -> None:
    with ThreadPoolExecutor(5) as pool:
        batch = [pool.submit(ThreadTicket, REQUEST).result(20) for _ in range(5)]
        heard = [pool.submit(ticket.wait) for ticket in batch]
        tell(batch, [Appended((n,)) for n in range(5)])

        assert [each.result(20) for each in heard] == [Appended((n,)) for n in range(5)]


def test_nobody_is_put_behind_the_main_thread_which_may_be_interrupted() -> None:
    with ThreadPoolExecutor(2) as pool:
        before, behind = (pool.submit(ThreadTicket, REQUEST).result(20) for _ in range(2))
        mine = ThreadTicket(REQUEST)  # this is the main thread, and it does not wait
        heard = [pool.submit(ticket.wait) for ticket in (before, behind)]
        tell([before, mine, behind], [AWAY, AWAY, AWAY])

        assert [each.result(20) for each in heard] == [AWAY, AWAY]
    assert mine.wait() is AWAY


def test_a_loop_that_is_closed_keeps_nobody_else_from_being_told() -> None:
    async def ticket() -> TaskTicket:
        return TaskTicket(REQUEST)

    gone = asyncio.run(ticket())

    async def main() -> object:
        mine, other = TaskTicket(REQUEST), TaskTicket(REQUEST)
        waiting = asyncio.create_task(mine.wait())
        await asyncio.to_thread(tell, [gone, mine, other], [AWAY, Appended((1,)), AWAY])
        return await waiting

    assert asyncio.run(main()) == Appended((1,))
