"""What is appended is stored, hashed, tagged and counted exactly as what is taken in."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import psycopg
import pytest
from psycopg.rows import dict_row
from tests.store.append.support import (
    NOW,
    cut_connections,
    event,
    insert_by_hand,
    on_postgres,
    registry,
    unless,
    wait_for_lock,
)

from penstock.base.clock import FixedClock
from penstock.base.errors import AppendConflict, StoreUnavailable
from penstock.base.on_postgres import open_pool
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject
from penstock.ingress.lot import Judged, Lot
from penstock.ingress.pipeline import judge
from penstock.ingress.rows import write
from penstock.ingress.verdict import Arrival
from penstock.registry.book import RegistryBook
from penstock.registry.declare import EventType, Payload, Vocabulary
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.store.append.appends import Appends
from penstock.store.append.condition import Condition
from penstock.store.append.judging import Calling, Said
from penstock.store.append.on_postgres import PostgresLog
from penstock.store.append.request import Appended, Outcome, Outcomes, Request
from penstock.store.intake.on_postgres import PostgresIntake
from penstock.store.ledger.on_postgres import LedgerReader
from penstock.transport.on_disk import Pending

Prepare: TypeAlias = Callable[[list[JsonObject], Condition | None], Request]
ODD: list[JsonObject] = [
    event("plain"),
    event(
        "full", payload={"seat": 'A"1\\ \t\n 日本 \u2028', "n": 2**53 - 1},
        tags={"show": '4\\2"', "seat": "a:b\tc\nd", "user": "日本"}, correlationId='c\\"1',
        causationId="\\N", traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01", ttl=5,
        metadata={"a\\b": [1.5e300, "\\N", None]}, occurredAt="2026-03-01T10:30:00.123456+02:00",
        schemaVersion=1,
    ),
    event("dashes", payload={"seat": "\\N"}, correlationId="\\\\N"),
]  # fmt: skip


def rows(dsn: str) -> list[dict[str, Any]]:
    with psycopg.connect(dsn, row_factory=dict_row) as connection:
        events = connection.execute(
            "SELECT e.*, payload::text AS payload, tags::text AS tags, metadata::text AS metadata,"
            " NULL AS received_at, (SELECT array_agg(tag ORDER BY tag) FROM event_tags AS t"
            " WHERE t.position = e.position AND t.tenant_id = e.tenant_id) AS tagged"
            " FROM workflow_events AS e ORDER BY position"
        )
        return events.fetchall()


def books(dsn: str) -> Any:
    with open_pool(dsn, "penstock_ingest", size_max=1) as pool:
        return LedgerReader(pool, lambda: Pending(0, 0, [], None, {}, {})).read()


@pytest.fixture
def one_by_one(database: str) -> Iterator[Appends]:
    with on_postgres(database) as appends:
        yield appends


@pytest.fixture
def log(one_by_one: Appends) -> PostgresLog:
    assert isinstance(one_by_one.log, PostgresLog)
    return one_by_one.log


@pytest.fixture
def prepare(one_by_one: Appends) -> Prepare:
    return lambda events, condition: one_by_one.prepare(Said(Calling("acme"), events, condition))


@pytest.mark.parametrize("first", ["append_next", "append_one"])
def test_a_row_is_the_same_whichever_way_it_came_in(
    database: str, other_database: str, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = 0 if first == "append_next" else 9
    monkeypatch.setattr("penstock.store.append.on_postgres._QUIET", quiet)
    arrival = Arrival(NOW, "unused", tenant_id="acme")
    judged = [Judged(raw, judge(raw, arrival, registry())) for raw in map(encode, ODD)]
    PostgresIntake(other_database).settle(Lot(writer="w", messages=write(judged)))

    with on_postgres(database) as appends:
        appends.of("acme").append(ODD[:1])
        appends.of("acme").append(ODD[1:2], unless(show="x"))
        appends.of("acme").append(ODD[1:])  # append_batch, with one that is known

    assert rows(database) == rows(other_database)
    assert len(rows(database)) == 3


def test_everything_appended_is_accounted_for(database: str) -> None:
    with on_postgres(database) as appends:
        store = appends.of("acme")
        store.append([event("a", tags={"show": "1"})], unless(show="1"))
        store.append([event("b"), event("c"), event("b")])
        store.append([event("a", tags={"show": "1"})], unless(show="1"))
        store.append([event("b"), event("d", source="other.office")])
        with pytest.raises(AppendConflict):
            store.append([event("e")], unless(show="1"))
        with pytest.raises(AppendConflict):
            store.append([event("a", tags={"show": "1"}), event("f")], unless(show="1"))

    account = books(database)
    assert (account.accepted, account.stored, account.duplicates) == (6, 4, 2)
    assert account.unexplained == 0
    counted = {s.source: (s.stored, s.duplicates) for s in account.sources}
    assert counted == {"box.office": (3, 2), "other.office": (1, 0)}


def test_lag_is_how_much_later_than_its_time_an_event_came(database: str) -> None:
    said = [
        event("old", occurredAt="2020-01-01T00:00:00Z"),
        event("new", occurredAt="2100-01-01T00:00:00Z"),
    ]
    with on_postgres(database) as appends:
        appends.of("acme").append(said)

    (found,) = books(database).sources
    old, new = (datetime.fromisoformat(str(each["occurredAt"])) for each in said)
    with psycopg.connect(database) as connection:
        ((at,),) = connection.execute("SELECT received_at FROM head").fetchall()
    assert (found.lag_last_ms, found.lag_max_ms) == (0, (at - old) // timedelta(milliseconds=1))
    assert found.last_event_at == new


def test_appends_are_counted_where_the_head_is_moved(one_by_one: Appends, database: str) -> None:
    one_by_one.of().append([event("a")])
    one_by_one.of().append([event("a"), event("b")])

    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT position, appended FROM head").fetchone() == (2, 3)
        assert connection.execute("SELECT * FROM ledger_writers").fetchall() == []


def test_appends_go_on_beside_another_writer(database: str) -> None:
    """Each sees what the other has stored, however it comes in."""
    with on_postgres(database) as ours, on_postgres(database) as theirs:
        for n in range(60):
            name = f"s{n % 7}"
            for store in (ours.of("acme"), theirs.of("acme")):
                try:
                    store.append([event(None, tags={"show": name})], unless(show=name))
                except AppendConflict as conflict:
                    assert conflict.positions == (n % 7 + 1,)
                else:
                    assert n < 7
        assert ours.of("acme").append([event("last")]).positions == (8,)

    account = books(database)
    assert (account.accepted, account.stored, account.unexplained) == (8, 8, 0)


def test_a_commit_wakes_whoever_listens_once(one_by_one: Appends, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as listening:
        listening.execute("LISTEN penstock_events")
        one_by_one.of().append([event("a")])
        one_by_one.of().append([event("b"), event("c")])
        heard = [n.payload for n in listening.notifies(timeout=5, stop_after=2)]

    assert heard == ["1", "3"]


def test_a_refused_append_writes_nothing(one_by_one: Appends, database: str) -> None:
    store = one_by_one.of()
    store.append([event("a", tags={"show": "42"})])
    with psycopg.connect(database, autocommit=True) as connection:
        before = connection.execute("SELECT xmin, position FROM head").fetchone()
        with pytest.raises(AppendConflict):
            store.append([event("b")], unless(show="42"))
        with pytest.raises(AppendConflict):
            store.append([event("b"), event("c")], unless(show="42"))

        assert connection.execute("SELECT xmin, position FROM head").fetchone() == before


@pytest.mark.parametrize("is_wary", [False, True])
def test_what_slipped_in_between_looking_and_locking_is_seen(database: str, is_wary: bool) -> None:
    """Another writer holds the head while ours has looked already; then it commits."""
    with (
        psycopg.connect(database) as other,
        on_postgres(database) as appends,
    ):
        store = appends.of("acme")
        store.append([event("first")])  # prepares the statements
        assert isinstance(appends.log, PostgresLog)
        appends.log._wary = 10 if is_wary else 0
        for n, events in enumerate(([event("a")], [event("b"), event("c")])):
            other.execute("SELECT 1 FROM head FOR UPDATE")
            failed: list[Exception] = []

            def late(said: list[JsonObject] = events, boundary: str = str(n)) -> None:
                try:
                    store.append(said, unless(show=boundary))
                except AppendConflict as error:
                    failed.append(error)

            waiting = threading.Thread(target=late)
            waiting.start()
            wait_for_lock(database)
            insert_by_hand(other, position=2 + n, tag=f"show:{n}")
            other.commit()
            waiting.join(20)

            (error,) = failed
            assert isinstance(error, AppendConflict)
            assert error.positions == (2 + n,)
        assert store.append([event("last")]).positions == (4,)


def test_after_it_met_another_writer_a_log_locks_first_and_is_not_in_vain(database: str) -> None:
    with psycopg.connect(database) as other, on_postgres(database) as appends:
        log = appends.log
        assert isinstance(log, PostgresLog)
        thorough = count_calls(log, "_thoroughly")
        for n in range(3):
            other.execute("SELECT 1 FROM head FOR UPDATE")
            said = [event(f"e{n}")]
            waiting = threading.Thread(
                target=appends.of("acme").append, args=(said, unless(show="9"))
            )
            waiting.start()
            wait_for_lock(database)
            insert_by_hand(other, position=1 + 2 * n, tag="show:1")
            other.commit()
            waiting.join(20)

    assert len(thorough) == 1, "the first was in vain, those behind the lock were not"
    assert [row["id"] for row in rows(database)][1::2] == ["e0", "e1", "e2"]


def count_calls(log: PostgresLog, name: str) -> list[object]:
    calls: list[object] = []
    real = getattr(log, name)
    setattr(log, name, lambda *given: (calls.append(given), real(*given))[1])
    return calls


def test_a_connection_that_breaks_is_opened_again_and_nothing_is_stored_twice(
    one_by_one: Appends, database: str
) -> None:
    store = one_by_one.of("acme")
    store.append([event("a")])
    cut_connections(database)

    assert store.append([event("b")], unless(show="42")).positions == (2,)
    assert store.append([event("b"), event("c")]).positions == (2, 3)


def test_without_postgresql_the_caller_is_asked_to_try_again(tmp_path: Any, database: str) -> None:
    with open_pool(database, "penstock_reader", size_max=1) as pool:
        log = PostgresLog(f"postgresql:///none?host={tmp_path}", pool)
        appends = Appends(log, registry=registry, clock=FixedClock(NOW))

        with pytest.raises(StoreUnavailable) as refused:
            appends.of().append([event("a")])

    assert "same event ids" in refused.value.remedy


@pytest.mark.parametrize(
    ("tags", "types"),
    [
        (["mode:dev", "issue:42"], None),
        (["issue:42", "mode:dev"], None),
        (["mode:dev"], ["show.opened"]),
        (["mode:dev", "user:u1"], ["show.opened", "SHOW.CLOSED"]),
        (None, ["show.opened"]),
    ],
)
def test_what_is_rare_and_hot_is_found_by_what_is_rare(
    database: str, tags: list[str] | None, types: list[str] | None
) -> None:
    with on_postgres(database) as appends:
        store = appends.of("acme")
        for start in range(0, 3_000, 1_000):
            store.append(
                [event(f"h{start + n}", tags={"mode": "dev", "user": "u1"}) for n in range(1_000)]
            )
        store.append([event("r", "show.opened", tags={"issue": "42"})])
    with psycopg.connect(database) as connection:
        connection.execute("SET enable_seqscan = off")
        plan = connection.execute(
            "EXPLAIN (ANALYZE, COSTS OFF)"
            " SELECT * FROM positions_matching('acme', %s::text[], %s::text[], 0, 10)",
            (tags, types),
        ).fetchall()
    text = "\n".join(line for (line,) in plan)

    assert "Seq Scan" not in text
    assert not re.search(r"rows=[1-9]\d{3}", text)


def test_batches_that_are_sent_ahead_see_those_before_them(
    log: PostgresLog, prepare: Prepare
) -> None:
    first = prepare([event("a", tags={"show": "42"})], unless(show="42"))
    rival = prepare([event("b", tags={"show": "42"})], unless(show="42"))
    repeat = prepare([event("a", tags={"show": "42"})], unless(show="42"))
    wordy = prepare([event("c")], unless("seat.booked", show="7"))
    asked = [log.send([each]) for each in (first, rival, repeat, wordy)]

    found = [ask()[0] for ask in asked]

    assert found[0] == found[2] == Appended((1,))
    assert isinstance(found[1], AppendConflict)
    assert found[1].positions == (1,)
    assert found[3] == Appended((2,))
    assert log.commit([prepare([event("d")], None)]) == [Appended((3,))], "and one at a time again"


@pytest.mark.parametrize("name", ["a", None])
def test_what_was_committed_when_the_connection_broke_is_answered_as_it_was(
    log: PostgresLog, prepare: Prepare, database: str, name: str | None
) -> None:
    """Even when its id was made for that very call, so that nobody had to look for it before."""
    first = prepare([event(name, tags={"show": "42"})], unless(show="42"))
    second = prepare([event(tags={"show": "7"})], unless(show="7"))
    asked = [log.send([first]), log.send([second])]
    with psycopg.connect(database, autocommit=True) as watching:
        while watching.execute("SELECT position FROM head").fetchone() != (2,):
            pass
    assert log._line is not None
    log._line.close()

    assert [ask() for ask in asked] == [[Appended((1,))], [Appended((2,))]]


class Halting(PostgresLog):
    """A log that takes too long to check one boundary, alone or with others."""

    def _start(self, requests: Sequence[Request], *, is_ahead: bool) -> Outcomes:
        if any(e.accepted.envelope.tags.get("show") == "slow" for r in requests for e in r.entries):
            return self._cancel
        return super()._start(requests, is_ahead=is_ahead)

    def _cancel(self) -> list[Outcome]:
        raise psycopg.errors.QueryCanceled("it took too long")


@pytest.mark.parametrize("is_ahead", [False, True])
def test_one_slow_condition_does_not_fail_those_that_share_its_commit(
    database: str, is_ahead: bool
) -> None:
    with open_pool(database, "penstock_reader", size_max=1) as pool:
        log = Halting(database, pool)
        prepare = Appends(log, registry=registry, clock=FixedClock(NOW)).prepare
        quick, slow, last = (
            prepare(Said(Calling("acme"), [event(name, tags={"show": name})], condition))
            for name, condition in (
                ("quick", unless(show="quick")),
                ("slow", unless("seat.booked", show="slow")),
                ("last", unless(show="last")),
            )
        )

        found = log.send([quick, slow, last])() if is_ahead else log.commit([quick, slow, last])
        log.close()

    assert [type(outcome).__name__ for outcome in found] == ["Appended", "QueryTooSlow", "Appended"]


class Person(Payload):
    """Somebody."""

    name: str


def test_tags_that_a_type_promises_are_boundaries_too(database: str) -> None:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    promised = EventType("person.named", Person, tags={"name": "/name"})
    book.declare([Vocabulary("people", (promised,))])
    with open_pool(database, "penstock_reader", size_max=1) as pool:
        appends = Appends(PostgresLog(database, pool), registry=book.current, clock=FixedClock(NOW))
        store = appends.of()
        named = event("a", "person.named", payload={"name": "Ada"})
        store.append([named], unless(name="Ada"))

        with pytest.raises(AppendConflict):
            store.append([{**named, "id": "b"}], unless(name="Ada"))
        appends.close()
