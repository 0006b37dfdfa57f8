"""Let appends share commits: whatever arrives while one runs goes into the next.

    append ──▶ nobody at work? ── yes ──▶ commit it here and now
                    │ no
                    └──▶ waiting ──▶ [one batch, one commit] by the one thread ──▶ all wake up

A commit waits for the disk, and positions are given out one commit at a time; so at 32 callers the
log is that much faster if they share. Those who were answered a moment ago mostly come back at
once. Where a commit takes long, the thread waits for them, so that all share the next one. Where it
is short they go by turns: some are told, and come back, while the log works for the others. A lone
caller commits on its own thread, which saves it two changes of threads. Processes alternate on the
lock of the head. At most one commit is under way here, whoever makes it: `_is_busy` says so, and
changes hands under `_mutex` only.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

import structlog

from penstock.base.errors import PenstockError, StoreUnavailable
from penstock.store.append.batch import take
from penstock.store.append.request import Appended, Log, Outcome, Request, nothing

_COMPANY = 4  # fewer callers are not waited for
_GATHER_S_MAX = 0.005
_RETURN_S = 25e-6  # what it takes to wake one caller and have it call again, about
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


class _Answered:
    """A batch and what became of it, until its callers are told."""

    __slots__ = ("_results", "batch", "took_s")

    def __init__(
        self,
        batch: Sequence[_Ticket | _AsyncTicket] = (),
        results: Sequence[Outcome | PenstockError] = (),
        took_s: float = 0.0,
    ) -> None:
        self.batch = batch
        self.took_s = took_s
        self._results = results

    def tell(self) -> None:
        """Wake everybody up, the first time."""
        results, self._results = self._results, ()
        for ticket, outcome in zip(self.batch, results, strict=False):
            ticket.resolve(outcome)


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
            answered = _Answered()
            while batch := self._next(answered):
                began = time.perf_counter()
                results = self._commit([t.request for t in batch], meanwhile=answered.tell)
                answered.tell()  # the log had no time to wait
                answered = _Answered(batch, results, time.perf_counter() - began)

    def _next(self, answered: _Answered) -> list[_Ticket | _AsyncTicket]:
        """What the next commit takes; nothing when nobody waits, and the work is then over."""
        if not self._waiting or len(answered.batch) * _RETURN_S < answered.took_s / 4:
            self._gather(answered)
        with self._mutex:
            if self._waiting:
                return take(self._waiting)
            self._rest()
            return []

    def _gather(self, answered: _Answered) -> None:
        """Tell those who were answered, and let them come back if they are more than a few."""
        with self._mutex:
            self._expected = len(self._waiting) + len(answered.batch)
            if self._expected < _COMPANY or self._is_closed:
                self._expected = 0
        answered.tell()
        if self._expected:
            self._gathered.acquire(timeout=min(_GATHER_S_MAX, answered.took_s / 2))
        with self._mutex:
            if not self._expected:  # somebody called just as the time was up
                self._gathered.acquire(blocking=False)
            self._expected = 0

    def _commit(
        self, requests: list[Request], meanwhile: Callable[[], None] = nothing
    ) -> Sequence[Outcome | PenstockError]:
        try:
            return self._log.commit(requests, meanwhile)
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
