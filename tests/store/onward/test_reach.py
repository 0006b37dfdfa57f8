"""The way onward is the one that leads furthest for what there is to look at."""

from __future__ import annotations

import pytest
from tests.store.support import stored

from penstock.store.onward.reach import (
    ENTRIES_MAX,
    Reach,
    Span,
    Stretch,
    asks_for_all,
    choose,
    entries_of,
    exact_types,
    near,
    reach,
    stretch,
)
from penstock.store.query import EventQuery
from penstock.store.walk.choose import Walk

SPAN = Span(100, 1_100)


def test_a_page_that_is_full_reaches_its_last_event() -> None:
    events = [stored(101), stored(150)]

    assert stretch(events, SPAN, 2) == Stretch(events, 150)


def test_a_page_that_is_not_full_reaches_the_end_of_its_span() -> None:
    assert stretch([stored(101)], SPAN, 2).through == 1_100
    assert stretch([], SPAN, 2) == Stretch([], 1_100)


def test_common_events_are_looked_for_nearby_and_not_past_the_end() -> None:
    assert near(SPAN, 32) == Span(100, 228)
    assert near(SPAN, 256) == Span(100, 1_100) == near(SPAN, 1_000)


def test_whoever_comes_as_close_as_a_page_looks_at_all_of_it() -> None:
    assert all(near(Span(7, 7 + limit), limit).until == 7 + limit for limit in range(1, 300))


def test_values_with_few_entries_reach_the_end_of_the_span() -> None:
    assert reach(SPAN, [[300, 900], [], [200]], most=3) == Reach([200, 300, 900], 1_100)
    assert reach(SPAN, [], most=3) == Reach([], 1_100)


def test_a_value_with_more_entries_behind_reaches_its_last_one_only() -> None:
    assert reach(SPAN, [[300, 900], [150, 400]], most=2) == Reach([150, 300, 400], 400)


def test_an_event_that_two_values_lead_to_is_looked_at_once() -> None:
    assert reach(SPAN, [[300], [300]], most=2) == Reach([300], 1_100)


def test_many_values_together_reach_as_far_as_is_looked_at_in_all() -> None:
    every_other = [[n] for n in range(2, 4_000, 2)]

    found = reach(Span(0, 10_000), every_other, most=16)

    assert found.positions == list(range(2, 2 * ENTRIES_MAX + 1, 2))
    assert found.through == 2 * ENTRIES_MAX


@pytest.mark.parametrize(("values", "entries"), [(0, 512), (1, 512), (4, 128), (500, 16)])
def test_the_entries_to_look_at_are_shared_among_the_values(values: int, entries: int) -> None:
    walk = Walk("type", tuple(f"a.t{n}" for n in range(values)))

    assert entries_of(walk) == entries


def test_the_index_that_leads_furthest_for_each_event_is_taken() -> None:
    common, rare = Reach(list(range(101, 201)), 600), Reach([400, 800], 1_100)

    assert choose(SPAN, [common, rare]) == rare
    assert choose(SPAN, [common]) == common
    assert choose(SPAN, [rare, Reach([], 900)]) == Reach([], 900)


def test_the_log_is_taken_where_an_index_would_lead_to_most_of_it() -> None:
    assert choose(SPAN, [Reach(list(range(101, 613)), 612)]) is None
    assert choose(SPAN, []) is None


def test_only_a_query_that_asks_nothing_asks_for_all() -> None:
    assert asks_for_all(EventQuery("acme"))
    assert not asks_for_all(EventQuery("acme", types=("**",)))
    assert not asks_for_all(EventQuery("acme", json_path="$.a"))
    assert not asks_for_all(EventQuery("acme", as_of_position=7))


def test_a_glob_among_the_types_has_no_exact_names() -> None:
    assert exact_types(EventQuery("acme", types=("a.b", "c.d"))) == ["a.b", "c.d"]
    assert exact_types(EventQuery("acme", types=("a.b", "c.*"))) is None
