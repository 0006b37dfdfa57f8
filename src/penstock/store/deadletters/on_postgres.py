"""Keep and find dead letters in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

import psycopg
from psycopg.rows import TupleRow, class_row

from penstock.base.on_postgres import Pool, answering
from penstock.ingress.verdict import Rejected
from penstock.sql import query
from penstock.store.cursor import read_cursor, write_cursor
from penstock.store.deadletters.letter import DeadLetter, LetterFilter, LetterGroup, LetterPage
from penstock.store.intake.on_postgres import keep_letter
from penstock.store.intake.settle import LetterTally

_DIGEST = "dead-letters"


class DeadLetters:
    """The dead letters of every tenant, read one tenant at a time."""

    def __init__(self, reader_pool: Pool, ingest_pool: Pool, *, cursor_key: bytes) -> None:
        self._reader_pool = reader_pool
        self._ingest_pool = ingest_pool
        self._cursor_key = cursor_key

    def page(
        self, tenant_id: str, which: LetterFilter, *, limit: int, cursor: str | None
    ) -> LetterPage:
        """Dead letters, newest first."""
        before = None
        if cursor is not None:
            before = read_cursor(cursor, tenant_id, _DIGEST, key=self._cursor_key)
        with self._reading(tenant_id) as connection:
            rows = connection.cursor(row_factory=class_row(DeadLetter)).execute(
                query("deadletters", "page"),
                {**_bound(tenant_id, which), "before": before, "limit": limit + 1},
            )
            letters = rows.fetchall()
        has_more = len(letters) > limit
        letters = letters[:limit]
        next_cursor = None
        if has_more:
            micros = int(letters[-1].last_seen_at.timestamp() * 1_000_000)
            next_cursor = write_cursor(tenant_id, micros, _DIGEST, key=self._cursor_key)
        return LetterPage(letters, next_cursor, has_more, limit)

    def groups(self, tenant_id: str, which: LetterFilter) -> list[LetterGroup]:
        """Dead letters by cause, most messages first."""
        with self._reading(tenant_id) as connection:
            cursor = connection.cursor(row_factory=class_row(LetterGroup))
            return cursor.execute(
                query("deadletters", "groups"), _bound(tenant_id, which)
            ).fetchall()

    def by_id(self, tenant_id: str, letter_id: str) -> DeadLetter | None:
        with self._reading(tenant_id) as connection:
            cursor = connection.cursor(row_factory=class_row(DeadLetter))
            cursor.execute(query("deadletters", "by_id"), {"tenant": tenant_id, "id": letter_id})
            return cursor.fetchone()

    def walk(self, tenant_id: str, which: LetterFilter) -> Iterator[list[DeadLetter]]:
        """Every matching letter in chunks, in a stable order."""
        after = ""
        while True:
            with self._reading(tenant_id) as connection:
                cursor = connection.cursor(row_factory=class_row(DeadLetter))
                bound = {**_bound(tenant_id, which), "after": after}
                chunk = cursor.execute(query("deadletters", "walk"), bound).fetchall()
            if not chunk:
                return
            yield chunk
            after = chunk[-1].id

    def keep(self, rejected: Sequence[Rejected], at: datetime) -> None:
        """Keep what the door refused."""
        with answering(), self._ingest_pool.connection() as connection, connection.transaction():
            for item in rejected:
                keep_letter(connection, LetterTally(item), at)
                connection.execute(
                    query("deadletters", "count_refused"),
                    {"tenant": item.tenant_id, "via": item.via, "reason": item.reason},
                )

    def mark_redriven(self, pairs: Sequence[tuple[str, str]], at: datetime) -> None:
        """Note which letters went in again, and as which event."""
        with answering(), self._ingest_pool.connection() as connection, connection.transaction():
            for letter_id, event_id in pairs:
                connection.execute(
                    query("deadletters", "mark_redriven"),
                    {"id": letter_id, "event_id": event_id, "at": at},
                )

    @contextmanager
    def _reading(self, tenant_id: str) -> Iterator[psycopg.Connection[TupleRow]]:
        with answering(), self._reader_pool.connection() as connection, connection.transaction():
            connection.execute(query("deadletters", "as_tenant"), {"tenant": tenant_id})
            yield connection


def _bound(tenant_id: str, which: LetterFilter) -> dict[str, object]:
    return {
        "tenant": tenant_id,
        "reason": which.reason,
        "source": which.source,
        "type": which.type,
        "via": which.via,
        "ids": None if which.ids is None else list(which.ids),
        "redriven": which.redriven,
    }
