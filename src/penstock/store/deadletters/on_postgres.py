"""Keep and find dead letters in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
from psycopg.rows import TupleRow, class_row

from penstock.base.on_postgres import Pool, answering
from penstock.ingress.verdict import Rejected
from penstock.sql import query
from penstock.store.cursor import read_cursor, write_cursor
from penstock.store.deadletters.letter import DeadLetter, LetterFilter, LetterGroup, LetterPage
from penstock.store.intake.on_postgres import keep_letter
from penstock.store.intake.settle import tally_letters

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
        before, before_id = self._read_cursor(tenant_id, cursor)
        with self._reading(tenant_id) as connection:
            rows = connection.cursor(row_factory=class_row(DeadLetter)).execute(
                query("deadletters", "page"),
                {
                    **_bound(tenant_id, which),
                    "before": before,
                    "before_id": before_id,
                    "limit": limit + 1,
                },
            )
            letters = rows.fetchall()
        has_more = len(letters) > limit
        letters = letters[:limit]
        next_cursor = self._write_cursor(letters[-1]) if has_more else None
        return LetterPage(letters, next_cursor, has_more, limit)

    def _write_cursor(self, last: DeadLetter) -> str:
        """Where the next page begins: a time, and the letter among those of that time."""
        micros = (last.last_seen_at - _EPOCH) // timedelta(microseconds=1)
        signed = write_cursor(
            last.tenant_id, micros, f"dead-letters {last.id}", key=self._cursor_key
        )
        return f"{signed}~{last.id}"

    def _read_cursor(
        self, tenant_id: str, cursor: str | None
    ) -> tuple[datetime | None, str | None]:
        if cursor is None:
            return None, None
        signed, _, letter_id = cursor.partition("~")
        micros = read_cursor(signed, tenant_id, f"dead-letters {letter_id}", key=self._cursor_key)
        return _EPOCH + timedelta(microseconds=micros), letter_id

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
        after, after_id = _EPOCH, ""
        while True:
            with self._reading(tenant_id) as connection:
                cursor = connection.cursor(row_factory=class_row(DeadLetter))
                bound = {**_bound(tenant_id, which), "after": after, "after_id": after_id}
                chunk = cursor.execute(query("deadletters", "walk"), bound).fetchall()
            if not chunk:
                return
            yield chunk
            after, after_id = chunk[-1].first_seen_at, chunk[-1].id

    def keep(self, rejected: Sequence[Rejected], at: datetime) -> None:
        """Keep what the door refused."""
        with self._writing() as connection:
            for letter in tally_letters(rejected).values():
                keep_letter(connection, letter, at)
                bound = {
                    "tenant": letter.rejected.tenant_id,
                    "via": letter.rejected.via,
                    "reason": letter.rejected.reason,
                    "count": letter.count,
                }
                connection.execute(query("deadletters", "count_refused"), bound)

    def mark_redriven(self, pairs: Sequence[tuple[str, str]], at: datetime) -> None:
        """Note which letters went in again, and as which event."""
        with self._writing() as connection:
            for letter_id, event_id in pairs:
                connection.execute(
                    query("deadletters", "mark_redriven"),
                    {"id": letter_id, "event_id": event_id, "at": at},
                )

    @contextmanager
    def _writing(self) -> Iterator[psycopg.Connection[TupleRow]]:
        """One transaction, its statements sent without waiting for each answer."""
        with (
            answering(),
            self._ingest_pool.connection() as connection,
            connection.transaction(),
            connection.pipeline(),
        ):
            yield connection

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
