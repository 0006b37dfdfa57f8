"""Run steps: claim what is due, hand it to an executor, say what came of it.

    ear ──▶ wake ───────┐
    hands ──▶ ended ────┴──▶ turn: complete · queue what follows · claim ──▶ hands

One thread speaks with the database; executors run in threads, trivial ones in the loop itself.
While steps are inline, each turn carries more of them. A worker that lost its connection keeps what
nobody took from it and stops the rest; one taken for dead by mistake is refused by its fences.
tests/workflows/on_postgres/test_chaos.py kills, stops and cuts off workers while runs go on.
"""

from __future__ import annotations

import os
import queue
import random
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from penstock.base.backoff import Backoff
from penstock.base.errors import StoreUnavailable
from penstock.workflows.hands import Hands, Inbox, never
from penstock.workflows.plan import WorkPlan
from penstock.workflows.port import Executor, Failed, Failure, StepCall, Waiting
from penstock.workflows.queue.job import BatchRefused, Claimed, Ended

log = structlog.get_logger(__name__)

CANCEL = "cancel"  # what a notification says when something that runs is to be stopped
_BATCH_MAX = 500


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a worker looks around."""

    slots: int = 8  # threads, and what is claimed at least
    poll_s: float = 0.5
    reap_s: float = 0.5
    heartbeat_s: float = 5.0
    cancel_s: float = 1.0
    cut_off_s: float = 5.0  # without a connection for so long: what runs is stopped
    leave_s: float = 10.0  # how long running steps may still take when told to stop


class Turn(Protocol):
    """What one transaction did."""

    @property
    def claimed(self) -> Sequence[tuple[Claimed, WorkPlan]]: ...

    @property
    def dropped(self) -> Sequence[tuple[str, str]]: ...

    @property
    def fenced(self) -> int: ...

    @property
    def delay_ms(self) -> int | None: ...


class Queue(Protocol):
    """The queue as a worker uses it; every call raises StoreUnavailable when it cannot be done."""

    @property
    def is_open(self) -> bool: ...

    def open(self, held: Sequence[Claimed] = ()) -> set[int]: ...

    def turn(self, ended: Sequence[Ended], limit: int) -> Turn: ...

    def heartbeat(self) -> bool: ...

    def reap(self) -> int: ...

    def called_off(self) -> set[int]: ...

    def leave(self) -> None: ...

    def close(self) -> None: ...


class Listening(Protocol):
    """Whatever calls back when there may be work."""

    def listen(self, heard: Callable[[str], None], stop: threading.Event) -> None: ...


@dataclass(slots=True)
class _Timers:
    """When, by this process's own clock, the worker looks at each thing again."""

    poll: float = 0.0
    reap: float = 0.0
    beat: float = 0.0
    cancel: float = 0.0

    def next(self) -> float:
        return min(self.poll, self.reap, self.beat, self.cancel)


def worker_name() -> str:
    """A name that tells people where a worker runs."""
    return f"{socket.gethostname()}:{os.getpid()}"


