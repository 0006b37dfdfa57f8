"""Measure conditional appends beside the DCB recorder of `eventsourcing`, on the same server.

Both get the same client threads, one event of the same size and tags each time, and a condition
that nothing carries its first tag. They take turns, a moment each, so that whatever else the
machine does harms both alike; a ratio is that of the medians. Ours judges, hashes and counts every
event on the way; the recorder stores bytes. It is measured with one connection and with its default
of five, and the better one counts.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from penstock.base.clock import SystemClock
from penstock.base.on_postgres import ensure_database, open_pool
from penstock.base.settings import Settings
from penstock.catalog.vocabularies import ALL
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonValue
from penstock.house import Database, prepare_database
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.store.append.appends import Appends, EventStore
from penstock.store.append.condition import Condition, Criterion
from penstock.store.append.on_postgres import PostgresLog

CLIENTS = 32
_TURNS = 7
_TURN_S = 1.0
_FILL = 100_000
Append = Callable[[dict[str, str], list[str]], object]  # tags, and the keys the condition names
_PAYLOAD: dict[str, JsonValue] = {
    "namespace": "feature-flags", "key": "frontend-search", "version": 7,
    "record": {"owner": "data-team", "note": "x" * 80},
}  # fmt: skip


def measure_clients(folder: Path) -> dict[str, float]:
    """Appends per second of 32 clients and of one, and their ratios to the recorder's."""
    with ExitStack() as stack:
        ours, peers = _contestants(folder, stack)
        many = _compete(ours, peers, CLIENTS)
        one = _compete(ours, peers, 1)
    return {
        "clients_32_per_s": round(many[0]),
        "recorder_clients_32_per_s": round(many[1]),
        "ratio_clients_32": round(many[0] / many[1], 1),
        "client_1_per_s": round(one[0]),
        "recorder_client_1_per_s": round(one[1]),
        "ratio_client_1": round(one[0] / one[1], 2),
    }


def measure_rare_and_hot(folder: Path) -> dict[str, float]:
    """Appends on a rare and a hot tag at 100,000 events, by one client, beside the recorder's."""
    with ExitStack() as stack:
        ours, peers = _contestants(folder, stack)
        _fill(ours)
        _fill(peers[0])
        rates = _compete(ours, peers[:1], 1, keys=["issueId", "mode"])
    return {
        "events": _FILL,
        "rare_and_hot_per_s": round(rates[0]),
        "recorder_rare_and_hot_per_s": round(rates[1], 1),
        "ratio_rare_and_hot": round(rates[0] / rates[1], 1),
    }


def _contestants(folder: Path, stack: ExitStack) -> tuple[Append, list[Append]]:
    database = prepare_database(Settings(data_dir=folder / "data"))
    stack.callback(database.leave)
    return _penstock(database, stack), [_recorder(database, size, stack) for size in (1, 5)]


def _penstock(database: Database, stack: ExitStack) -> Append:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    pool = stack.enter_context(open_pool(database.dsn, "penstock_reader", size_max=2))
    appends = Appends(
        PostgresLog(database.dsn, pool), registry=book.current, clock=SystemClock()
    )
    stack.callback(appends.close)
    store: EventStore = appends.of()

    def append(tags: dict[str, str], keys: list[str]) -> object:
        event: dict[str, JsonValue] = {
            "type": "metastore.record.updated", "source": "metastore.api", "payload": _PAYLOAD,
            "tags": {**tags},
        }  # fmt: skip
        criterion = Criterion(tags=tuple((key, tags[key]) for key in keys))
        return store.append([event], Condition((criterion,)) if keys else None)

    return append


def _recorder(database: Database, pool_size: int, stack: ExitStack) -> Append:
    # Not among what the tests need: `pip install -r requirements/bench.txt`.
    from eventsourcing.dcb.api import DCBAppendCondition, DCBEvent, DCBQuery, DCBQueryItem
    from eventsourcing.dcb.postgres_tt import PostgresDCBRecorderTT
    from eventsourcing.postgres import PostgresDatastore

    name = f"recorder_{pool_size}"
    ensure_database(database.dsn, name)
    info = conninfo_to_dict(database.dsn)
    datastore = PostgresDatastore(
        dbname=name, host=str(info["host"]), port=str(info.get("port", 5432)),
        user=str(info["user"]), password=str(info.get("password", "")), pool_size=pool_size,
        connect_timeout=60,
    )  # fmt: skip
    recorder = PostgresDCBRecorderTT(datastore)
    recorder.create_table()
    stack.callback(datastore.close)

    def append(tags: dict[str, str], keys: list[str]) -> object:
        event = DCBEvent("metastore.record.updated", encode(_PAYLOAD), _words(tags, tags))
        query = DCBQuery([DCBQueryItem([], _words(tags, keys))])
        return recorder.append([event], DCBAppendCondition(query) if keys else None)

    return append


def _words(tags: dict[str, str], keys: dict[str, str] | list[str]) -> list[str]:
    return [f"{key}:{tags[key]}" for key in keys]


def _compete(
    ours: Append, peers: list[Append], clients: int, keys: list[str] | None = None
) -> tuple[float, float]:
    """Our median rate, and that of the best peer."""
    contestants = [ours, *peers]
    rates: list[list[float]] = [[] for _ in contestants]
    for turn in range(_TURNS):
        for n, append in enumerate(contestants):
            rates[n].append(_rate(append, clients, f"{clients}-{turn}", keys or ["issueId"]))
    print(clients, [[round(r) for r in each] for each in rates])
    medians = [statistics.median(each) for each in rates]
    return medians[0], max(medians[1:])


def _rate(append: Append, clients: int, turn: str, keys: list[str]) -> float:
    counts = [0] * clients
    until = time.perf_counter() + _TURN_S

    def client(number: int) -> None:
        while time.perf_counter() < until:
            issue = f"{turn}-{number}-{counts[number]}"
            append({"issueId": issue, "mode": "dev"}, keys)
            counts[number] += 1

    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - began)


def _fill(append: Append) -> None:
    """The log with one hot tag on everything; eight clients, so that it takes less long."""
    numbers = iter(range(_FILL))
    turn = threading.Lock()

    def client() -> None:
        while True:
            with turn:
                number = next(numbers, None)
            if number is None:
                return
            append({"issueId": f"f{number % 30_000}", "mode": "dev"}, [])

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


__all__ = ["measure_clients", "measure_rare_and_hot", "psycopg"]
