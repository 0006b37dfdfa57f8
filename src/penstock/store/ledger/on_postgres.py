"""Read the books from PostgreSQL, and balance them with the disk."""

from __future__ import annotations

import time
from collections.abc import Callable

from psycopg.rows import class_row

from penstock.base.on_postgres import Pool, answering
from penstock.sql import query
from penstock.store.ledger.account import Books, LedgerReport, SourceLine, account
from penstock.transport.on_disk import Pending

_TRIES = 4


class LedgerReader:
    """The account of one store and one spool."""

    def __init__(self, pool: Pool, pending: Callable[[], Pending]) -> None:
        self._pool = pool
        self._pending = pending

    def read(self) -> LedgerReport:
        """The account; read again a few times while a segment is seen in the middle of its move."""
        report = self._once()
        for _ in range(_TRIES):
            if report.unexplained == 0:
                break
            time.sleep(0.05)
            report = self._once()
        return report

    def _once(self) -> LedgerReport:
        pending = self._pending()
        return account(pending, self.books([name.text for name in pending.segments]))

    def books(self, segments: list[str]) -> Books:
        """What the database says, in one snapshot."""
        with answering(), self._pool.connection() as connection, connection.transaction():
            connection.execute(query("ledger", "one_snapshot"))
            totals = connection.execute(query("ledger", "totals")).fetchone()
            writers = connection.execute(query("ledger", "writers")).fetchall()
            settled = connection.execute(query("ledger", "settled"), {"segments": segments})
            done = frozenset(row[0] for row in settled.fetchall())
            head, appended, duplicates, dead, refused, counted = totals or (0,) * 6
            with connection.cursor(row_factory=class_row(SourceLine)) as cursor:
                ends = {"counted": counted, "head": head}
                sources = cursor.execute(query("ledger", "sources"), ends).fetchall()
        return Books(head, appended, duplicates, dead, refused, dict(writers), done, sources)

    def settled(self, segments: list[str]) -> set[str]:
        """Which of these segments are settled."""
        with answering(), self._pool.connection() as connection:
            found = connection.execute(query("ledger", "settled"), {"segments": segments})
            return {row[0] for row in found.fetchall()}

    def forget_segments(self, *, older_than_hours: int) -> int:
        """Drop the rows of segments that were settled, and deleted, long ago."""
        with answering(), self._pool.connection() as connection:
            found = connection.execute(
                query("ledger", "forget_segments"), {"hours": older_than_hours}
            )
            return found.rowcount
