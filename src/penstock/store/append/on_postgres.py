"""Append to the log in PostgreSQL: one statement and one commit for everything that waited.

    one request of one event ── append_one ──▶ its position, or NULL: something is in the way
    anything else            ── append_batch ─▶ what was stored, and why the rest was not

Both functions (migration 0005) check, store, count and move the head in one round trip. They are
called by the prepared name, with parameters in wire form: for a single append that halves what the
client spends, and for a batch it is a tenth. A connection that breaks is opened again and the batch
sent once more: what was committed is known by its ids, and is answered as it was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

import psycopg
from psycopg import pq, sql
from psycopg.errors import error_from_result
from psycopg.rows import TupleRow

from penstock.base.errors import QueryTooSlow, StoreUnavailable
from penstock.base.ids import uuid7
from penstock.base.on_postgres import Pool, become
from penstock.sql import query
from penstock.store.append.arrays import literal
from penstock.store.append.call import (
    BATCH_FORMS,
    ONE_FORMS,
    Answer,
    batch_parameters,
    is_simple,
    one_parameters,
    outcomes,
)
from penstock.store.append.condition import Criteria
from penstock.store.append.request import Appended, Found, Outcome, Request
from penstock.store.on_postgres import read_events
from penstock.store.walk.choose import Parameter
from penstock.store.walk.on_postgres import Reading

Connection = psycopg.Connection[TupleRow]
_ONE, _BATCH = b"append_one", b"append_batch"
_TRIES = 2
_TOO_SLOW = "the condition could not be checked in time, and nothing was stored"
_BE_QUICKER = "Send `after` with it, or name a rarer tag."
_ELEMENT = re.compile(r'"[^"]*"|[^,]+')


class PostgresLog:
    """The log, appended to over one connection of its own; reads come from the readers' pool."""

    def __init__(self, dsn: str, readers: Pool) -> None:
        self._dsn = dsn
        self._reading = Reading(readers)
        self._writer = f"append-{uuid7()}".encode()
        self._connection: Connection | None = None
        self._seen = 0  # a position that was committed before the next statement begins

    def commit(self, requests: Sequence[Request]) -> list[Outcome]:
        """Make each durable or refuse it; StoreUnavailable when it is not known what happened."""
        for left in reversed(range(_TRIES)):
            try:
                return self._commit(requests)
            except psycopg.errors.QueryCanceled:
                if len(requests) == 1:
                    return [QueryTooSlow(_TOO_SLOW, remedy=_BE_QUICKER)]
                # One of them is slow. Each alone, the others are not.
                return [outcome for each in requests for outcome in self.commit([each])]
            except psycopg.Error as error:
                self.close()
                if not left or not isinstance(error, psycopg.OperationalError):
                    raise StoreUnavailable(
                        f"it is not known whether the append was committed: {error}",
                        remedy="Send the same append again, with the same event ids.",
                    ) from error
        raise AssertionError("unreachable")

    def read(self, tenant_id: str, criteria: Criteria, *, after: int, limit: int) -> Found:
        """The first matching events after a position, and the end of the log, in one snapshot."""
        tags = [literal([f"{key}:{value}" for key, value in each.tags]) for each in criteria]
        types = [literal(each.types) for each in criteria]
        parameters: dict[str, Parameter] = {
            "tenant": tenant_id, "after": after, "limit": limit + 1,
            "tags": [_text(each) for each in tags], "types": [_text(each) for each in types],
        }  # fmt: skip
        walk = sql.SQL(query("append", "matching"))
        with self._reading.tenant(tenant_id) as connection:
            row = connection.execute(query("append", "look")).fetchone()
            found = read_events(connection, walk, parameters, prepare=True)[::-1]
        head = 0 if row is None else row[0]
        if len(found) > limit:
            return Found(found[:limit], found[limit - 1].position)
        return Found(found, head)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _commit(self, requests: Sequence[Request]) -> list[Outcome]:
        if len(requests) == 1 and is_simple(requests[0]):
            parameters = one_parameters(self._writer, self._seen, requests[0])
            row = self._call(_ONE, parameters, ONE_FORMS)
            if row[0] is not None:
                self._seen = int(row[0])
                return [Appended((self._seen,) * len(requests[0].places))]
        row = self._call(_BATCH, batch_parameters(self._writer, requests), BATCH_FORMS)
        answer = _answer(row)
        found = outcomes(requests, answer)
        self._seen = max([answer.base, *(o.after for o in found if isinstance(o, Appended))])
        return found

    def _call(
        self, name: bytes, parameters: Sequence[bytes | None], forms: Sequence[int]
    ) -> list[bytes | None]:
        """The one row that a prepared statement gives."""
        pgconn = self._open().pgconn
        result = pgconn.exec_prepared(
            name, cast("Sequence[bytes]", parameters), forms
        )  # None is NULL
        if result.status != pq.ExecStatus.TUPLES_OK:
            if pgconn.status != pq.ConnStatus.OK:
                raise psycopg.OperationalError("the connection broke")
            raise error_from_result(result)
        return [result.get_value(0, column) for column in range(result.nfields)]

    def _open(self) -> Connection:
        connection = self._connection
        if connection is None or connection.closed:
            connection = psycopg.connect(self._dsn, autocommit=True, connect_timeout=5)
            become(connection, "penstock_ingest")
            connection.execute(query("intake", "never_scan"))
            connection.execute(query("append", "settle_in"))
            for name in (_ONE, _BATCH):
                connection.pgconn.prepare(name, query("append", name.decode()).encode())
            self._connection, self._seen = connection, 0
        return connection


def _answer(row: Sequence[bytes | None]) -> Answer:
    """The columns of `append_batch`, in their order."""
    base, hit, clauses, places, known, known_at, known_same, dropped = row
    hits = zip(_list(hit), _list(clauses), _list(places), strict=True)
    olds = zip(_list(known), _list(known_at), _list(known_same), strict=True)
    return Answer(
        base=int(base or 0),
        hits=[(int(append), int(clause), _positions(found)) for append, clause, found in hits],
        known={int(event): (int(at), same == "t") for event, at, same in olds},
        dropped=frozenset(int(append) for append in _list(dropped)),
    )


def _list(column: bytes | None) -> list[str]:
    """The elements of an array whose texts hold digits and commas only."""
    return [] if column is None else [e.strip('"') for e in _ELEMENT.findall(column[1:-1].decode())]


def _positions(text: str) -> tuple[int, ...]:
    return () if text == "NULL" else tuple(int(part) for part in text.split(","))


def _text(word: bytes | None) -> str | None:
    return None if word is None else word.decode()
