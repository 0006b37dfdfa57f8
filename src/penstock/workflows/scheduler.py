"""Fire schedules for as long as the process lives; as many schedulers as there are may run.

It sleeps until the next slot by the database's own clock, and at most five seconds, because
somebody may add a schedule meanwhile.
"""

from __future__ import annotations

import random
import threading
from typing import Protocol

import structlog

from penstock.base.backoff import Backoff
from penstock.base.errors import PenstockError

log = structlog.get_logger(__name__)

_SLEEP_S_MAX = 5.0
_SLEEP_S_MIN = 0.1


class Fired(Protocol):
    """What one pass did."""

    @property
    def schedules(self) -> int: ...

    @property
    def runs(self) -> int: ...

    @property
    def refused(self) -> int: ...

    @property
    def next_s(self) -> float | None: ...


class Schedules(Protocol):
    """Whatever fires what is due."""

    def fire(self) -> Fired: ...


class Scheduler:
    """Fires until told to stop."""

    def __init__(self, schedules: Schedules, *, sleep_s_max: float = _SLEEP_S_MAX) -> None:
        self._schedules = schedules
        self._sleep_s_max = sleep_s_max
        self._backoff = Backoff(base_s=0.2, max_s=10.0)
        self.runs = 0
        self.refused = 0

    def run(self, stop: threading.Event) -> None:
        """Fire what is due, sleep, and look again."""
        rng, failures = random.SystemRandom(), 0
        while not stop.is_set():
            try:
                fired = self._schedules.fire()
                failures = 0
            except PenstockError as error:
                failures += 1
                log.warning("schedules wait", code=error.code, detail=error.detail)
                stop.wait(self._backoff.delay_s(failures, rng))
                continue
            except Exception:
                failures += 1
                log.exception("the scheduler stumbled; schedules wait")
                stop.wait(self._backoff.delay_s(failures, rng))
                continue
            self.runs += fired.runs
            self.refused += fired.refused
            stop.wait(self._pause_s(fired))

    def _pause_s(self, fired: Fired) -> float:
        if fired.next_s is None:
            return self._sleep_s_max
        # What is due but was not fired here is in another scheduler's hands.
        least = 0.0 if fired.schedules else _SLEEP_S_MIN
        return min(self._sleep_s_max, max(least, fired.next_s))
