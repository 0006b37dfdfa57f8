"""Move what is in the outbox into the log for as long as the process lives.

The relay looks often while there is something, and rarely while there is not; whoever knows that
something was put there may nudge it. A log that does not answer makes it wait, and loses nothing.
"""

from __future__ import annotations

import random
import threading
from typing import Protocol

import structlog

from penstock.base.backoff import Backoff
from penstock.base.errors import PenstockError

log = structlog.get_logger(__name__)

_IDLE_S = 0.1


class Outbox(Protocol):
    """Whatever has events to be moved."""

    def move(self) -> int: ...


class OutboxRelay:
    """Moves events until told to stop."""

    def __init__(self, outbox: Outbox, *, idle_s: float = _IDLE_S) -> None:
        self._outbox = outbox
        self._idle_s = idle_s
        self._backoff = Backoff(base_s=0.1, max_s=5.0)
        self._nudged = threading.Event()
        self.moved = 0

    def run(self, stop: threading.Event) -> None:
        """Move whatever there is, again and again."""
        rng, failures = random.SystemRandom(), 0
        while not stop.is_set():
            try:
                moved = self._outbox.move()
                failures = 0
            except PenstockError as error:
                failures += 1
                log.warning("events wait in the outbox", code=error.code, detail=error.detail)
                stop.wait(self._backoff.delay_s(failures, rng))
                continue
            except Exception:
                failures += 1
                log.exception("the outbox relay stumbled; events wait")
                stop.wait(self._backoff.delay_s(failures, rng))
                continue
            self.moved += moved
            if not moved:
                self._nudged.wait(self._idle_s)
                self._nudged.clear()

    def nudge(self) -> None:
        """Look now; any thread may ask."""
        self._nudged.set()
