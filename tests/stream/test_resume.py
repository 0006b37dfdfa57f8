"""Resuming on PostgreSQL with a filter: every match once, in order, without reading the rest."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.store.support import load, stored

from penstock.base.on_postgres import open_pool
from penstock.envelope.envelope import Severity, Stored
from penstock.registry.registry import Registry
from penstock.store.on_postgres import EventReader
from penstock.store.onward.reach import Stretch
from penstock.store.query import EventQuery, matches
from penstock.stream.frames import Frame
from penstock.stream.hub import Hub
from penstock.stream.session import converse

TYPES = ("ISSUE.OPENED", "ISSUE.CLOSED", "ISSUES.MOVED", "a.b", "a.b.c")
FILTERS: dict[str, dict[str, Any]] = {
    "all": {},
    "a rare tag": {"tags": (("issueId", "7"),)},
    "a glob": {"types": ("ISSUE.*",)},
    "two globs": {"types": ("a.**", "*.MOVED")},
    "a type and a tag": {"types": ("a.b",), "tags": (("mode", "m1"),)},
    "a correlation": {"correlation_id": "req-3"},
    "a source": {"sources": ("s1",)},
    "severities": {"severities": (Severity.ERROR, Severity.INFO)},
    "nothing there": {"types": ("b.*",)},
}


class Counting:
    """The log of another reader; it counts what resuming clients read of it."""

    def __init__(self, reader: EventReader) -> None:
        self._reader = reader
        self.pages = 0
        self.events = 0

    def after(self, position: int, limit: int) -> list[Stored]:
        return self._reader.after(position, limit)

    def matching(self, query: EventQuery, *, after: int, until: int, limit: int) -> Stretch:
        found = self._reader.matching(query, after=after, until=until, limit=limit)
        self.pages += 1
        self.events += len(found.events)
        return found

    def head(self) -> int:
        return self._reader.head()


@pytest.fixture
def log(database: str) -> Iterator[Counting]:
    with (
        open_pool(database, "penstock_reader", size_max=3) as pool,
        open_pool(database, "penstock_ingest", size_max=1) as all_pool,
    ):
        yield Counting(EventReader(pool, all_pool, cursor_key=b"k" * 32))


def some(first: int, count: int, rng: random.Random) -> list[Stored]:
    """Events of two tenants with everything there is to filter by."""
    return [
        stored(
            n, tenant_id=rng.choice(("acme", "acme", "other")), type=rng.choice(TYPES),
            source=f"s{n % 5}", severity=rng.choice(tuple(Severity)),
            correlation_id=rng.choice((None, f"req-{rng.randrange(60)}")),
            tags={"mode": f"m{n % 2}", "issueId": str(rng.randrange(200))},
        )
        for n in range(first, first + count)
    ]  # fmt: skip


async def resume(hub: Hub, query: EventQuery, after: int, last: int) -> tuple[list[int], int]:
    """Follow until `last` was passed: the positions of events, and how many came before live."""
    await hub.admit("t", after)
    subscription = hub.subscribe(query, after=after)
    seen: list[int] = []
    old: list[int] = []

    async def write(frame: Frame) -> None:
        if frame.type == "caught.up":
            old.append(len(seen))
        if frame.type == "workflow.event.received" and frame.position is not None:
            seen.append(frame.position)

    async def gone() -> None:
        while not old or subscription.position < last:
            await asyncio.sleep(0.001)

    async with asyncio.timeout(30):
        await converse(subscription, write, gone(), heartbeat_s=5, now=hub.now)
    hub.unsubscribe(subscription)
    return seen, old[0]


def hub_over(log: Counting) -> Hub:
    registry = Registry([], mode="open")
    return Hub(log, registry=lambda: registry, still_valid=lambda _token: True, poll_s=0.005)


@pytest.mark.parametrize("said", FILTERS.values(), ids=FILTERS.keys())
def test_a_filtered_resume_gives_what_reading_all_and_filtering_gives(
    database: str, log: Counting, said: dict[str, Any]
) -> None:
    rng = random.Random(repr(said))
    made = some(1, 3_000, rng)
    load(database, made)
    late = some(3_001, 400, rng)
    query = EventQuery("acme", **said)

    async def test() -> list[tuple[int, list[int], int]]:
        hub = hub_over(log)
        await hub.start()
        writing = asyncio.create_task(write())
        starts = [0, *(rng.randrange(3_000) for _ in range(3)), 3_000]
        try:
            each = await asyncio.gather(*(resume(hub, query, a, 3_400) for a in starts))
        finally:
            await writing
            await hub.stop()
        return [(a, seen, old) for a, (seen, old) in zip(starts, each, strict=True)]

    async def write() -> None:
        for n in range(0, 400, 20):
            await asyncio.to_thread(load, database, late[n : n + 20])

    for after, seen, old in asyncio.run(test()):
        wanted = [e.position for e in made + late if e.position > after and matches(query, e)]
        assert seen == wanted
        assert old >= sum(after < position <= 3_000 for position in wanted), "caught up too soon"


@pytest.mark.parametrize("name", ["a rare tag", "a correlation", "nothing there"])
def test_a_rare_filter_reads_hardly_more_than_its_matches(
    database: str, log: Counting, name: str
) -> None:
    made = some(1, 5_000, random.Random(name))
    load(database, made)
    query = EventQuery("acme", **FILTERS[name])

    async def test() -> list[int]:
        hub = hub_over(log)
        await hub.start()
        try:
            return (await resume(hub, query, 0, 5_000))[0]
        finally:
            await hub.stop()

    wanted = [event.position for event in made if matches(query, event)]

    assert asyncio.run(test()) == wanted
    assert log.events == len(wanted)
    assert log.pages <= 3
