"""Run passes for as long as the process lives: at once when something happens, never busily.

    run_pass ── more to do ──▶ run_pass
             ── nothing ─────▶ sleep: a notification · the next due instant · at most a second

PostgreSQL may go away and come back: the loop tries again with a growing pause and loses nothing,
because a pass that was not committed did not happen. tests/triggers/on_postgres/test_chaos.py
restarts and kills everything while events flow.
"""

from __future__ import annotations

import random
import threading
from typing import Protocol

import structlog

from penstock.base.backoff import Backoff
from penstock.base.errors import StoreUnavailable
from penstock.triggers.host.summary import PassSummary

log = structlog.get_logger(__name__)

_SLEEP_S_MAX = 1.0
_SLEEP_S_MIN = 0.001


class Host(Protocol):
    """Whatever runs passes."""

    def run_pass(self) -> PassSummary: ...

    def close(self) -> None: ...


class Alarm(Protocol):
    """Whatever sleeps until there may be work, or a time is up."""

    def wait(self, timeout_s: float) -> None: ...

    def nudge(self) -> None: ...

    def close(self) -> None: ...


class TriggerLoop:
    """The evaluation loop of one worker."""

    def __init__(self, host: Host, wake: Alarm, *, backoff: Backoff | None = None) -> None:
        self._host = host
        self._wake = wake
        self._backoff = backoff or Backoff(base_s=0.1, max_s=5.0)
        self._stopping = threading.Event()
        self._failures = 0
        self.passes = 0  # that did something

    def run(self) -> None:
        """Judge until told to stop; then let go of the connections."""
        rng = random.SystemRandom()
        try:
            while not self._stopping.is_set():
                pause_s = self._turn(rng)
                if pause_s > 0:
                    self._wake.wait(pause_s)
        finally:
            self._host.close()
            self._wake.close()

    def stop(self) -> None:
        """Ask the loop to end after the pass it is in; any thread may."""
        self._stopping.set()
        self._wake.nudge()

    def _turn(self, rng: random.Random) -> float:
        """One pass, and how long to sleep after it."""
        try:
            summary = self._host.run_pass()
        except StoreUnavailable as error:
            log.warning("triggers wait for PostgreSQL", error=str(error.__cause__ or error))
            return self._pause(rng)
        except Exception:
            log.exception("a pass over events failed, and nothing of it was kept")
            return self._pause(rng)
        self._failures = 0
        self.passes += summary.number is not None
        return 0.0 if summary.has_more else sleep_s(summary)

    def _pause(self, rng: random.Random) -> float:
        """Wait longer after every failure; news do not cut it short, or it would be no pause."""
        self._failures += 1
        self._stopping.wait(self._backoff.delay_s(self._failures, rng))
        return 0.0


def sleep_s(summary: PassSummary) -> float:
    """Until the next due instant, by the database's own clock, and at most a second."""
    if summary.next_due_at is None:
        return _SLEEP_S_MAX
    left_s = (summary.next_due_at - summary.judged_at).total_seconds()
    return min(_SLEEP_S_MAX, max(_SLEEP_S_MIN, left_s))
