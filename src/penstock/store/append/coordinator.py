"""Let appends share commits: whatever arrives while one runs goes into the next.

    append ──▶ nobody at work? ── yes ──▶ commit it here and now
                    │ no
                    └──▶ waiting ──▶ [one batch, one commit] by the one thread ──▶ all wake up

A commit waits for the disk, and positions are given out one commit at a time; so at 32 callers the
log is that much faster if they share. Those who were answered a moment ago mostly come back at
once: the thread waits for them, at most half as long as a commit takes, lest the first of them goes
alone while all others wait. A lone caller commits on its own thread, which saves it two changes of
threads. Processes alternate on the lock of the head. At most one commit is under way here, whoever
makes it: `_is_busy` says so, and changes hands under `_mutex` only.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Iterable

import structlog

from penstock.base.errors import PenstockError, StoreUnavailable
from penstock.store.append.batch import take
from penstock.store.append.request import Appended, Log, Outcome, Request

_COMPANY = 4  # fewer callers are not waited for
_GATHER_S_MAX = 0.005
_log = structlog.get_logger("append")


class _Ticket:
    """One caller that waits, on its own thread."""

    __slots__ = ("_done", "_outcome", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self._outcome: Outcome | PenstockError | None = None
        self._done = threading.Lock()  # the cheapest thing to wait on
        self._done.acquire()

    def wait(self) -> Outcome | PenstockError | None:
        self._done.acquire()
        return self._outcome

    def resolve(self, outcome: Outcome | PenstockError) -> None:
        self._outcome = outcome
        self._done.release()


class _AsyncTicket:
    """One caller that waits in an event loop."""

    __slots__ = ("_future", "_loop", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[Outcome | PenstockError] = self._loop.create_future()

    async def wait(self) -> Outcome | PenstockError:
        return await self._future

    def resolve(self, outcome: Outcome | PenstockError) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle, outcome)
        except RuntimeError:  # the loop is closed, and nobody waits any more
            _log.info("append_unheard", outcome=type(outcome).__name__)

    def _settle(self, outcome: Outcome | PenstockError) -> None:
        if not self._future.done():  # else the caller gave up meanwhile
            self._future.set_result(outcome)


class Coordinator:
    """Hands requests to a log, many at a time. Threads and tasks share it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._mutex = threading.Lock()
        self._idle = threading.Condition(self._mutex)
        self._waiting: deque[_Ticket | _AsyncTicket] = deque()
        self._is_busy = False
        self._is_closed = False
        self._called = threading.Semaphore(0)
        self._expected = 0  # how many must wait before the thread goes on; 0: it is at work
        self._gathered = threading.Semaphore(0)
        self._thread: threading.Thread | None = None

    def append(self, request: Request) -> Appended:
        """Append and return once it is durable; raises what the log refuses."""
        ticket = None
        with self._mutex:
            self._check_open()
            if self._is_busy:
                ticket = _Ticket(request)
                self._join(ticket)
            self._is_busy = True
        if ticket is not None:
            return _appended(ticket.wait())
        try:
            (outcome,) = self._commit([request])
        finally:
            self._hand_on()
        return _appended(outcome)

    async def append_async(self, request: Request) -> Appended:
        """As `append`, awaited."""
        ticket = _AsyncTicket(request)
        with self._mutex:
            self._check_open()
            self._join(ticket)
            is_idle, self._is_busy = not self._is_busy, True
        if is_idle:
            self._call_thread()
        return _appended(await ticket.wait())

    def close(self) -> None:
        """Commit what waits, then let go of the log."""
        with self._mutex:
            self._is_closed = True
            self._idle.wait_for(lambda: not self._is_busy)
            thread, self._thread = self._thread, None
        if thread is not None:
            self._called.release()
            thread.join()
        self._log.close()

    def _join(self, ticket: _Ticket | _AsyncTicket) -> None:
        self._waiting.append(ticket)
        if 0 < self._expected <= len(self._waiting):
            self._expected = 0
            self._gathered.release()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreUnavailable("expected an open log, found one that was closed")

    def _hand_on(self) -> None:
        """Leave the work to the thread if somebody waits, else to whoever comes next."""
        with self._mutex:
            is_needed = bool(self._waiting)
            if not is_needed:
                self._rest()
        if is_needed:
            self._call_thread()

    def _rest(self) -> None:
        self._is_busy = False
        if self._is_closed:
            self._idle.notify_all()

    def _call_thread(self) -> None:
        """Have the thread go on; only whoever is at work may, so there is never a second one."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="append", daemon=True)
            self._thread.start()
        self._called.release()

    def _run(self) -> None:
        while True:
            self._called.acquire()
            if not self._is_busy:  # then it was close() who called
                return
            while batch := self._next():
                began = time.perf_counter()
                results = self._commit([ticket.request for ticket in batch])
                took_s = time.perf_counter() - began
                for ticket, outcome in zip(batch, results, strict=True):
                    ticket.resolve(outcome)
                self._gather(len(batch), min(_GATHER_S_MAX, took_s / 2))

    def _gather(self, answered: int, within_s: float) -> None:
        """Let those who were just answered come back, if they are more than a few."""
        with self._mutex:
            self._expected = len(self._waiting) + answered
            if self._expected < _COMPANY or self._is_closed:
                self._expected = 0
                return
        self._gathered.acquire(timeout=within_s)
        with self._mutex:
            if not self._expected:  # somebody called just as the time was up
                self._gathered.acquire(blocking=False)
            self._expected = 0

    def _next(self) -> list[_Ticket | _AsyncTicket]:
        with self._mutex:
            if self._waiting:
                return take(self._waiting)
            self._rest()
            return []

    def _commit(self, requests: list[Request]) -> Iterable[Outcome | PenstockError]:
        try:
            return self._log.commit(requests)
        except PenstockError as error:
            _log.warning("append_failed", code=error.code, detail=error.detail)
            return [error] * len(requests)
        except Exception as error:  # noqa: BLE001  nobody may be left waiting
            _log.error("append_failed", exc_info=error)
            return [StoreUnavailable(f"the append failed: {error}")] * len(requests)


def _appended(outcome: Outcome | PenstockError | None) -> Appended:
    if isinstance(outcome, Appended):
        return outcome
    raise outcome or StoreUnavailable("the append has no outcome")
