"""Sleep until something is committed that triggers should look at: LISTEN on its own connection.

    penstock_events       an event was stored
    penstock_triggers     a definition changed, or an operator acted
    penstock_run_ends     a run that a trigger launched ended

A notification is a hint: whoever wakes reads by position, and looks by itself every second. So a
broken connection makes a worker slower for a moment, never wrong; it is opened again at a later
sleep, and nobody waits for that.
"""

from __future__ import annotations

import contextlib
import os
import select
import time

import psycopg
import structlog
from psycopg.rows import TupleRow

from penstock.sql import query

log = structlog.get_logger(__name__)

_RETRY_S = 0.5
_CONNECT_S = 2


class Wake:
    """The alarm clock of one loop. `nudge` may be called by any thread; the rest by its owner."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: psycopg.Connection[TupleRow] | None = None
        self._retry_at = 0.0
        self._ear, self._mouth = os.pipe()
        os.set_blocking(self._ear, False)
        os.set_blocking(self._mouth, False)

    def wait(self, timeout_s: float) -> None:
        """Return when something was committed, after a nudge, or when the time is up."""
        fresh = self._connection is None or self._connection.closed
        if fresh and self._connect():
            return  # whatever was committed while nobody listened
        listening = self._connection
        ears = select.poll()
        ears.register(self._ear, select.POLLIN)
        if listening is not None:
            ears.register(listening.fileno(), select.POLLIN)
        heard = {ear for ear, _ in ears.poll(max(0.0, timeout_s) * 1_000)}
        if self._ear in heard:
            with contextlib.suppress(BlockingIOError):
                os.read(self._ear, 4096)
        if listening is not None and heard - {self._ear}:
            self._drain(listening)

    def nudge(self) -> None:
        """Wake whoever sleeps, now or at the next sleep."""
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._mouth, b".")

    def close(self) -> None:
        self._hang_up()
        os.close(self._ear)
        os.close(self._mouth)

    def _connect(self) -> bool:
        """Whether it listens now; tried at most twice a second."""
        if time.monotonic() < self._retry_at:
            return False
        try:
            connection = psycopg.connect(
                self._dsn, autocommit=True, connect_timeout=_CONNECT_S,
                keepalives_idle=10, keepalives_interval=5, keepalives_count=3,
            )  # fmt: skip
            for name in ("listen_events", "listen_triggers", "listen_run_ends"):
                connection.execute(query("trigger_passes", name))
        except psycopg.Error as error:
            log.warning("triggers lost their wake-up; polling", error=str(error))
            self._retry_at = time.monotonic() + _RETRY_S
            return False
        self._connection = connection
        return True

    def _drain(self, connection: psycopg.Connection[TupleRow]) -> None:
        """Take every notification that is there, however many: one look serves them all."""
        try:
            for _ in connection.notifies(timeout=0):
                pass
        except psycopg.Error as error:
            log.warning("triggers lost their wake-up; polling", error=str(error))
            self._hang_up()

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
