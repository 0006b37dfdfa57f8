"""Hold the right to settle segments: one ingress at a time, fenced by an epoch.

    hold ── have the lock ──▶ epoch
         ── else wait for it ──▶ raise the epoch, so that whoever had it before is refused

The lock is a session lock: it goes when its process or the server does. A holder that slept through
losing it still carries the old epoch, and the intake refuses that inside the transaction.
"""

from __future__ import annotations

import threading

import psycopg
import structlog
from psycopg.rows import TupleRow

from penstock.base.errors import StoreUnavailable
from penstock.sql import query

_LOCK = 0x696E6772  # "ingr"
_log = structlog.get_logger("ingress")


class IngressLease:
    """The right to settle segments of one store."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: psycopg.Connection[TupleRow] | None = None
        self._epoch = 0

    def hold(self, stop: threading.Event) -> int:
        """The epoch under which this process may settle; waits while another one holds it."""
        if not self._held():
            self.close()
            self._take(stop)
        return self._epoch

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _held(self) -> bool:
        if self._connection is None:
            return False
        try:
            self._connection.execute(query("lease", "alive"))
        except psycopg.Error:
            return False
        return True

    def _take(self, stop: threading.Event) -> None:
        try:
            connection = psycopg.connect(self._dsn, autocommit=True, connect_timeout=5)
            waited = False
            while True:
                row = connection.execute(query("lease", "try_lock"), {"key": _LOCK}).fetchone()
                if row is not None and row[0]:
                    break
                if stop.wait(0.5):
                    connection.close()
                    raise StoreUnavailable("stopped while another ingress holds the lease")
                if not waited:
                    _log.info("lease_waits", detail="another ingress settles this store")
                    waited = True
            raised = connection.execute(query("lease", "raise_epoch")).fetchone()
        except psycopg.Error as error:
            raise StoreUnavailable("PostgreSQL does not answer") from error
        self._connection = connection
        self._epoch = raised[0] if raised is not None else 0
