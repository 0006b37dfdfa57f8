"""Let appends share commits: whatever arrives while one runs goes into the next.

    append ──▶ nobody at work? ── yes ──▶ commit it here and now
                    │ no
                    └──▶ waiting ──▶ [one batch, one commit] by the one thread ──▶ all wake up

A commit waits for the disk, and positions are given out one commit at a time; so at 32 callers the
log is that much faster if they share. Those who were answered a moment ago mostly come back at
once: the thread waits for them, at most half as long as a commit takes, lest the first of them goes
alone while all others wait. A crowd goes in two halves: one is told, comes back and is sent again
while the log works for the other. That costs one commit more, so a crowd is as many as take longer
to be told than a commit does; on a slow disk all go together.

An append may come as it was said, yet to be judged. A thread that finds nobody at work judges it
first; whoever has to wait leaves that to the one thread, who judges a batch in one go. To change
threads at the interpreter's lock takes longer than to judge.

A lone caller commits on its own thread, which saves it two changes of threads. Processes alternate
on the lock of the head. Only one thread is at work here, whoever it is: `_is_busy` says so, and
changes hands under `_mutex` only.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, NoReturn, TypeAlias

import structlog

from penstock.base.errors import PenstockError, StoreUnavailable
from penstock.store.append.batch import take
from penstock.store.append.judging import Said
from penstock.store.append.request import Appended, Log, Outcomes, Request
from penstock.store.append.tickets import TaskTicket, ThreadTicket, Ticket, Told, taken_lock, tell

Judge: TypeAlias = Callable[[Sequence[Said]], Sequence[Request | Exception]]
_COMPANY = 4  # fewer callers are not waited for
_FLYING = 2  # batches under way; a third would only make them smaller
_TELLING_S = 50e-6  # to wake one caller, and for it to come back
_FORGETTING = 1.02  # a commit may have become slower since the quickest one
_GATHER_S_MAX = 0.005
_log = structlog.get_logger("append")


class _Flight(NamedTuple):
    """A batch that was sent, and how to hear what became of it."""

    batch: list[Ticket]
    outcomes: Outcomes
    began: float
    is_alone: bool  # no other was before it


class Coordinator:
    """Hands requests to a log, many at a time. Threads and tasks share it."""

    def __init__(self, log: Log, judge: Judge) -> None:
        self._log = log
        self._judge = judge
        self._mutex = threading.Lock()
        self._idle = threading.Condition(self._mutex)
        self._waiting: deque[Ticket] = deque()
        self._is_busy = False
        self._is_closed = False
        self._called = taken_lock()
        self._expected = 0  # how many must wait before the thread goes on; 0: it is at work
        self._gathered = taken_lock()
        self._thread: threading.Thread | None = None
        self._quickest_s = math.inf  # of the commits that no other held up

    def append(self, asked: Request | Said) -> Appended:
        """Append and return once it is durable; raises what the log or its judge refuses."""
        outcome: Told
        if isinstance(asked, Said) and not self._is_busy:
            (judged,) = self._judge([asked])
            if isinstance(judged, Exception):
                raise judged
            asked = judged
        with self._mutex:
            if self._is_closed:
                raise _closed()
            is_idle, self._is_busy = not self._is_busy, True
            mine = asked if is_idle and isinstance(asked, Request) else None
            if mine is None:
                ticket = ThreadTicket(asked)
                self._join(ticket)
        if mine is None:
            if is_idle:  # whoever was at work has just ended
                self._call_thread()
            return _appended(ticket.wait())
        began = time.perf_counter()
        try:
            (outcome,) = self._log.commit([mine])
            self._learn(time.perf_counter() - began)
        except Exception as error:  # noqa: BLE001  as those are told who share a commit
            outcome = _failure(error)
        finally:
            self._hand_on()
        return _appended(outcome)

    async def append_async(self, asked: Request | Said) -> Appended:
        """As `append`, awaited."""
        ticket = TaskTicket(asked)
        with self._mutex:
            if self._is_closed:
                raise _closed()
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

    def _join(self, ticket: Ticket) -> None:
        self._waiting.append(ticket)
        if 0 < self._expected <= len(self._waiting):
            self._expected = 0
            self._gathered.release()

    def _hand_on(self) -> None:
        """Leave the work to the thread if somebody waits, else to whoever comes next."""
        with self._mutex:
            if not self._waiting:
                self._is_busy = False
                if self._is_closed:
                    self._idle.notify_all()
                return
        self._call_thread()

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
            flying: deque[_Flight] = deque()
            while True:
                while len(flying) < _FLYING and (batch := self._next(_callers(flying))):
                    began = time.perf_counter()
                    flying.append(_Flight(batch, self._send(batch), began, is_alone=not flying))
                if not flying:
                    break
                self._land(flying.popleft(), _callers(flying))

    def _next(self, under_way: int) -> list[Ticket]:
        """Those whose turn it is; none when they had better wait for those who are under way."""
        ready: deque[Ticket] = deque()
        while not ready:
            with self._mutex:
                if not self._waiting:
                    if not under_way:
                        self._is_busy = False
                        self._idle.notify_all()
                    return []
                present = len(self._waiting) + under_way
                share = self._share(present)
                if under_way and share == present:
                    return []
                called = [self._waiting.popleft() for _ in range(min(share, len(self._waiting)))]
            ready.extend(self._ready(called))
        batch = take(ready)
        with self._mutex:
            self._waiting.extendleft(reversed(ready))
        return batch

    def _ready(self, called: Sequence[Ticket]) -> Iterable[Ticket]:
        """Those who may go to the log, judged; the others are told at once why not."""
        said = [ticket.said for ticket in called if ticket.said is not None]
        judged = iter(self._judged(said) if said else ())
        for ticket in called:
            if ticket.said is not None:
                found, ticket.said = next(judged), None
                if isinstance(found, Exception):
                    tell([ticket], [found])
                    continue
                ticket.request = found
            yield ticket

    def _judged(self, said: Sequence[Said]) -> Sequence[Request | Exception]:
        """What the judge says of each; should it fail, only those that make it fail are told."""
        try:
            return self._judge(said)
        except Exception as error:  # noqa: BLE001  nobody may be left waiting
            if len(said) == 1:
                return [error]
            return [found for each in said for found in self._judged([each])]

    def _land(self, flight: _Flight, under_way: int) -> None:
        """Tell a batch what became of it, and let it come back."""
        results = _told(flight.outcomes, len(flight.batch))
        took_s = time.perf_counter() - flight.began
        if flight.is_alone:
            self._learn(took_s)
        tell(flight.batch, results)
        self._gather(len(flight.batch), under_way, min(_GATHER_S_MAX, took_s / 2))

    def _gather(self, answered: int, under_way: int, within_s: float) -> None:
        """Let those who were just answered come back, if they are more than a few."""
        with self._mutex:
            back = len(self._waiting) + answered
            expected = min(back, self._share(back + under_way))
            if expected < _COMPANY or expected <= len(self._waiting) or self._is_closed:
                return
            self._expected = expected
        self._gathered.acquire(timeout=within_s)
        with self._mutex:
            if not self._expected:  # somebody called just as the time was up
                self._gathered.acquire(blocking=False)
            self._expected = 0

    def _learn(self, took_s: float) -> None:
        self._quickest_s = min(took_s, self._quickest_s * _FORGETTING)

    def _share(self, present: int) -> int:
        """How many of so many callers go together: all of them, or half of a crowd."""
        is_crowd = present >= 2 * _COMPANY and present * _TELLING_S > self._quickest_s
        return -(-present // _FLYING) if is_crowd else present

    def _send(self, batch: list[Ticket]) -> Outcomes:
        try:
            return self._log.send([ticket.request for ticket in batch])
        except Exception as error:  # noqa: BLE001  they are told when it is their turn
            return partial(_raise, error)


def _callers(flying: Iterable[_Flight]) -> int:
    return sum(len(flight.batch) for flight in flying)


def _told(ask: Outcomes, callers: int) -> Sequence[Told]:
    """What the log says of each; when it fails, that, since nobody may be left waiting."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001
        return [_failure(error)] * callers


def _failure(error: Exception) -> PenstockError:
    """What a caller is told when the log fails."""
    if isinstance(error, PenstockError):
        _log.warning("append_failed", code=error.code, detail=error.detail)
        return error
    _log.error("append_failed", exc_info=error)
    return StoreUnavailable(f"the append failed: {error}")


def _closed() -> StoreUnavailable:
    return StoreUnavailable("expected an open log, found one that was closed")


def _raise(error: Exception) -> NoReturn:
    raise error


def _appended(outcome: Told | None) -> Appended:
    if isinstance(outcome, Appended):
        return outcome
    raise outcome or StoreUnavailable("the append has no outcome")
