"""Statements may be sent ahead of their answers, and each gets its own."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.errors import DivisionByZero, QueryCanceled, UniqueViolation

from penstock.store.append import over_pipe
from penstock.store.append.over_pipe import Line

DIVIDE, NAP, SLEEP, NOTHING = b"divide", b"nap", b"sleep", b"nothing"
FORMS = (1,)


def number(value: int) -> list[bytes]:
    return [struct.pack("!i", value)]


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as found:
        found.pgconn.prepare(DIVIDE, b"SELECT 60 / $1::int")
        found.pgconn.prepare(SLEEP, b"SELECT pg_sleep($1::int)")
        found.pgconn.prepare(NAP, b"SELECT pg_sleep($1::int / 500.0)")
        found.pgconn.prepare(NOTHING, b"SELECT 1 WHERE $1::int = 0")
        yield found


@pytest.fixture
def line(connection: psycopg.Connection) -> Line:
    return Line(connection)


def test_answers_come_to_whom_they_belong_in_whatever_order_they_are_asked_for(line: Line) -> None:
    asks = [line.send(DIVIDE, number(n), FORMS) for n in (1, 2, 3, 4)]

    assert [asks[n]() for n in (2, 0, 3, 1)] == [[b"20"], [b"60"], [b"15"], [b"30"]]
    assert asks[2]() == [b"20"], "and may be asked for again"


def test_one_that_fails_does_not_spoil_those_around_it(line: Line) -> None:
    before, bad, after = (line.send(DIVIDE, number(n), FORMS) for n in (1, 0, 2))

    assert before() == [b"60"]
    assert after() == [b"30"]
    with pytest.raises(DivisionByZero):
        bad()
    assert not line.is_closed


def test_a_call_waits_behind_what_is_under_way_and_goes_alone_when_nothing_is(line: Line) -> None:
    assert line.call(DIVIDE, number(2), FORMS) == [b"30"]
    sent = line.send(DIVIDE, number(1), FORMS)
    assert line.call(DIVIDE, number(3), FORMS) == [b"20"]
    assert sent() == [b"60"]
    assert line.later(DIVIDE, number(4), FORMS)() == [b"15"]
    assert line.call(NOTHING, number(1), FORMS) is None
    assert line.send(NOTHING, number(1), FORMS)() is None


@pytest.mark.parametrize(("watch_s", "is_watched"), [(10.0, True), (0.0, False)])
def test_only_a_caller_who_comes_back_at_once_is_watched_for(
    line: Line, monkeypatch: pytest.MonkeyPatch, watch_s: float, is_watched: bool
) -> None:
    looks = itertools.count()
    monkeypatch.setattr(over_pipe, "_WATCH_S", watch_s)
    monkeypatch.setattr(over_pipe, "_HAS_COMPANY", True)
    monkeypatch.setattr(over_pipe.os, "sched_yield", lambda: next(looks))

    assert line.call(DIVIDE, number(1), FORMS) == [b"60"]
    assert next(looks) == 0, "the first one sleeps"
    assert line.call(NAP, number(50), FORMS) == [b""]
    assert (next(looks) > 2) == is_watched


def test_an_answer_that_does_not_come_soon_is_slept_for(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(over_pipe, "_HAS_COMPANY", True)
    for name, value, answer in [
        (DIVIDE, 1, b"60"), (DIVIDE, 2, b"30"), (NAP, 9, b""), (DIVIDE, 3, b"20"),
    ]:  # fmt: skip
        assert line.call(name, number(value), FORMS) == [answer]


def test_a_call_hears_of_a_commit_that_fails_after_its_rows(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        connection.pgconn.prepare(b"insert", b"INSERT INTO t VALUES ($1::int) RETURNING a")
        line = Line(connection)

        assert line.call(b"insert", number(1), FORMS) == [b"1"]
        with pytest.raises(UniqueViolation):
            line.call(b"insert", number(1), FORMS)
        assert line.call(b"insert", number(2), FORMS) == [b"2"]


def test_a_call_that_is_interrupted_leaves_its_answer_to_nobody(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(over_pipe.time, "perf_counter", interrupted)
    with pytest.raises(KeyboardInterrupt):
        line.call(DIVIDE, number(1), FORMS)

    assert line.is_closed


def test_what_runs_behind_another_is_one_transaction_with_it(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (a int); CREATE TABLE u (xid xid8)")
        connection.pgconn.prepare(b"first", b"INSERT INTO u VALUES (pg_current_xact_id())")
        connection.pgconn.prepare(b"fails", b"SELECT 1 / count(*) FROM t")
        connection.pgconn.prepare(
            b"insert",
            b"INSERT INTO t VALUES ($1::int) RETURNING pg_current_xact_id() = (SELECT xid FROM u)",
        )
        line = Line(connection)

        bad = line.send(b"insert", number(0), FORMS, behind=b"fails")
        good = line.send(b"insert", number(1), FORMS, behind=b"first")

        assert good() == [b"t"]
        with pytest.raises(DivisionByZero):
            bad()
        assert line.call(b"insert", number(2), FORMS) == [b"f"]
        assert connection.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (2,)]


def test_a_statement_that_takes_too_long_is_told_and_the_line_goes_on(
    line: Line, connection: psycopg.Connection
) -> None:
    connection.execute("SET statement_timeout = '50ms'")
    slow, next_one = line.send(SLEEP, number(60), FORMS), line.send(DIVIDE, number(1), FORMS)

    with pytest.raises(QueryCanceled):
        slow()
    assert next_one() == [b"60"]


def test_what_is_larger_than_any_buffer_is_sent_whole(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.pgconn.prepare(b"length", b"SELECT length($1::bytea)")
        line = Line(connection)
        asks = [line.send(b"length", [b"x" * size], FORMS) for size in (1, 30_000_000, 2)]

        assert [ask() for ask in asks] == [[b"1"], [b"30000000"], [b"2"]]
        assert line.call(b"length", [b"x" * 30_000_000], FORMS) == [b"30000000"]


def test_a_line_that_breaks_tells_everybody_who_asks(
    line: Line, connection: psycopg.Connection, database: str
) -> None:
    asks = [line.send(SLEEP, number(60), FORMS), line.send(DIVIDE, number(1), FORMS)]
    with psycopg.connect(database, autocommit=True) as operator:
        operator.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))

    for ask in asks:
        with pytest.raises(psycopg.OperationalError):
            ask()
    assert line.is_closed
    for again in (line.call, line.send):
        with pytest.raises(psycopg.OperationalError):
            again(DIVIDE, number(1), FORMS)
