"""Listen for new jobs on a connection of its own, for as long as it takes.

A notification is a hint: the worker also looks by itself. So a broken connection makes it slower
for a moment, never wrong.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import psycopg
import structlog

from penstock.base.backoff import Backoff
from penstock.sql import query

log = structlog.get_logger(__name__)

_LOOK_UP_S = 0.5  # how often the ear looks whether it should stop


class Ear:
    """Calls back whenever jobs were queued, and once after each connect."""

    def __init__(self, dsn: str, *, backoff: Backoff | None = None) -> None:
        self._dsn = dsn
        self._backoff = backoff or Backoff(base_s=0.2, max_s=5.0)

    def listen(self, heard: Callable[[str], None], stop: threading.Event) -> None:
        """Listen until told to stop."""
        rng, failures = random.SystemRandom(), 0
        while not stop.is_set():
            try:
                with psycopg.connect(self._dsn, autocommit=True, connect_timeout=5) as connection:
                    connection.execute(query("workflows_queue", "listen"))
                    failures = 0
                    heard("")  # whatever was queued while nobody listened
                    while not stop.is_set():
                        for note in connection.notifies(timeout=_LOOK_UP_S, stop_after=1):
                            heard(note.payload)
            except psycopg.Error as error:
                if stop.is_set():
                    return
                failures += 1
                log.warning("a worker lost its wake-up; polling", error=str(error))
                stop.wait(self._backoff.delay_s(failures, rng))
