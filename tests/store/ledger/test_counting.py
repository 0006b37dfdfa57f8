"""What was appended is counted by source later, and nobody can tell."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from tests.store.append.support import NOW, event, on_postgres, registry

from penstock.base.on_postgres import open_pool
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject
from penstock.ingress.lot import Judged, Lot
from penstock.ingress.pipeline import judge
from penstock.ingress.rows import write
from penstock.ingress.verdict import Arrival
from penstock.store.append import on_postgres as appending
from penstock.store.intake.on_postgres import PostgresIntake
from penstock.store.ledger.account import SourceLine
from penstock.store.ledger.on_postgres import LedgerReader
from penstock.transport.on_disk import Pending


def sources(dsn: str) -> dict[str, SourceLine]:
    with open_pool(dsn, "penstock_ingest", size_max=1) as pool:
        report = LedgerReader(pool, lambda: Pending(0, 0, [], None, {}, {})).read()
    assert report.unexplained == 0
    assert sum(each.stored for each in report.sources) == report.stored
    return {each.source: each for each in report.sources}


def counted(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        ((position,),) = connection.execute("SELECT counted FROM ledger_totals").fetchall()
    assert isinstance(position, int)
    return position


def count(dsn: str, upto: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT count_appended(%s)", (upto,))


def take_in(dsn: str, events: Sequence[JsonObject]) -> None:
    arrival = Arrival(NOW, "unused", tenant_id="acme")
    judged = [Judged(raw, judge(raw, arrival, registry())) for raw in map(encode, events)]
    PostgresIntake(dsn).settle(Lot(writer="w", messages=write(judged)))


def test_the_account_is_the_same_before_and_after_it_is_counted(database: str) -> None:
    late = (NOW - timedelta(hours=1)).isoformat()
    with on_postgres(database) as appends:
        store = appends.of("acme")
        store.append([event("a"), event("b", source="other.office", occurredAt=late)])
        store.append([event("c")])
        before = sources(database)
        assert counted(database) == 0

        count(database, 3)
        assert (sources(database), counted(database)) == (before, 3)
        count(database, 2)
        assert (sources(database), counted(database)) == (before, 3), "nothing is counted twice"

        store.append([event("d", source="third.office")])

    after = sources(database)
    assert {name: line.stored for name, line in after.items()} == {
        "box.office": 2, "other.office": 1, "third.office": 1,
    }  # fmt: skip
    assert after["other.office"].lag_max_ms >= 3_600_000


def test_a_lot_of_the_ingress_counts_the_appends_before_it(database: str) -> None:
    with on_postgres(database) as appends:
        appends.of("acme").append([event("a"), event("b", source="other.office")])
        take_in(database, [event("c"), event("d", source="third.office")])
        assert counted(database) == 4
        appends.of("acme").append([event("e", source="third.office")])
        take_in(database, [event("c")])

    found = sources(database)
    assert counted(database) == 5
    assert {name: (each.stored, each.duplicates) for name, each in found.items()} == {
        "box.office": (2, 1), "other.office": (1, 0), "third.office": (2, 0),
    }  # fmt: skip


def test_a_repeat_is_counted_for_a_source_that_is_not_counted_yet(database: str) -> None:
    with on_postgres(database) as appends:
        for _ in range(3):
            appends.of("acme").append([event("a")])

    assert counted(database) == 0
    found = sources(database)["box.office"]
    assert (found.stored, found.duplicates) == (1, 2)
    count(database, 1)
    assert sources(database)["box.office"] == found


def test_now_and_then_a_log_has_its_appends_counted(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appending, "_COUNTED", 10)
    with on_postgres(database) as appends:
        store = appends.of("acme")
        seen = set()
        for n in range(1, 26):
            store.append([event(f"e{n}")])
            seen.add(counted(database))
        assert seen == {0, 10, 20}
        store.append([event(f"m{n}") for n in range(6)])
        assert counted(database) == 31

    assert sources(database)["box.office"].stored == 31


def test_counting_and_taking_in_and_repeating_never_wait_for_each_other_in_a_circle(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appending, "_COUNTED", 1)
    names = [f"office.{n}" for n in range(5)]

    def appending_again() -> None:
        with on_postgres(database) as appends:
            for n in range(40):
                said = [event(f"a{n}.{name}", source=name) for name in names]
                appends.of("acme").append(said)
                appends.of("acme").append(said[::-1])

    def taking_in() -> None:
        for n in range(40):
            take_in(database, [event(f"t{n}.{name}", source=name) for name in reversed(names)])

    def counting() -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            for _ in range(200):
                connection.execute("SELECT count_appended(position) FROM head")

    with ThreadPoolExecutor(3) as pool:
        for each in [pool.submit(work) for work in (appending_again, taking_in, counting)]:
            each.result(60)

    found = sources(database)
    assert {name: (found[name].stored, found[name].duplicates) for name in names} == dict.fromkeys(
        names, (80, 40)
    )
