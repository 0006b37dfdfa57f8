"""Append to the log in PostgreSQL: one statement and one commit for everything that waited.

    each criterion is one tag ── append_quick ─▶ stored, or no row: something is in the way
    that, and anything else   ── append_batch ─▶ what was stored, and why the rest was not

Both check, store, count and move the head in one round trip. They are called by the prepared name,
with parameters in wire form. Whatever stands in the way of a quick append, a conflict, an id that
is known, a writer who commits in the same moment, makes it store nothing; the batch then gives the
exact answer. Where others write a lot the quick way would often be in vain, and is not tried for a
while. A connection that breaks is opened again and the batch sent once more: what was committed is
known by its ids, and is answered as it was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import psycopg
from psycopg import pq, sql
from psycopg.errors import UniqueViolation, error_from_result
from psycopg.rows import TupleRow

from penstock.base.errors import QueryTooSlow, StoreUnavailable
from penstock.base.on_postgres import Pool, become
from penstock.sql import query
from penstock.store.append.arrays import literal
from penstock.store.append.call import (
    BATCH_FORMS,
    Answer,
    batch_parameters,
    in_order,
    outcomes,
)
from penstock.store.append.condition import Criteria
from penstock.store.append.packed import QUICK_FORMS, Kinds, Packed, quick_parameters
from penstock.store.append.request import Found, Outcome, Request
from penstock.store.on_postgres import read_events
from penstock.store.walk.choose import Parameter
from penstock.store.walk.on_postgres import Reading

Connection = psycopg.Connection[TupleRow]
Row = list[bytes | None]
_QUICK, _BATCH = b"append_quick", b"append_batch"
_WARY = 16  # batches after one met another writer, before a quick one is tried again
_TRIES = 2
_TOO_SLOW = "the condition could not be checked in time, and nothing was stored"
_BE_QUICKER = "Send `after` with it, or name a rarer tag."
_ELEMENT = re.compile(r'"[^"]*"|[^,]+')


class PostgresLog:
    """The log, appended to over one connection of its own; reads come from the readers' pool."""

    def __init__(self, dsn: str, readers: Pool) -> None:
        self._dsn = dsn
        self._reading = Reading(readers)
        self._connection: Connection | None = None
        self._kinds = Kinds(0, 0)
        self._wary = 0  # how many batches from now on are not tried the quick way

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
        pgconn = self._open().pgconn
        packed = [each.packed for each in requests if each.packed is not None]
        is_quick = self._wary == 0 and len(packed) == len(requests)
        if is_quick and (head := self._quick(pgconn, packed)) is not None:
            return in_order(requests, head - sum(each.events for each in packed))
        row = _call(pgconn, _BATCH, batch_parameters(requests, self._kinds), BATCH_FORMS)
        answer = _answer(row or [None] * 8)
        is_crowded = is_quick and not answer.hits and not answer.known
        self._wary = _WARY if is_crowded else max(0, self._wary - 1)
        return outcomes(requests, answer)

    def _quick(self, pgconn: pq.abc.PGconn, batch: Sequence[Packed]) -> int | None:
        """The head when all of them are stored; None: something was in the way, and none is."""
        try:
            row = _call(pgconn, _QUICK, quick_parameters(batch, self._kinds), QUICK_FORMS)
        except UniqueViolation:
            return None
        return None if row is None else int(row[0] or 0)

    def _open(self) -> Connection:
        connection = self._connection
        if connection is None or connection.closed:
            connection = psycopg.connect(self._dsn, autocommit=True, connect_timeout=5)
            become(connection, "penstock_ingest")
            connection.execute(query("intake", "never_scan"))
            connection.execute(query("append", "settle_in"))
            for name in (_QUICK, _BATCH):
                connection.pgconn.prepare(name, query("append", name.decode()).encode())
            for row, source in connection.execute(query("append", "kinds")):
                self._kinds = Kinds(row, source)
            self._connection = connection
        return connection


def _call(
    pgconn: pq.abc.PGconn, name: bytes, parameters: Sequence[bytes], forms: Sequence[int]
) -> Row | None:
    """The one row that a prepared statement gives, if any."""
    result = pgconn.exec_prepared(name, parameters, forms)
    if result.status != pq.ExecStatus.TUPLES_OK:
        if pgconn.status != pq.ConnStatus.OK:
            raise psycopg.OperationalError("the connection broke")
        raise error_from_result(result)
    if not result.ntuples:
        return None
    return [result.get_value(0, column) for column in range(result.nfields)]


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
