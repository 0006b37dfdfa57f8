"""The rarest filter is walked; where nothing is rare, a fixed order decides."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.store.support import NOON

from penstock.envelope.envelope import Severity
from penstock.envelope.names import matches_glob
from penstock.store.query import EventQuery
from penstock.store.walk.choose import (
    COUNT_MAX,
    Newest,
    Walk,
    candidates,
    choose,
    choose_log,
    filter_parameters,
    literal_range,
    walk_parameters,
)

QUERY = EventQuery(
    "acme",
    types=("a.b",),
    sources=("s", "t"),
    correlation_id="req-1",
    tags=(("k", "v"), ("l", "w")),
    severities=(Severity.ERROR,),
)
WALKS = [
    Walk("correlation", ("req-1",)),
    Walk("tag", ("k:v",)),
    Walk("tag", ("l:w",)),
    Walk("type", ("a.b",)),
    Walk("source", ("s", "t")),
    Walk("severity", ("error",)),
]


def test_every_filter_with_an_index_is_a_candidate() -> None:
    assert candidates(QUERY, ["a.b"]) == WALKS


def test_info_is_nearly_everything_and_has_no_index() -> None:
    assert candidates(EventQuery("acme", severities=(Severity.INFO, Severity.ERROR)), None) == []


def test_types_that_are_too_many_to_walk_are_no_candidate() -> None:
    assert candidates(EventQuery("acme", types=("**",)), None) == []


def test_a_glob_that_stands_for_no_type_is_walked_at_once() -> None:
    walks = candidates(EventQuery("acme", types=("x.*",), sources=("s",)), [])

    assert choose(walks, {1: 3}, None) == Walk("type", ())


@pytest.mark.parametrize("rarest", range(len(WALKS)))
def test_the_rarest_filter_wins(rarest: int) -> None:
    counts = {n: 50 if n == rarest else 60 + n for n in range(len(WALKS))}

    assert choose(WALKS, counts, None) == WALKS[rarest]


def test_where_nothing_is_rare_the_first_wins() -> None:
    counts = {n: COUNT_MAX + 100 - n for n in range(len(WALKS))}

    assert choose(WALKS, counts, COUNT_MAX) == WALKS[0]


def test_a_stretch_of_time_with_the_fewest_events_wins() -> None:
    assert choose(WALKS[:1], {0: 10}, 9) == Walk("window")
    assert choose(WALKS[:1], {0: 10}, 10) == WALKS[0]
    assert choose([], {}, 5) == Walk("window")


def test_a_crowded_stretch_of_time_leaves_the_log() -> None:
    assert choose([], {}, COUNT_MAX) is None
    assert choose([], {}, None) is None


@pytest.mark.parametrize(
    ("wanted", "walk", "count", "is_walked"),
    [
        ("few", Walk("type", ("a.b", "c.d")), COUNT_MAX, True),
        ("many", Walk("type", ("a.b", "c.d")), COUNT_MAX, False),
        ("many", Walk("type", ("a.b", "c.d")), COUNT_MAX - 1, True),
        ("many", Walk("type", ("a.b",)), COUNT_MAX, True),
        ("all", Walk("tag", ("k:v",)), COUNT_MAX, False),
        ("all", Walk("tag", ("k:v",)), COUNT_MAX - 1, True),
    ],
)
def test_the_more_is_wanted_the_rarer_a_filter_must_be(
    wanted: Any, walk: Walk, count: int, is_walked: bool
) -> None:
    assert choose([walk], {0: count}, None, wanted) == (walk if is_walked else None)


def test_a_small_tenant_is_walked_source_by_source() -> None:
    query, sparse = EventQuery("acme"), Newest(events=2, occurred_at=NOON)

    assert choose_log(query, sparse, ["s", "t"]) == Walk("source", ("s", "t"))
    assert choose_log(query, Newest(500, NOON), []) == Walk("log")
    assert choose_log(query, sparse, [f"s{n}" for n in range(501)]) == Walk("log")
    assert choose_log(query, Newest(0, None), []) == Walk("source", ())


def test_a_stretch_of_time_in_the_past_is_gathered_whole() -> None:
    past = EventQuery("acme", occurred_to=NOON - timedelta(hours=1))
    open_ended = EventQuery("acme", occurred_from=NOON - timedelta(hours=1))

    assert choose_log(past, Newest(900, NOON), []) == Walk("window")
    assert choose_log(past, Newest(0, None), []) == Walk("window")
    assert choose_log(open_ended, Newest(900, NOON), []) == Walk("log")


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("metastore.record.*", ["metastore.record.a", "metastore.record.zz"]),
        ("metastore.record.**", ["metastore.record", "metastore.record.a.b"]),
        ("meta*.x", ["meta.x", "metaz.x", "meta_.x"]),
        ("**", ["a.b", "Z.Y"]),
        ("*.x", ["a.x", "zz.x"]),
        ("z.z*", ["z.z", "z.zz"]),
    ],
)
def test_all_that_a_glob_matches_lies_in_its_range(pattern: str, matched: list[str]) -> None:
    low, high = literal_range(pattern)

    for name in matched:
        assert matches_glob(pattern, name)
        assert low.encode() <= name.encode() < high.encode()


def test_what_a_walk_guarantees_is_not_asked_again() -> None:
    for walk, name in [
        (WALKS[0], "correlation_id"),
        (WALKS[3], "types"),
        (WALKS[4], "sources"),
        (WALKS[5], "severities"),
    ]:
        asked = filter_parameters(QUERY, ["a.b"])
        kept = walk_parameters(QUERY, ["a.b"], walk)

        assert asked[name] is not None
        assert kept == asked | {name: None, "walked": list(walk.values)}


def test_a_filter_that_is_not_asked_is_null() -> None:
    asked = filter_parameters(EventQuery("acme"), [])

    assert {name for name, value in asked.items() if value is not None} == {"tenant"}


def test_a_path_and_a_predicate_are_different_questions() -> None:
    path = filter_parameters(EventQuery("acme", json_path="$.payload.x"), [])
    predicate = filter_parameters(EventQuery("acme", json_path="$.x == 1"), [])

    assert (path["found_path"], path["found_inner"]) == ("$.x", "$.payload.x")
    assert (path["true_path"], path["true_inner"]) == (None, None)
    assert (predicate["true_path"], predicate["true_inner"]) == ("$.x == 1", None)
    assert predicate["found_path"] is None
