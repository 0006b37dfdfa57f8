"""Measure conditional appends beside the DCB recorder of `eventsourcing`, on the same server.

Both get the same client threads, one event of the same size and tags each time, and a condition
that nothing carries its first tag. They take turns, so that whatever else the machine does harms
all alike; a ratio is that of the medians. The recorder is measured with the connections that its
maker gives it, a datastore's (one) and a factory's (five, and ten more when they are busy), and the
better one counts. With two connections, which suit it best here, it is faster still: `best_pool_…`.

Both logs hold 100,000 events, with the statistics that autovacuum gathers of them within a minute:
that is how a log is met with. On a log that was made a moment ago the recorder is faster, until its
statistics have it plan every check anew; `new_log_…` says by how much, for one client.

What a recorder is given is written already; so is, for the figures with a bar, what our log is
given: judged, hashed and ready. `store_…` is the whole public call, judging included. What one
client can do is bounded by the disk: `bare_insert_…` says by how much, on this machine and now.
"""

from __future__ import annotations

import gc
import itertools
import random
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from penstock.base.clock import SystemClock
from penstock.base.on_postgres import ensure_database, open_pool
from penstock.base.settings import Settings
from penstock.catalog.vocabularies import ALL
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.house import Database, prepare_database
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.store.append.appends import Appends
from penstock.store.append.condition import Condition, Criterion
from penstock.store.append.judging import Calling, Said
from penstock.store.append.on_postgres import PostgresLog

CLIENTS = 32
_TURNS = {1: (60, 0.1), CLIENTS: (15, 0.4)}  # of so many seconds; a crowd takes a while to form
_WARM = 2_000  # appends; a recorder's first ones take it half as long again
_FILL = 100_000
_LOT = 500  # events of one call, while a log is filled
_AS_MADE = ((1, 0), (5, 10))  # connections, and how many more when they are busy
_TUNED = (2, 0)
_TYPE = "metastore.record.updated"
_PAYLOAD: JsonObject = {
    "namespace": "feature-flags", "key": "frontend-search", "version": 7,
    "record": {"owner": "data-team", "note": "x" * 80},
}  # fmt: skip
Tags = dict[str, str]
Call = Callable[[], object]
Make = Callable[[Tags, list[str]], Call]  # an event's tags, and those that its condition names
Fill = Callable[[list[Tags]], object]  # the tags of some events, to be appended at once
_numbers = itertools.count()


class Contender(NamedTuple):
    """Whoever keeps a log."""

    dsn: str
    make: Make
    fill: Fill


def measure_clients(folder: Path) -> dict[str, float]:
    """Appends per second of 32 clients and of one, and their ratios to the recorder's."""
    with ExitStack() as stack:
        database = _database(folder, stack)
        log, store = _penstock(database, stack)
        recorders = [_recorder(database, pool, stack) for pool in (_TUNED, *_AS_MADE)]
        tuned, *as_made = (each.make for each in recorders)
        lone = [log.make, store, _bare_insert(database, stack), *as_made]
        for make in lone:
            _rate(make, 1, _WARM, ["issueId"])
        new = _compete(lone, 1)
        for contender in (log, *recorders):
            _fill(contender)
        # One client first: as fast as 32 are, ours would hold far more than theirs by then.
        one = _compete(lone, 1)
        many = _compete([log.make, store, tuned, *as_made], CLIENTS)
    return {
        "events": _FILL,
        "clients_32_per_s": round(many[0]),
        "store_clients_32_per_s": round(many[1]),
        "recorder_clients_32_per_s": round(max(many[3:])),
        "ratio_clients_32": round(many[0] / max(many[3:]), 1),
        "store_ratio_clients_32": round(many[1] / max(many[3:]), 1),
        "best_pool_clients_32_per_s": round(many[2]),
        "best_pool_ratio_clients_32": round(many[0] / many[2], 1),
        "client_1_per_s": round(one[0]),
        "store_client_1_per_s": round(one[1]),
        "recorder_client_1_per_s": round(max(one[3:])),
        "bare_insert_client_1_per_s": round(one[2]),
        "ratio_client_1": round(one[0] / max(one[3:]), 2),
        "store_ratio_client_1": round(one[1] / max(one[3:]), 2),
        "new_log_client_1_per_s": round(new[0]),
        "new_log_recorder_client_1_per_s": round(max(new[3:])),
        "new_log_ratio_client_1": round(new[0] / max(new[3:]), 2),
    }


def measure_rare_and_hot(folder: Path) -> dict[str, float]:
    """Appends on a rare and a hot tag at 100,000 events, by one client, beside the recorder's."""
    with ExitStack() as stack:
        database = _database(folder, stack)
        log, _ = _penstock(database, stack)
        recorder = _recorder(database, _AS_MADE[0], stack)
        _fill(log)
        _fill(recorder)
        rates = _compete([log.make, recorder.make], 1, keys=["issueId", "mode"])
    return {
        "events": _FILL,
        "rare_and_hot_per_s": round(rates[0]),
        "recorder_rare_and_hot_per_s": round(rates[1], 1),
        "ratio_rare_and_hot": round(rates[0] / rates[1], 1),
    }


def _database(folder: Path, stack: ExitStack) -> Database:
    database = prepare_database(Settings(data_dir=folder / "data"))
    stack.callback(database.leave)
    return database


