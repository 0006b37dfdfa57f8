"""However many write at once, a boundary has one winner, and the log no gap."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
from tests.store.append.support import criterion, event, on_postgres, unless

from penstock.base.errors import AppendConflict, StoreUnavailable
from penstock.base.on_postgres import open_pool
from penstock.store.append.appends import EventStore
from penstock.store.append.condition import Condition
from penstock.store.on_postgres import EventReader

RACERS, ROUNDS = 8, 500
SEATS = (criterion("seat.booked"),)
CUT = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND query LIKE '%append_%'
            AND pid <> pg_backend_pid()"""
WRITERS, APPENDS, EVENTS = 64, 63, 25  # 100,800 events


def test_of_eight_racers_on_one_boundary_exactly_one_wins_each_of_500_rounds(database: str) -> None:
    start = threading.Barrier(RACERS)

    def race(store: EventStore, racer: int) -> list[int]:
        won = []
        for n in range(ROUNDS):
            start.wait(30)
            try:
                store.append([event(f"{n}-{racer}", tags={"round": str(n)})], unless(round=str(n)))
                won.append(n)
            except AppendConflict as refused:
                assert len(refused.positions) == 1
        return won

    with ExitStack() as stack:
        # Two processes would have a coordinator each, and race for the head of the log.
        stores = [stack.enter_context(on_postgres(database)).of("acme") for _ in range(2)]
        pool = stack.enter_context(ThreadPoolExecutor(RACERS))
        races = [pool.submit(race, stores[racer % 2], racer) for racer in range(RACERS)]
        wins = sorted(n for each in races for n in each.result())
        found = stores[0].read((criterion("seat.booked"),))

    assert wins == list(range(ROUNDS))
    assert [e.position for e in found.events] == list(range(1, ROUNDS + 1))


def test_accounts_that_are_read_decided_and_appended_to_at_once_never_go_below_zero(
    database: str,
) -> None:
    accounts, spenders, start = 4, 8, 10

    def spend(store: EventStore, spender: int) -> int:
        spent = 0
        for n in range(40):
            account = str((spender + n) % accounts)
            found = store.read((criterion(account=account),))
            if len(found.events) >= start:
                continue
            condition = Condition((criterion(account=account),), found.after)
            try:
                store.append([event(f"{spender}-{n}", tags={"account": account})], condition)
                spent += 1
            except AppendConflict:
                pass
        return spent

    with ExitStack() as stack:
        stores = [stack.enter_context(on_postgres(database)).of("acme") for _ in range(2)]
        pool = stack.enter_context(ThreadPoolExecutor(spenders))
        spent = list(pool.map(lambda n: spend(stores[n % 2], n), range(spenders)))
        balances = [
            len(stores[0].read((criterion(account=str(n)),)).events) for n in range(accounts)
        ]

    assert sum(spent) == sum(balances)
    assert max(balances) <= start
    assert sum(spent) >= start


def test_a_tailing_reader_sees_what_64_writers_append_without_gap_or_duplicate_in_order(
    database: str,
) -> None:
    total = WRITERS * APPENDS * EVENTS
    seen: list[tuple[int, str]] = []
    given_up = threading.Event()

    def write(store: EventStore, writer: int) -> None:
        for n in range(APPENDS):
            batch = [event(f"{writer}-{n}-{i}") for i in range(EVENTS)]
            positions = store.append(batch, unless(writer=f"{writer}-{n}")).positions
            assert positions == tuple(range(positions[0], positions[0] + EVENTS))

    def tail(reader: EventReader) -> None:
        position = 0
        while len(seen) < total and not given_up.is_set():
            for stored in reader.after(position, 2_000):
                position = stored.position
                seen.append((position, stored.envelope.id))

    with ExitStack() as stack:
        reading = stack.enter_context(open_pool(database, "penstock_reader", size_max=1))
        everything = stack.enter_context(open_pool(database, "penstock_ingest", size_max=1))
        stores = [stack.enter_context(on_postgres(database)).of("acme") for _ in range(2)]
        tailing = threading.Thread(
            target=tail, args=(EventReader(reading, everything, cursor_key=b"k" * 32),)
        )
        tailing.start()
        try:
            with ThreadPoolExecutor(WRITERS) as pool:
                for done in [pool.submit(write, stores[n % 2], n) for n in range(WRITERS)]:
                    done.result()
            tailing.join(30)
        finally:
            given_up.set()
            tailing.join(10)

    assert [position for position, _ in seen] == list(range(1, total + 1))
    assert len({event_id for _, event_id in seen}) == total
    last: dict[str, tuple[int, int]] = {}
    for _, event_id in seen:
        writer, n, i = event_id.split("-")
        assert last.get(writer, (-1, -1)) < (int(n), int(i))
        last[writer] = (int(n), int(i))


def test_a_connection_that_breaks_again_and_again_stores_nothing_twice(database: str) -> None:
    """Whoever is told that its append is stored finds it there once, under the position it got."""
    told: dict[str, int] = {}
    is_over = threading.Event()

    def write(store: EventStore, writer: int) -> None:
        for n in range(60):
            name = f"{writer}-{n}"
            for _ in range(50):
                try:
                    found = store.append([event(name, tags={"seat": name})], unless(seat=name))
                except StoreUnavailable:
                    continue  # the same again, with the same id, as its remedy says
                told[name] = found.after
                break

    def cut() -> int:
        with psycopg.connect(database, autocommit=True) as connection:
            return sum(
                connection.execute(CUT).rowcount for _ in range(20) if not is_over.wait(0.02)
            )

    with on_postgres(database) as appends, ThreadPoolExecutor(13) as pool:
        cutting = pool.submit(cut)
        writing = [pool.submit(write, appends.of("acme"), writer) for writer in range(12)]
        try:
            for each in writing:
                each.result(120)
        finally:
            is_over.set()
        cuts = cutting.result(20)
        stored = {e.envelope.id: e.position for e in appends.of("acme").read(SEATS).events}

    assert cuts > 0
    assert told == stored
    assert sorted(stored.values()) == list(range(1, 12 * 60 + 1))
