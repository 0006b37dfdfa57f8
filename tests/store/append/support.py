"""Make appends and stores for tests: a registry of a few types, and both logs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

import psycopg

from penstock.base.clock import FixedClock
from penstock.base.on_postgres import open_pool
from penstock.envelope.envelope import JsonObject
from penstock.registry.book import RegistryBook
from penstock.registry.declare import EventType, Payload, Vocabulary
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.registry import Registry
from penstock.store.append.appends import Appends
from penstock.store.append.condition import Condition, Criteria, Criterion
from penstock.store.append.coordinator import Coordinator
from penstock.store.append.in_memory import LogInMemory
from penstock.store.append.judging import Calling, Said
from penstock.store.append.on_postgres import PostgresLog
from penstock.store.append.request import Found, Log, Outcome, Outcomes, Request

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TYPES = ("seat.booked", "seat.released", "show.opened", "SHOW.CLOSED")


class Anything(Payload):
    """Whatever a test wants to say."""

    seat: str = ""
    n: int = 0


@cache
def registry() -> Registry:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare([Vocabulary("tests", tuple(EventType(name, Anything) for name in TYPES))])
    return book.current()


def event(
    event_id: str | None = None, event_type: str = "seat.booked", **fields: Any
) -> JsonObject:
    """An event in wire form; tags are given as `tags`."""
    named: JsonObject = {} if event_id is None else {"id": event_id}
    return {**named, "type": event_type, "source": "box.office", **fields}


def criterion(*types: str, **tags: str) -> Criterion:
    return Criterion(types, tuple(sorted(tags.items())))


def unless(*types: str, after: int | None = None, **tags: str) -> Condition:
    """The condition that nothing like this stands after a position."""
    return Condition((criterion(*types, **tags),), after)


def appends_on(log: Log) -> Appends:
    return Appends(log, registry=registry, clock=FixedClock(NOW))


@contextmanager
def on_postgres(dsn: str) -> Iterator[Appends]:
    """Appends to a database."""
    with open_pool(dsn, "penstock_reader", size_max=4) as pool:
        appends = appends_on(PostgresLog(dsn, pool))
        try:
            yield appends
        finally:
            appends.close()


@contextmanager
def in_memory() -> Iterator[Appends]:
    """Appends to a list."""
    appends = appends_on(LogInMemory(lambda: NOW))
    yield appends
    appends.close()


def said(name: str, *, show: str | None = None) -> Said:
    """An append on a boundary that is only its own, unless it says which one."""
    tags = {"show": show or name}
    return Said(Calling("acme"), [event(name, tags=tags)], unless(**tags))


def judge(several: Sequence[Said]) -> list[Request | Exception]:
    """Appends as they go to a log."""
    return appends_on(LogInMemory(lambda: NOW)).judge(several)


def prepare(each: Said) -> Request:
    """One append as it goes to a log."""
    return appends_on(LogInMemory(lambda: NOW)).prepare(each)


class SlowLog:
    """A log in memory whose commits wait until they are let go, and are counted."""

    def __init__(self) -> None:
        self.log = LogInMemory(lambda: NOW)
        self.batches: list[int] = []
        self.entered = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)
        self.broken: Callable[[], Exception] | None = None
        self.is_closed = False

    def commit(self, requests: Sequence[Request]) -> list[Outcome]:
        self.batches.append(len(requests))
        return self._answer(requests)

    def send(self, requests: Sequence[Request]) -> Outcomes:
        self.batches.append(len(requests))
        return partial(self._answer, requests)

    def _answer(self, requests: Sequence[Request]) -> list[Outcome]:
        self.entered.release()
        assert self.gate.acquire(timeout=20)
        if self.broken is not None:
            raise self.broken()
        return self.log.commit(requests)

    def read(self, tenant_id: str, criteria: Criteria, *, after: int, limit: int) -> Found:
        return self.log.read(tenant_id, criteria, after=after, limit=limit)

    def close(self) -> None:
        self.is_closed = True


def started(coordinator: Coordinator, count: int) -> None:
    """Wait until so many callers wait; the queue is looked at, not the clock."""
    for _ in range(10_000):
        if len(coordinator._waiting) == count:
            return
        threading.Event().wait(0.001)
    raise AssertionError("the callers did not arrive")


def wait_for_lock(dsn: str) -> None:
    """Return when somebody waits for the head."""
    with psycopg.connect(dsn, autocommit=True) as watching:
        for _ in range(5_000):
            row = watching.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                " AND datname = current_database()"
            ).fetchone()
            if row == (1,):
                return
    raise AssertionError("nobody waits for the head")


def insert_by_hand(connection: psycopg.Connection[Any], *, position: int, tag: str) -> None:
    """Write an event as another writer does, and move the head."""
    connection.execute(
        "INSERT INTO workflow_events (position, tenant_id, id, type, source, occurred_at, severity,"
        " severity_rule, content_hash, hash) VALUES (%s, 'acme', %s, 'seat.booked', 's', now(),"
        " 'info', 'default', '', '')",
        (position, f"by-hand-{position}"),
    )
    connection.execute("INSERT INTO event_tags VALUES ('acme', %s, %s)", (tag, position))
    connection.execute("UPDATE head SET position = %s", (position,))


def cut_connections(dsn: str) -> None:
    """End every other connection to the database."""
    with psycopg.connect(dsn, autocommit=True) as operator:
        operator.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
