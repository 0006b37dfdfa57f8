"""Going on from anywhere, by whichever way, gives what reading all and filtering gives."""

from __future__ import annotations

import itertools
import random
from datetime import timedelta
from typing import Any, Protocol

import pytest
from tests.store.support import KEY, NOON, load, stored

from penstock.envelope.envelope import Severity, Stored
from penstock.store.in_memory import EventsInMemory
from penstock.store.on_postgres import EventReader
from penstock.store.onward import reach as reaching
from penstock.store.onward.reach import Stretch
from penstock.store.query import EventQuery, matches

TYPES = ("ISSUE.OPENED", "ISSUE.CLOSED", "ISSUE", "ISSUES.MOVED", "asset.produced", "asset.x.y")
GLOBS = ("ISSUE.*", "ISSUE.**", "**", "*.produced", "asset.**", "ISS*.*", "nothing.*")
SOURCES = ("metastore.api", "metastore.worker", "/sensors/a,b", "z")
REQUESTS = ("req-1", "req-2", "REQ-1")
TAGS = {"userId": ("u1", "u2"), "mode": ("auto", "a:b"), "naïve": ("日本", "'\"\\")}
BOUNDS: dict[str, dict[str, int]] = {
    "as they are": {},
    "by index, a few entries at a time": {
        "_NEAR": 1, "_APART": 1, "ENTRIES_MAX": 6, "_ENTRIES_MIN": 2,
    },
    "by index, many values": {"_NEAR": 1, "_APART": 1, "ENTRIES_MAX": 3, "_ENTRIES_MIN": 3},
    "by the log, a few events at a time": {"_NEAR": 1, "_APART": 10**9, "FAR": 5},
}  # fmt: skip

_positions = itertools.count(1)


class Onward(Protocol):
    """What both twins answer."""

    def matching(self, query: EventQuery, *, after: int, until: int, limit: int) -> Stretch: ...


def make(rng: random.Random, tenant: str, count: int) -> list[Stored]:
    """Events of a tenant, with some of others among them."""
    return [
        stored(
            next(_positions), tenant_id=rng.choice((tenant, tenant, f"{tenant}-other")),
            type=rng.choice(TYPES), source=rng.choice(SOURCES), occurred_at=instant(rng),
            correlation_id=rng.choice((None, *REQUESTS)), severity=rng.choice(tuple(Severity)),
            tags=dict(some_tags(rng)),
        )
        for _ in range(count)
    ]  # fmt: skip


def ask(rng: random.Random, tenant: str) -> EventQuery:
    """One to three filters."""
    filters: dict[str, Any] = {
        "types": tuple(rng.sample(TYPES + GLOBS, rng.randint(1, 3))),
        "sources": tuple(rng.sample((*SOURCES, "other"), rng.randint(1, 2))),
        "correlation_id": rng.choice((*REQUESTS, "other")),
        "tags": some_tags(rng),
        "severities": tuple(rng.sample(tuple(Severity), rng.randint(1, 2))),
        "occurred_from": instant(rng),
        "occurred_to": instant(rng),
    }
    names = rng.sample(list(filters), rng.choice((1, 1, 2, 3)))
    return EventQuery(tenant, **{name: filters[name] for name in names})


def instant(rng: random.Random) -> Any:
    return NOON + timedelta(milliseconds=250 * rng.randrange(40))


def some_tags(rng: random.Random) -> tuple[tuple[str, str], ...]:
    return tuple((key, rng.choice(TAGS[key])) for key in rng.sample(list(TAGS), rng.randint(0, 2)))


def onward(events: Onward, query: EventQuery, after: int, until: int, limit: int) -> list[Stored]:
    """Everything that `matching` gives between two positions, page after page."""
    found: list[Stored] = []
    while after < until:
        page = events.matching(query, after=after, until=until, limit=limit)
        assert len(page.events) <= limit
        assert after < page.through <= until
        assert all(after < event.position <= page.through for event in page.events)
        found += page.events
        after = page.through
    return found


@pytest.fixture(params=BOUNDS)
def bounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How much is looked at for one page; with little, a small log takes many of them."""
    for name, bound in BOUNDS[request.param].items():
        monkeypatch.setattr(reaching, name, bound)
    return str(request.param)


@pytest.mark.parametrize("seed", range(12))
def test_the_answer_is_that_of_reading_all_and_filtering(
    bounds: str, shared_database: str, shared_reader: EventReader, seed: int
) -> None:
    rng = random.Random(seed)
    tenant = f"{bounds} {seed}"
    made = make(rng, tenant, 60)
    load(shared_database, made)
    memory = EventsInMemory(made, cursor_key=KEY)

    for _ in range(25):
        query, limit = ask(rng, tenant), rng.randint(1, 9)
        after = made[0].position - 1 + rng.choice((0, 0, rng.randrange(60)))
        until = made[-1].position - rng.choice((0, 0, rng.randrange(30)))
        wanted = [e for e in made if after < e.position <= until and matches(query, e)]
        assert onward(shared_reader, query, after, until, limit) == wanted, query
        assert onward(memory, query, after, until, limit) == wanted, query


@pytest.mark.parametrize("path", ["$.n > 3", "$.n ? (@ > 3)", "!($.n > 3)"])
@pytest.mark.parametrize("types", [(), ("ISSUE.*",), ("ISSUE.OPENED",)])
def test_going_on_with_a_json_path_gives_what_pages_give(
    database: str, reader: EventReader, path: str, types: tuple[str, ...]
) -> None:
    kinds = ("ISSUE.OPENED", "ISSUE.CLOSED", "ISSUES.OTHER")
    load(database, [stored(n, type=kinds[n % 3], payload={"n": n % 7}) for n in range(1, 60)])
    query = EventQuery("default", types=types, json_path=path)

    found = onward(reader, query, 0, 59, 2)

    assert 0 < len(found) < 59
    assert found == reader.page(query, limit=100).events[::-1]
