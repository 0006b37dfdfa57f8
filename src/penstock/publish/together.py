"""Let calls that wait at the same time share a request.

    send ──▶ fewer than two under way? ── yes ──▶ goes at once
                     │ no
                     └──▶ waits ──▶ [everybody who waits, in one request] ──▶ each its own answers

A request costs a client several times what an event in it does, and in an event loop the more of
them are under way the more each costs. So a crowd of callers sends few, and a lone one waits for
nobody. What a request brings to all, that the server is away, is told to all who share it; and one
who gives up harms nobody. One of these per event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from penstock.base.errors import QueueUnavailable
from penstock.envelope.envelope import JsonObject
from penstock.publish.port import Result

EVENTS_MAX: Final = 500  # of a shared request; what one caller brings stays together
_UNDER_WAY: Final = 2  # while one is answered the next is on its way
Send: TypeAlias = Callable[[Sequence[JsonObject]], Awaitable[list[Result]]]


class _Call(NamedTuple):
    """One caller that waits."""

    events: Sequence[JsonObject]
    answers: asyncio.Future[list[Result]]


class Together:
    """Sends what its callers bring, in as few requests as can be."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._under_way = 0
        self._waiting: deque[_Call] = deque()
        self._tasks: set[asyncio.Task[None]] = set()  # a loop itself forgets its tasks

    async def send(self, events: Sequence[JsonObject]) -> list[Result]:
        """One answer per event, in order, or fewer; raises when there is none."""
        if self._under_way < _UNDER_WAY:
            self._under_way += 1
            try:
                return await self._send(events)
            finally:
                self._go_on()
        call = _Call(events, asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        return await call.answers

    def _go_on(self) -> None:
        """One request is over: send for those who waited meanwhile."""
        calls = self._next()
        if not calls:
            self._under_way -= 1
            return
        task = asyncio.get_running_loop().create_task(self._share(calls))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _next(self) -> list[_Call]:
        calls: list[_Call] = []
        room = EVENTS_MAX
        while self._waiting and (not calls or len(self._waiting[0].events) <= room):
            call = self._waiting.popleft()
            if not call.answers.done():  # else the caller gave up
                calls.append(call)
                room -= len(call.events)
        return calls

    async def _share(self, calls: Sequence[_Call]) -> None:
        try:
            found = await self._send([event for call in calls for event in call.events])
        except asyncio.CancelledError:  # the loop ends
            for call in calls:
                call.answers.cancel()
            raise
        except Exception as error:  # noqa: BLE001  each caller is told, whatever it is
            for call in calls:
                if not call.answers.done():
                    call.answers.set_exception(error)
        else:
            _hand_out(calls, found)
        finally:
            self._go_on()


def _hand_out(calls: Sequence[_Call], found: Sequence[Result]) -> None:
    first = 0
    for call in calls:
        mine = list(found[first : first + len(call.events)])
        first += len(call.events)
        if call.answers.done():
            continue
        if mine or not call.events:
            call.answers.set_result(mine)
        else:
            went = "expected an answer, found that the server went away before it"
            call.answers.set_exception(QueueUnavailable(went, retry_after_s=0))
