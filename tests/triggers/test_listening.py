"""A query means the same to a trigger as to the store and the live stream."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.support import stored
from tests.store.test_query_builder import events, queries
from tests.triggers.definitions import compiled

from penstock import Query, listening_to
from penstock.base.errors import QueryInvalid
from penstock.envelope.envelope import Stored
from penstock.store.query import matches
from penstock.triggers.predicate import document_of


def fires(query: Query, event: Stored) -> bool:
    """Whether a trigger that listens to the query wants the event."""
    trigger = compiled(**listening_to(query))
    envelope = event.envelope
    return trigger.wants(envelope.type, envelope.source) and trigger.predicates.test(
        document_of(event)
    )


def timeless(query: Query) -> Query:
    return query.between(None, None)


@given(queries(live=True).map(timeless), st.lists(events, max_size=10))
def test_a_trigger_wants_what_the_query_finds(query: Query, parts: list[Any]) -> None:
    made = [stored(n, tenant_id="default", **part) for n, part in enumerate(parts, 1)]

    wanted = [event.position for event in made if matches(query.of("default"), event)]

    assert [event.position for event in made if fires(query, event)] == wanted


@pytest.mark.parametrize("key", ["a.b", "it's", 'a"b', "ü", "a\\b", "$", "*", "0"])
def test_any_tag_key_can_be_listened_to(key: str) -> None:
    query = Query().tag(key, "v")

    assert fires(query, stored(1, tags={key: "v"}))
    assert not fires(query, stored(1, tags={key: "w"}))
    assert not fires(query, stored(1, tags={}))


@pytest.mark.parametrize(
    ("globs", "name", "wanted"),
    [
        (("a.*", "b.**"), "a.b", True),
        (("a.*", "b.**"), "a.b.c", False),
        (("a.*", "b.**"), "b.c.d", True),
        (("a.b", "c.*d"), "c.xd", True),
        (("a.b", "c.*d"), "cxxd.d", False),
        (("**.z", "c.d"), "x.y.z", True),
    ],
)
def test_several_types_and_globs_are_alternatives(
    globs: tuple[str, ...], name: str, wanted: bool
) -> None:
    query, event = Query().type(*globs), stored(1, type=name)

    assert matches(query.of("default"), event) is wanted
    assert fires(query, event) is wanted


def test_it_is_short_where_a_trigger_has_a_word_of_its_own() -> None:
    query = Query().type("ISSUE.*").source("tracker.api").tag("issueId", "42")

    assert listening_to(query) == {
        "eventType": "ISSUE.*",
        "eventSource": "tracker.api",
        "predicates": [{"path": '$.tags["issueId"]', "operator": "equals", "value": "42"}],
    }
    assert listening_to(Query()) == {"eventType": "**"}


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        (Query().between("2026-01-01T00:00:00Z", None), "from"),
        (Query().between(None, "2026-01-01T00:00:00Z"), "to"),
        (Query().as_of(7), "asOf"),
        (Query().as_of("2026-01-01T00:00:00Z"), "asOf"),
        (Query().jsonpath("$.n > 1"), "jsonPath"),
    ],
)
def test_what_a_trigger_cannot_ask_is_refused(query: Query, parameter: str) -> None:
    with pytest.raises(QueryInvalid) as refused:
        listening_to(query)

    assert refused.value.faults[0].pointer.endswith(parameter) or parameter in str(refused.value)


def test_more_comparisons_than_a_trigger_takes_are_refused() -> None:
    query = Query()
    for n in range(26):
        query = query.tag(f"k{n}", "v")

    with pytest.raises(QueryInvalid, match="at most 25 comparisons"):
        listening_to(query)
