"""Make appends and stores for tests: a registry of a few types, and both logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any

from penstock.base.clock import FixedClock
from penstock.base.on_postgres import open_pool
from penstock.envelope.envelope import JsonObject
from penstock.registry.book import RegistryBook
from penstock.registry.declare import EventType, Payload, Vocabulary
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.registry import Registry
from penstock.store.append.appends import Appends
from penstock.store.append.condition import Condition, Criterion
from penstock.store.append.in_memory import LogInMemory
from penstock.store.append.on_postgres import PostgresLog
from penstock.store.append.request import Log

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