def _penstock(database: Database, stack: ExitStack) -> tuple[Contender, Make]:
    """The log, given what is judged already, and the store as programs use it."""
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    pool = stack.enter_context(open_pool(database.dsn, "penstock_reader", size_max=2))
    log = PostgresLog(database.dsn, pool)
    appends = Appends(log, registry=book.current, clock=SystemClock())
    stack.callback(appends.close)
    calling, store, append = Calling(), appends.of(), appends.coordinator.append

    def event(tags: Tags) -> JsonValue:
        return {"type": _TYPE, "source": "metastore.api", "payload": _PAYLOAD, "tags": {**tags}}

    def said(tags: Tags, keys: list[str]) -> tuple[list[JsonValue], Condition]:
        criterion = Criterion(tags=tuple((key, tags[key]) for key in keys))
        return [event(tags)], Condition((criterion,))

    def to_log(tags: Tags, keys: list[str]) -> Call:
        request = appends.prepare(Said(calling, *said(tags, keys)))
        return lambda: append(request)

    def to_store(tags: Tags, keys: list[str]) -> Call:
        return lambda: store.append(*said(tags, keys))

    def fill(lot: list[Tags]) -> object:
        return store.append([event(tags) for tags in lot])

    return Contender(database.dsn, to_log, fill), to_store


def _recorder(database: Database, pool: tuple[int, int], stack: ExitStack) -> Contender:
    # Not among what the tests need: `pip install -r requirements/bench.txt`.
    from eventsourcing.dcb.api import DCBAppendCondition, DCBEvent, DCBQuery, DCBQueryItem
    from eventsourcing.dcb.postgres_tt import PostgresDCBRecorderTT
    from eventsourcing.postgres import PostgresDatastore

    size, overflow = pool
    name = f"recorder_{size}_{overflow}"
    ensure_database(database.dsn, name)
    info = conninfo_to_dict(database.dsn)
    datastore = PostgresDatastore(
        dbname=name, host=str(info["host"]), port=str(info.get("port", 5432)),
        user=str(info["user"]), password=str(info.get("password", "")), pool_size=size,
        max_overflow=overflow, connect_timeout=60,
    )  # fmt: skip
    recorder = PostgresDCBRecorderTT(datastore)
    recorder.create_table()
    stack.callback(datastore.close)

    def event(tags: Tags) -> DCBEvent:
        return DCBEvent(_TYPE, encode(_PAYLOAD), [f"{key}:{tags[key]}" for key in tags])

    def make(tags: Tags, keys: list[str]) -> Call:
        query = DCBQuery([DCBQueryItem([], [f"{key}:{tags[key]}" for key in keys])])
        said, condition = [event(tags)], DCBAppendCondition(query)
        return lambda: recorder.append(said, condition)

    def fill(lot: list[Tags]) -> object:
        return recorder.append([event(tags) for tags in lot])

    return Contender(make_conninfo(database.dsn, dbname=name), make, fill)


def _bare_insert(database: Database, stack: ExitStack) -> Make:
    """One row into a table without an index: what a durable commit costs here at the least."""
    connection = stack.enter_context(psycopg.connect(database.dsn, autocommit=True))
    connection.execute("CREATE TABLE bare_insert (data bytea)")
    connection.pgconn.prepare(b"bare", b"INSERT INTO bare_insert VALUES ($1)")
    data = encode(_PAYLOAD)
    return lambda _tags, _keys: lambda: connection.pgconn.exec_prepared(b"bare", [data])


def _compete(makes: list[Make], clients: int, keys: list[str] | None = None) -> list[float]:
    """The median rate of each; a first turn shows how much each can do in a moment."""
    keys = keys or ["issueId"]
    times, turn_s = _TURNS[clients]
    counts = [max(2, round(_rate(make, clients, 8, keys) * turn_s / clients)) for make in makes]
    rates: list[list[float]] = [[] for _ in makes]
    turns, chance = list(enumerate(makes)), random.Random(4)
    for _ in range(times):
        chance.shuffle(turns)  # so that nobody is always behind the same one
        for n, make in turns:
            rates[n].append(_rate(make, clients, counts[n], keys))
    return [statistics.median(each) for each in rates]


def _rate(make: Make, clients: int, count: int, keys: list[str]) -> float:
    """Appends per second of so many clients, so many each."""
    calls = [
        [make({"issueId": f"i{next(_numbers)}", "mode": "dev"}, keys) for _ in range(count)]
        for _ in range(clients)
    ]
    return clients * count / _seconds(calls)


def _seconds(calls: list[list[Call]]) -> float:
    """How long the clients take together; a lone one is this very thread."""
    gc.collect()
    gc.disable()  # what was made beforehand would be looked through again and again
    try:
        return _in_turn(calls[0]) if len(calls) == 1 else _at_once(calls)
    finally:
        gc.enable()


def _in_turn(calls: list[Call]) -> float:
    began = time.perf_counter()
    for call in calls:
        call()
    return time.perf_counter() - began


def _at_once(calls: list[list[Call]]) -> float:
    start = threading.Barrier(len(calls) + 1)

    def client(mine: list[Call]) -> None:
        start.wait()
        _in_turn(mine)

    threads = [threading.Thread(target=client, args=(mine,)) for mine in calls]
    for thread in threads:
        thread.start()
    start.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


def _fill(contender: Contender) -> None:
    """A log with one hot tag on everything, and known to the planner as autovacuum makes it."""
    for start in range(0, _FILL, _LOT):
        lot = range(start, start + _LOT)
        contender.fill([{"issueId": f"f{n % 30_000}", "mode": "dev"} for n in lot])
    with psycopg.connect(contender.dsn, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
