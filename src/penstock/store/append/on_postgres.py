"""Append to the log in PostgreSQL: one statement and one commit for everything that waited.

    one event, nobody else writes ── append_next  ─▶ stored, or no row: something is in the way
    one event, on one tag         ── append_one   ─▶ likewise
    each criterion is one tag     ── append_quick ─▶ likewise, for many
    that, and anything else       ── append_batch ─▶ what was stored, and why the rest was not

They check, store, count and move the head in one round trip, are called by the prepared name,
with parameters in wire form, and may be sent before the last one was answered. Whatever stands in
the way of a quick append, a conflict, an id that is known, a writer who commits in the same moment,
makes it store nothing; the batch then gives the exact answer. Where others write a lot the quick
way would often be in vain: for a while it locks the head first. A connection that breaks is opened
again and the batch sent once more: what was committed is known by its ids, and answered as it was.

By source, what was appended is counted later: every thousand events here, by the intake before each
of its lots, and by whoever reads the ledger.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NoReturn

import psycopg
import structlog
from psycopg import sql
from psycopg.errors import UniqueViolation

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
from penstock.store.append.over_pipe import Ask, Line, Parameters, Row
from penstock.store.append.packed import NEXT_FORMS, ONE_FORMS, QUICK_FORMS, quick_parameters
from penstock.store.append.request import Appended, Found, Outcome, Outcomes, Request
from penstock.store.on_postgres import read_events
from penstock.store.walk.choose import Parameter
from penstock.store.walk.on_postgres import Reading

_ONE, _QUICK, _BATCH, _COUNT = b"append_one", b"append_quick", b"append_batch", b"append_count"
_LOCK, _NEXT = b"append_lock", b"append_next"
_COUNT_FORMS = (1,)
_COUNTED = 1_000  # events, then they are counted by source
_WARY = 64  # batches that lock the head first, after one met another writer
_QUIET = 8  # batches without anybody between them, then nobody is looked for
_TRIES = 2
_TOO_SLOW = "the condition could not be checked in time, and nothing was stored"
_BE_QUICKER = "Send `after` with it, or name a rarer tag."
_ELEMENT = re.compile(r'"[^"]*"|[^,]+')
_LONG = struct.Struct("!q").pack
_log = structlog.get_logger("append")


class PostgresLog:
    """The log, appended to over one connection of its own; reads come from the readers' pool."""

    def __init__(self, dsn: str, readers: Pool) -> None:
        self._dsn = dsn
        self._reading = Reading(readers)
        self._line: Line | None = None
        self._kind = 0  # what this database calls an `append_row`
        self._counted = 0  # up to which position we had the events counted
        self._wary = 0  # how many batches from now on lock the head first
        self._end = 0  # where the log ended when we last wrote
        self._undisturbed = 0  # how often it still did when we wrote again

    def commit(self, requests: Sequence[Request]) -> Sequence[Outcome]:
        """Make each durable or refuse it; StoreUnavailable when it is not known what happened."""
        if self._undisturbed >= _QUIET and len(requests) == 1:
            (request,) = requests
            if request.packed is not None and request.packed.alone is not None:
                return self._alone(request, request.packed.alone)
        return self._see_through(requests, lambda: self._start(requests, is_ahead=False)())

    def send(self, requests: Sequence[Request]) -> Outcomes:
        """As `commit`, but go on; call what comes back to wait for the outcomes."""
        try:
            outcomes = self._start(requests, is_ahead=True)
        except psycopg.OperationalError:
            return partial(self._see_through, requests, partial(self._again, requests))
        return partial(self._see_through, requests, outcomes)

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
        if self._line is not None:
            self._line.close()
            self._line = None

    def _see_through(self, requests: Sequence[Request], attempt: Outcomes) -> Sequence[Outcome]:
        """What the attempt gives; when its connection broke, what another one finds."""
        for left in reversed(range(_TRIES)):
            try:
                return attempt()
            except psycopg.errors.QueryCanceled:
                if len(requests) == 1:
                    return [QueryTooSlow(_TOO_SLOW, remedy=_BE_QUICKER)]
                # One of them is slow. Each alone, the others are not.
                return [outcome for each in requests for outcome in self.commit([each])]
            except psycopg.Error as error:
                if not left or not isinstance(error, psycopg.OperationalError):
                    said = " ".join(str(error).split())  # the server's own words come in lines
                    raise StoreUnavailable(
                        f"it is not known whether the append was committed: {said}",
                        remedy="Send the same append again, with the same event ids.",
                    ) from error
                attempt = partial(self._again, requests)
        raise AssertionError("unreachable")

    def _start(self, requests: Sequence[Request], *, is_ahead: bool) -> Outcomes:
        """Call the statement, now or when the outcomes are asked for."""
        line = self._open()
        start = line.send if is_ahead else line.later
        packed = [each.packed for each in requests if each.packed is not None]
        if len(packed) < len(requests):
            ask = start(_BATCH, batch_parameters(requests, self._kind), BATCH_FORMS)
            return lambda: outcomes(requests, self._answer(ask()))
        if self._wary:
            self._wary -= 1
            start = partial(line.send, behind=_LOCK)
        alone = packed[0].alone if len(packed) == 1 else None
        if alone is not None:
            ask = start(_ONE, alone, ONE_FORMS)
        else:
            ask = start(_QUICK, quick_parameters(packed, self._kind), QUICK_FORMS)
        return lambda: self._quick(requests, ask)

    def _alone(self, request: Request, parameters: Parameters) -> Sequence[Outcome]:
        """What became of one event, sent while nobody else is heard of.

        In as few steps as can be: behind a wait for the disk each takes five times as long as when
        it is taken again and again.
        """
        ask: Ask
        try:
            line = self._line or self._open()
            row = line.call(_NEXT, (*parameters, _LONG(self._end)), NEXT_FORMS)
        except psycopg.Error as error:
            ask = partial(_raise, error)
        else:
            if row is not None:
                self._end = last = self._end + 1
                self._count(last)
                return [Appended((last,) * len(request.places))]
            ask = _nothing
        return self._see_through([request], partial(self._quick, [request], ask))

    def _quick(self, requests: Sequence[Request], ask: Ask) -> list[Outcome]:
        """The outcomes when all of them are stored; else something was in the way, and none is."""
        with suppress(UniqueViolation):
            row = ask()
            if row is not None:
                last = int(row[0] or 0)
                base = last - sum(len(r.entries) for r in requests)
                self._undisturbed = self._undisturbed + 1 if base == self._end else 0
                self._end = last
                self._count(last)
                return in_order(requests, base)
        return self._thoroughly(requests)

    def _thoroughly(self, requests: Sequence[Request]) -> list[Outcome]:
        """Append what the quick way did not, and see what was in its way."""
        parameters = batch_parameters(requests, self._kind)
        answer = self._answer(self._open().call(_BATCH, parameters, BATCH_FORMS))
        if answer.base != self._end:  # another writer, a moment ago or long since
            if not answer.hits and not answer.known and self._undisturbed < _QUIET:
                self._wary = _WARY
            self._undisturbed = 0
        return outcomes(requests, answer)

    def _again(self, requests: Sequence[Request]) -> list[Outcome]:
        """Append what may be there already, although its ids were new when it was sent."""
        parameters = batch_parameters(requests, self._kind, is_again=True)
        return outcomes(requests, self._answer(self._open().call(_BATCH, parameters, BATCH_FORMS)))

    def _answer(self, row: Row | None) -> Answer:
        answer = read_answer(row)
        self._count(answer.base)
        return answer

    def _count(self, position: int) -> None:
        """Have what was appended counted by source, when it is much; no append depends on it."""
        if position - self._counted < _COUNTED:
            return
        self._counted = position
        try:
            self._open().call(_COUNT, (_LONG(position),), _COUNT_FORMS)
        except psycopg.Error as error:  # the next thousand will be two
            _log.warning("append_uncounted", error=str(error))

    def _open(self) -> Line:
        if self._line is None or self._line.is_closed:
            connection = psycopg.connect(self._dsn, autocommit=True, connect_timeout=5)
            become(connection, "penstock_ingest")
            connection.execute(query("intake", "never_scan"))
            connection.execute(query("append", "settle_in"))
            for name in (_LOCK, _NEXT, _ONE, _QUICK, _BATCH, _COUNT):
                connection.pgconn.prepare(name, _statement(name.decode()))
            for (kind,) in connection.execute(query("append", "kind")):
                self._kind = kind
            self._line = Line(connection)
        return self._line


def _statement(name: str) -> bytes:
    columns, values = query("append", "part_columns"), query("append", "part_values")
    return query("append", name).format(columns=columns, values=values).encode()


def _nothing() -> None:
    return None


def _raise(error: psycopg.Error) -> NoReturn:
    raise error


def read_answer(row: Row | None) -> Answer:
    """The columns of `append_batch`, in their order."""
    base, hit, clauses, places, known, known_at, known_same, dropped = row or [None] * 8
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
