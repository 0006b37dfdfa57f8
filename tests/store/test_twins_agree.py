"""The store in memory is the specification; the one on PostgreSQL gives the same answers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.support import KEY, NOON, load, stored

from penstock.base.errors import QueryInvalid
from penstock.base.on_postgres import Pool
from penstock.envelope.envelope import Severity, Stored
from penstock.store.in_memory import EventsInMemory
from penstock.store.on_postgres import EventReader, read_events
from penstock.store.onward.reach import Stretch
from penstock.store.query import EventQuery, Page, matches
from penstock.store.walk.choose import Walk, candidates
from penstock.store.walk.on_postgres import Reading, compose, find_types

TYPES = (
    "metastore.record.updated", "metastore.record.created", "metastore.record", "asset.produced",
    "CODE.MERGED.SUCCESS", "filestore.node.deleted", "filestore.nodes.x",
)  # fmt: skip
GLOBS = (
    "metastore.record.*", "metastore.**", "**", "*.produced", "file*.node*.*", "**.updated",
    "metastore.record.**", "nothing.*", "CODE.*.SUCCESS",
)  # fmt: skip
SOURCES = ("metastore.api", "metastore.worker", "/sensors/a,b", "z")
REQUESTS = ("req-1", "req-2", "REQ-1")
TAGS = {"userId": ("u1", "u2"), "mode": ("auto", "a:b"), "naïve": ("日本", "'\"\\")}
SEVERITIES = tuple(Severity)

_positions = itertools.count(1)
_tenants = itertools.count(1)


class Events(Protocol):
    """What both twins answer."""

    def page(self, query: EventQuery, *, limit: int = ..., cursor: str | None = ...) -> Page: ...
    def by_id(self, tenant_id: str, event_id: str) -> Stored | None: ...
    def after(self, position: int, limit: int, *, tenant_id: str | None = ...) -> list[Stored]: ...
    def matching(self, query: EventQuery, *, after: int, until: int, limit: int) -> Stretch: ...
    def head(self) -> int: ...


def _tags() -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries(
        {}, optional={key: st.sampled_from(values) for key, values in TAGS.items()}
    )


def _instants() -> st.SearchStrategy[Any]:
    return st.integers(0, 40).map(lambda n: NOON + timedelta(milliseconds=250 * n))


event_parts = st.fixed_dictionaries(
    {
        "type": st.sampled_from(TYPES),
        "source": st.sampled_from(SOURCES),
        "occurred_at": _instants(),
        "tags": _tags(),
        "correlation_id": st.none() | st.sampled_from(REQUESTS),
        "severity": st.sampled_from(SEVERITIES),
    }
)
query_parts = st.fixed_dictionaries(
    {},
    optional={
        "types": st.lists(st.sampled_from(TYPES + GLOBS), max_size=3).map(tuple),
        "sources": st.lists(st.sampled_from((*SOURCES, "other")), max_size=2).map(tuple),
        "correlation_id": st.sampled_from((*REQUESTS, "other")),
        "tags": _tags().map(lambda tags: tuple(tags.items())),
        "severities": st.lists(st.sampled_from(SEVERITIES), max_size=3).map(tuple),
        "occurred_from": _instants(),
        "occurred_to": _instants(),
    },
)


def make(tenant: str, parts: list[dict[str, Any]]) -> list[Stored]:
    return [stored(next(_positions), tenant_id=tenant, **part) for part in parts]


def pages(events: Events, query: EventQuery, limit: int) -> Iterator[Page]:
    page = events.page(query, limit=limit)
    yield page
    while page.next_cursor is not None:
        page = events.page(query, limit=limit, cursor=page.next_cursor)
        yield page


kept: list[Stored] = []
agreement = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@agreement
@given(
    parts=st.lists(event_parts, max_size=25),
    queries=st.lists(query_parts, min_size=1, max_size=6),
    limit=st.integers(1, 7),
)
def test_random_queries_get_the_same_pages(
    shared_database: str,
    shared_reader: EventReader,
    parts: list[dict[str, Any]],
    queries: list[dict[str, Any]],
    limit: int,
) -> None:
    tenant = f"tenant-{next(_tenants)}"
    made = make(tenant, parts)
    load(shared_database, made)
    kept.extend(made)
    memory = EventsInMemory(kept, cursor_key=KEY)

    for said in queries:
        query = EventQuery(tenant, **said)
        assert list(pages(shared_reader, query, limit)) == list(pages(memory, query, limit))
    for after in {0, made[0].position if made else 0, memory.head()}:
        assert shared_reader.after(after, 5, tenant_id=tenant) == memory.after(
            after, 5, tenant_id=tenant
        )
        assert shared_reader.after(after, 9) == memory.after(after, 9)


@agreement
@given(parts=st.lists(event_parts, max_size=15), said=query_parts)
def test_whichever_index_is_walked_the_answer_is_the_same(
    shared_database: str,
    shared_pool: Pool,
    parts: list[dict[str, Any]],
    said: dict[str, Any],
) -> None:
    tenant = f"walk-{next(_tenants)}"
    made = make(tenant, parts)
    load(shared_database, made)
    kept.extend(made)
    query = EventQuery(tenant, **said)
    wanted = [event for event in reversed(made) if matches(query, event)][:6]

    with Reading(shared_pool).tenant(tenant) as connection:
        types = find_types(connection, query)
        sources = tuple(query.sources) or SOURCES
        walks = [*candidates(query, types), Walk("log"), Walk("window"), Walk("source", sources)]
        for walk in walks:
            way = compose(query, types, walk, before=2**62)
            assert read_events(connection, way.sql, way.parameters | {"limit": 6}) == wanted
        by_regex = compose(query, None, Walk("log"), before=2**62)
        assert read_events(connection, by_regex.sql, by_regex.parameters | {"limit": 6}) == wanted


@pytest.fixture(params=["in memory", "on postgres"])
def events(request: pytest.FixtureRequest, database: str, reader: EventReader) -> Events:
    """Seven events of two tenants, in either twin."""
    made = [
        stored(n, tenant_id="acme" if n % 3 else "other", id="evt-1" if n == 6 else f"evt-{n}")
        for n in range(1, 8)
    ]
    if request.param == "in memory":
        return EventsInMemory(made, cursor_key=KEY)
    load(database, made)
    return reader


def test_a_page_is_the_newest_events_and_its_cursor_leads_on(events: Events) -> None:
    first = events.page(EventQuery("acme"), limit=3)
    second = events.page(EventQuery("acme"), limit=3, cursor=first.next_cursor)

    assert [e.position for e in first.events] == [7, 5, 4]
    assert (first.has_more, first.limit) == (True, 3)
    assert [e.position for e in second.events] == [2, 1]
    assert (second.has_more, second.next_cursor) == (False, None)


def test_a_full_last_page_has_nothing_more(events: Events) -> None:
    page = events.page(EventQuery("acme"), limit=5)

    assert (len(page.events), page.has_more, page.next_cursor) == (5, False, None)


def test_a_cursor_of_another_query_or_tenant_is_refused(events: Events) -> None:
    cursor = events.page(EventQuery("acme"), limit=1).next_cursor

    with pytest.raises(QueryInvalid):
        events.page(EventQuery("other"), cursor=cursor)
    with pytest.raises(QueryInvalid):
        events.page(EventQuery("acme", sources=("metastore.api",)), cursor=cursor)
    with pytest.raises(QueryInvalid):
        events.page(EventQuery("acme"), cursor="0" * 32)


def test_an_id_belongs_to_its_tenant(events: Events) -> None:
    mine, theirs = events.by_id("acme", "evt-1"), events.by_id("other", "evt-1")

    assert mine is not None
    assert mine.position == 1
    assert theirs is not None
    assert theirs.position == 6
    assert events.by_id("acme", "evt-3") is None


def test_an_id_that_nothing_has_finds_nothing(events: Events) -> None:
    for event_id in ("", "nothing", "a\0b", "\ud800", "x" * 10_000, "' OR 1=1"):
        assert events.by_id("acme", event_id) is None


def test_what_came_after_a_position_is_read_oldest_first(events: Events) -> None:
    assert [e.position for e in events.after(2, 3)] == [3, 4, 5]
    assert [e.position for e in events.after(2, 3, tenant_id="acme")] == [4, 5, 7]
    assert events.after(7, 3) == []
    assert events.head() == 7


def test_the_next_matches_come_oldest_first_up_to_a_position(events: Events) -> None:
    query = EventQuery("acme", types=("metastore.**",))

    full = events.matching(query, after=1, until=7, limit=3)
    short = events.matching(query, after=5, until=6, limit=3)

    assert ([e.position for e in full.events], full.through) == ([2, 4, 5], 5)
    assert (short.events, short.through) == ([], 6)


def test_the_next_events_come_the_same_way_without_a_filter(events: Events) -> None:
    full = events.matching(EventQuery("acme"), after=1, until=6, limit=3)
    short = events.matching(EventQuery("acme"), after=4, until=6, limit=3)

    assert ([e.position for e in full.events], full.through) == ([2, 4, 5], 5)
    assert ([e.position for e in short.events], short.through) == ([5], 6)
