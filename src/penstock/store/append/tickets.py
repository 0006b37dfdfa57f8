"""Hold callers while their append is under way, and wake them when it is over.

    ThreadTicket ── wait ──▶ sleeps on a lock of its own
    TaskTicket   ── wait ──▶ awaits a future of its loop        tell(batch, outcomes) wakes them all

Waking is most of what many small appends cost in Python, so it is done as rarely as can be: threads
wake one another in a chain, and a loop is told once of all its tasks.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import structlog

from penstock.store.append.judging import Said
from penstock.store.append.request import Outcome, Request

Told: TypeAlias = Outcome | Exception
_log = structlog.get_logger("append")


def taken_lock() -> threading.Lock:
    """The cheapest thing to wait on: whoever wants to go on takes it, another lets go of it."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class _Ticket:
    """One caller's append, which may be yet to be judged."""

    __slots__ = ("request", "said")
    request: Request

    def __init__(self, asked: Request | Said) -> None:
        self.said: Said | None = None
        if isinstance(asked, Request):
            self.request = asked
        else:
            self.said = asked


class ThreadTicket(_Ticket):
    """One caller that waits, on its own thread, and then wakes the one behind it.

    Were all woken at once, they would stand in each other's way to the one lock that Python has.
    The main thread may be interrupted while it waits, so nobody is put behind it.
    """

    __slots__ = ("_behind", "_done", "_is_main", "_outcome")

    def __init__(self, asked: Request | Said) -> None:
        super().__init__(asked)
        self._outcome: Told | None = None
        self._behind: ThreadTicket | None = None
        self._is_main = threading.current_thread() is threading.main_thread()
        self._done = taken_lock()

    def wait(self) -> Told | None:
        self._done.acquire()
        if self._behind is not None:
            self._behind.wake()
        return self._outcome

    def resolve(self, outcome: Told, behind: ThreadTicket | None) -> ThreadTicket | None:
        """Take the outcome; who is to be woken so that this one and those behind it are."""
        self._outcome = outcome
        if self._is_main:
            self.wake()
            return behind
        self._behind = behind
        return self

    def wake(self) -> None:
        self._done.release()


class TaskTicket(_Ticket):
    """One caller that waits in an event loop."""

    __slots__ = ("_future", "loop")

    def __init__(self, asked: Request | Said) -> None:
        super().__init__(asked)
        self.loop = asyncio.get_running_loop()
        self._future: asyncio.Future[Told] = self.loop.create_future()

    async def wait(self) -> Told:
        return await self._future

    def settle(self, outcome: Told) -> None:
        """In its loop."""
        if not self._future.done():  # else the caller gave up meanwhile
            self._future.set_result(outcome)


Ticket: TypeAlias = ThreadTicket | TaskTicket


def tell(batch: Sequence[Ticket], results: Sequence[Told]) -> None:
    """Wake the first thread, who wakes the next, and each loop once for all of its tasks."""
    first: ThreadTicket | None = None
    tasks: dict[asyncio.AbstractEventLoop, list[tuple[TaskTicket, Told]]] = {}
    for ticket, outcome in zip(reversed(batch), reversed(results), strict=True):
        if isinstance(ticket, ThreadTicket):
            first = ticket.resolve(outcome, first)
        else:
            tasks.setdefault(ticket.loop, []).append((ticket, outcome))
    if first is not None:
        first.wake()
    for loop, told in tasks.items():
        try:
            loop.call_soon_threadsafe(_settle, told)
        except RuntimeError:  # the loop is closed, and nobody waits any more
            _log.info("append_unheard", callers=len(told))


def _settle(told: Iterable[tuple[TaskTicket, Told]]) -> None:
    for ticket, outcome in told:
        ticket.settle(outcome)