class WorkflowWorker:
    """One worker; `run` is its life."""

    def __init__(
        self,
        jobs: Queue,
        executor: Executor,
        ear: Listening | None = None,
        *,
        pace: Pace | None = None,
        name: str | None = None,
        is_inline: Callable[[StepCall], bool] = never,
    ) -> None:
        self._queue = jobs
        self._ear = ear
        self._pace = pace or Pace()
        self._inbox: Inbox = queue.SimpleQueue()
        self._hands = Hands(
            executor, self._inbox, name=name or worker_name(), slots=self._pace.slots,
            is_inline=is_inline,
        )  # fmt: skip
        self._ended: list[Ended] = []  # said by executors, not yet by us
        self._timers = _Timers()
        self._inline = 0  # how many of the last claim ended at once
        self._failures = 0
        self._alone_since: float | None = None
        self._rng = random.SystemRandom()
        self._backoff = Backoff(base_s=0.05, max_s=2.0)
        self.completed = 0
        self.fenced = 0

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop; then end what runs, within reason, and give back the rest."""
        if self._ear is not None:
            threading.Thread(
                target=self._ear.listen, args=(self._inbox.put, stop), name="ear", daemon=True
            ).start()
        while not stop.is_set():
            self._round(stop)
        self._leave()

    def wake(self) -> None:
        """Look for work now; any thread may ask."""
        self._inbox.put("")

    def _round(self, stop: threading.Event) -> None:
        try:
            if not self._queue.is_open:
                self._connect()
            self._gather(self._timers.next() - time.monotonic())
            if not stop.is_set():
                self._look_around()
            self._failures = 0
        except StoreUnavailable as error:
            self._failures += 1
            log.warning("a worker cannot reach the queue", detail=error.detail)
            self._stop_what_runs_alone()
            stop.wait(self._backoff.delay_s(self._failures, self._rng))
        except Exception:
            self._failures += 1
            log.exception("a worker stumbled; what it runs goes on", tries=self._failures)
            stop.wait(self._backoff.delay_s(self._failures, self._rng))

    def _connect(self) -> None:
        held = [*self._hands.held.values(), *(each.claimed for each in self._ended)]
        kept = self._queue.open(held)
        self._hands.cancel({each.id for each in held} - kept)
        self._alone_since = None
        self._timers = _Timers(beat=time.monotonic() + self._pace.heartbeat_s)

    def _stop_what_runs_alone(self) -> None:
        """Peers may run what this worker holds: after a while without them, it lets go."""
        if self._queue.is_open:
            return
        now = time.monotonic()
        self._alone_since = self._alone_since or now
        if now - self._alone_since > self._pace.cut_off_s:
            self._hands.cancel(list(self._hands.held))

    def _gather(self, timeout_s: float) -> None:
        """Wait for something to do, at most so long; then take everything that is there."""
        try:
            item = self._inbox.get(timeout=max(0.0, 0.0 if self._ended else timeout_s))
            while True:
                if isinstance(item, Ended):
                    self._hands.held.pop(item.claimed.id, None)
                    self._ended.append(item)
                else:
                    self._timers.poll = 0.0
                    if item == CANCEL:
                        self._timers.cancel = 0.0
                item = self._inbox.get_nowait()
        except queue.Empty:
            return

    def _look_around(self) -> None:
        now, pace, timers = time.monotonic(), self._pace, self._timers
        if self._ended or now >= timers.poll:
            self._turn(now)
        if now >= timers.cancel:
            timers.cancel = now + pace.cancel_s
            if self._hands.held:
                self._hands.cancel(self._queue.called_off())
        if now >= timers.reap:
            timers.reap = now + pace.reap_s
            if self._queue.reap():
                timers.poll = 0.0
        if now >= timers.beat:
            timers.beat = now + pace.heartbeat_s
            if not self._queue.heartbeat():
                log.warning("peers took this worker for dead; it begins anew")
                self._queue.close()

    def _turn(self, now: float) -> None:
        # What is claimed begins at once: a job that only waits in a worker's hands is kept from
        # its peers, and would be blamed if the worker died. Only inline ones come in batches.
        most = max(self._pace.slots, min(_BATCH_MAX, 2 * self._inline))
        limit = max(0, most - len(self._hands.held))
        if self._hands.held:
            limit = max(0, self._pace.slots - len(self._hands.held))
        try:
            turn = self._queue.turn(self._ended, limit)
        except BatchRefused as error:
            log.warning("a batch was refused; each is said on its own", detail=error.detail)
            self._say_each()
            return
        polls = [e.result.poll_after_s for e in self._ended if isinstance(e.result, Waiting)]
        said, self._ended = len(self._ended), []
        self._note(turn, said)
        for claimed, work in turn.claimed:
            ended = self._hands.take(claimed, work)
            if ended is not None:
                self._ended.append(ended)
        self._inline = len(self._ended)
        delays = [*polls, *([turn.delay_ms / 1000] if turn.delay_ms is not None else [])]
        full = 0 < limit == len(turn.claimed)
        self._timers.poll = now if full else now + min([self._pace.poll_s, *delays])

    def _note(self, turn: Turn, said: int) -> None:
        self.completed += said - turn.fenced
        self.fenced += turn.fenced
        if turn.dropped:
            stopped = set(turn.dropped)
            self._hands.cancel(
                [job for job, c in self._hands.held.items() if (c.run_id, c.address) in stopped]
            )

    def _say_each(self) -> None:
        """Say every end on its own; what still cannot be stored fails its step."""
        waiting, self._ended = self._ended, []
        for each in waiting:
            try:
                self._queue.turn([each], 0)
            except BatchRefused as error:
                failed = Failed(Failure.OUTPUT_INVALID, error.detail, retryable=False)
                self._queue.turn([each._replace(result=failed)], 0)

    def _leave(self) -> None:
        until = time.monotonic() + self._pace.leave_s
        try:
            while (self._hands.held or self._ended) and self._queue.is_open:
                self._gather(min(0.2, until - time.monotonic()))
                if self._ended:
                    self._queue.turn(self._ended, 0)
                    self._ended = []
                if time.monotonic() > until:
                    self._hands.cancel(list(self._hands.held))
                    break
            self._queue.leave()
        except (StoreUnavailable, BatchRefused) as error:
            log.warning("a worker left without a word; its peers will see", detail=error.detail)
        finally:
            self._hands.close()
            self._queue.close()
