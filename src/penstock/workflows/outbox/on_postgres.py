"""Keep events in the transaction of the change they tell of, and take them to the log after it.

    change + put ── commit ──▶ event_outbox ── relay ──▶ the log ── delete

The log knows an event by its id, so a relay that dies between the append and the delete sends the
same events again and they are one. One relay works at a time; events of a tenant keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import psycopg
from psycopg.rows import TupleRow

from penstock.base.errors import EventRefused
from penstock.base.on_postgres import Pool, answering
from penstock.envelope.codec import encode, load_stored
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.sql import query
from penstock.store.append.appends import Appends, EventStore

Connection = psycopg.Connection[TupleRow]
_ROOM = "workflows_outbox"
_LOCK = 0x6F757462  # "outb"
BATCH = 500


def put(connection: Connection, events: Sequence[JsonObject]) -> None:
    """Keep events in wire form, ids filled in, to be published once this transaction commits."""
    if events:
        values = {"events": encode(list(events)).decode()}
        connection.execute(query(_ROOM, "put"), values, prepare=True)


class Backlog(NamedTuple):
    """How the outbox is."""

    waiting: int
    oldest_ms: float
    refused: int


class PostgresOutbox:
    """The outbox, moved into the log batch by batch."""

    def __init__(self, pool: Pool, appends: Appends) -> None:
        self._pool = pool
        self._appends = appends

    def move(self, limit: int = BATCH) -> int:
        """Take the oldest events to the log; how many are no longer waiting."""
        with answering(), self._pool.connection() as connection, connection.transaction():
            row = connection.execute(query(_ROOM, "try_lock"), {"key": _LOCK}).fetchone()
            if row is None or not row[0]:
                return 0
            taken = connection.execute(query(_ROOM, "take"), {"limit": limit}).fetchall()
            for tenant_id, rows in groupby(taken, key=lambda each: str(each[1])):
                self._append(connection, self._appends.of(tenant_id), list(rows))
        return len(taken)

    def backlog(self) -> Backlog:
        """How many wait, for how long, and how many the log refused."""
        with answering(), self._pool.connection() as connection:
            row = connection.execute(query(_ROOM, "backlog")).fetchone()
        return Backlog(0, 0.0, 0) if row is None else Backlog(row[0], float(row[1] or 0), row[2])

    def _append(self, connection: Connection, store: EventStore, rows: Sequence[TupleRow]) -> None:
        # An event whose run is no longer there says nothing, and is refused as that.
        events: list[JsonValue] = [None if row[2] is None else load_stored(row[2]) for row in rows]
        try:
            store.append(events)
        except EventRefused as error:
            if len(rows) > 1:
                for row in rows:
                    self._append(connection, store, [row])
            else:
                detail = f"{error.reason}: {error.detail}"[:2_000]
                connection.execute(query(_ROOM, "refuse"), {"id": rows[0][0], "detail": detail})
            return
        connection.execute(query(_ROOM, "done"), {"ids": [row[0] for row in rows]})
