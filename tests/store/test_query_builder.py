"""A query that a program builds means the same to the store, over HTTP and on the live stream."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.support import KEY, NOON, load, stored
from tests.store.test_twins_agree import GLOBS, REQUESTS, SOURCES, TYPES

from penstock.base.errors import QueryInvalid
from penstock.envelope.envelope import Severity, Stored
from penstock.store.in_memory import EventsInMemory
from penstock.store.on_postgres import EventReader
from penstock.store.query import EventQuery, Query, matches, read_query
from penstock.stream.filter import read_filter

_positions = itertools.count(1)
_tenants = itertools.count(1)
instants = st.integers(0, 40).map(lambda n: NOON + timedelta(milliseconds=250 * n, microseconds=n))
tags = st.dictionaries(st.sampled_from(("userId", "mode")), st.sampled_from(("u1", "a:b")))
events = st.fixed_dictionaries(
    {
        "type": st.sampled_from(TYPES),
        "source": st.sampled_from(SOURCES),
        "occurred_at": instants,
        "tags": tags,
        "correlation_id": st.none() | st.sampled_from(REQUESTS),
        "severity": st.sampled_from(tuple(Severity)),
        "payload": st.fixed_dictionaries({"n": st.integers(0, 3)}),
    }
)


@st.composite
def queries(draw: st.DrawFn, *, live: bool = False) -> Query:
    """A query built from random words."""
    query = Query().type(*draw(st.lists(st.sampled_from(TYPES + GLOBS), max_size=2)))
    query = query.source(*draw(st.lists(st.sampled_from(SOURCES), max_size=2)))
    query = query.severity(*draw(st.lists(st.sampled_from([str(s) for s in Severity]), max_size=2)))
    for key, value in draw(tags).items():
        query = query.tag(key, value)
    if draw(st.booleans()):
        query = query.correlation(draw(st.sampled_from(REQUESTS)))
    first, last = draw(st.none() | instants), draw(st.none() | instants)
    if first is None or last is None or first <= last:
        query = query.between(first, last)
    if not live and draw(st.booleans()):
        query = query.as_of(draw(st.integers(0, 60) | instants))
    return query


@given(queries())
def test_its_parameters_are_read_back_as_the_same_query(query: Query) -> None:
    asked, _, _ = read_query(query.parameters(), tenant_id="acme")

    assert asked == query.of("acme")
    assert asked.digest == query.of("acme").digest


@given(queries(live=True))
def test_the_live_stream_reads_it_as_the_same_query(query: Query) -> None:
    assert read_filter(query.parameters(), "acme") == query.of("acme")


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(events, max_size=20), st.lists(queries(), min_size=1, max_size=4))
def test_postgresql_the_twin_and_the_stream_choose_the_same_events(
    shared_database: str, shared_reader: EventReader, parts: list[Any], asked: list[Query]
) -> None:
    tenant = f"built-{next(_tenants)}"
    made = [stored(next(_positions), tenant_id=tenant, **part) for part in parts]
    load(shared_database, made)
    memory = EventsInMemory(made, cursor_key=KEY)

    for query in asked:
        value = query.of(tenant)
        wanted = [e for e in reversed(made) if matches(value, e)]
        assert shared_reader.page(value, limit=100).events == wanted
        assert memory.page(value, limit=100).events == wanted


@pytest.fixture
def made(database: str) -> list[Stored]:
    """Twenty events, a second apart."""
    events = [stored(n, tenant_id="acme", payload={"n": n}) for n in range(1, 21)]
    load(database, events)
    return events


@pytest.mark.parametrize("place", [0, 1, 7, 20, 99])
def test_as_of_a_position_later_events_do_not_exist(
    reader: EventReader, made: list[Stored], place: int
) -> None:
    page = reader.page(Query().as_of(place).of("acme"), limit=100)

    assert [e.position for e in page.events] == list(range(min(place, 20), 0, -1))


def test_as_of_an_instant_is_what_had_been_received_by_then(
    reader: EventReader, made: list[Stored]
) -> None:
    for event in (made[0], made[6], made[19]):
        page = reader.page(Query().as_of(event.received_at).of("acme"), limit=100)
        assert page.events[0] == event
    before = made[0].received_at - timedelta(seconds=1)
    assert reader.page(Query().as_of(before).of("acme")).events == []


def test_a_cursor_goes_on_through_the_past_and_is_of_no_other_moment(
    reader: EventReader, made: list[Stored]
) -> None:
    query = Query().as_of(7).of("acme")
    first = reader.page(query, limit=3)
    second = reader.page(query, limit=3, cursor=first.next_cursor)

    assert [e.position for e in first.events + second.events] == [7, 6, 5, 4, 3, 2]
    with pytest.raises(QueryInvalid):
        reader.page(Query().as_of(8).of("acme"), cursor=first.next_cursor)


def test_the_issues_own_example_is_understood(reader: EventReader, made: list[Stored]) -> None:
    query = (
        Query()
        .type("metastore.*.updated")
        .between(NOON, NOON + timedelta(seconds=12))
        .jsonpath("$.n > 10")
        .of("acme")
    )

    assert [e.position for e in reader.page(query).events] == [12, 11]


def test_words_add_up_and_leave_the_query_they_were_said_of_alone() -> None:
    broad = Query().type("a.b")
    narrow = broad.type("c.d", "a.b").tag("k", "v")

    assert broad.of("acme") == EventQuery("acme", types=("a.b",))
    assert narrow.of("acme") == EventQuery("acme", types=("a.b", "c.d"), tags=(("k", "v"),))


def test_instants_are_compared_in_utc_to_the_millisecond() -> None:
    at = datetime(2026, 3, 1, 14, 0, 0, 123_456, tzinfo=timezone(timedelta(hours=2)))

    query = Query().between(at, at).of("acme")

    assert query.occurred_from == datetime(2026, 3, 1, 12, 0, 0, 123_000, tzinfo=UTC)
    assert query.occurred_to == datetime(2026, 3, 1, 12, 0, 0, 123_999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("build", "parameter"),
    [
        (lambda: Query().type("a b"), "type"),
        (lambda: Query().type(""), "type"),
        (lambda: Query().type(*[f"a.b{n}" for n in range(51)]), "type"),
        (lambda: Query().source("\0"), "source"),
        (lambda: Query().severity("loud"), "severity"),
        (lambda: Query().tag("a:b", "x"), "tag.a:b"),
        (lambda: Query().tag("a", ""), "tag.a"),
        (lambda: Query().correlation(""), "correlationId"),
        (lambda: Query().between("yesterday", None), "from"),
        (lambda: Query().between(None, datetime(2026, 1, 1)), "to"),  # noqa: DTZ001
        (lambda: Query().between("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"), "from"),
        (lambda: Query().jsonpath("n"), "jsonPath"),
        (lambda: Query().as_of("soon"), "asOf"),
        (lambda: Query().as_of(-1), "asOf"),
    ],
)
def test_a_word_that_cannot_be_meant_is_refused_as_over_http(build: Any, parameter: str) -> None:
    with pytest.raises(QueryInvalid) as refused:
        build()

    assert refused.value.parameter == parameter
