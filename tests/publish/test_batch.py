"""Hold batches to their limits, and to losing and reordering nothing."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.envelope.envelope import JsonObject
from penstock.publish.batch import BATCH_BYTES_MAX, BATCH_EVENTS_MAX, batches


def events(count: int, padding: int = 0) -> list[JsonObject]:
    return [{"id": f"evt-{n}", "payload": "x" * padding} for n in range(count)]


def test_no_events_make_no_batch() -> None:
    assert list(batches([])) == []


def test_one_event_travels_as_an_object() -> None:
    (batch,) = batches(events(1))

    assert orjson.loads(batch.body) == events(1)[0]


def test_several_events_travel_as_an_array() -> None:
    (batch,) = batches(events(3))

    assert orjson.loads(batch.body) == events(3)


@pytest.mark.parametrize(
    ("count", "sizes"),
    [(1000, [1000]), (1001, [1000, 1]), (2500, [1000, 1000, 500])],
)
def test_a_batch_holds_at_most_a_thousand_events(count: int, sizes: list[int]) -> None:
    assert [len(batch.events) for batch in batches(events(count))] == sizes


def test_a_batch_holds_at_most_four_megabytes() -> None:
    found = list(batches(events(50, padding=200_000)))

    assert all(len(batch.body) <= BATCH_BYTES_MAX for batch in found)
    assert [len(batch.events) for batch in found] == [19, 19, 12]


def test_an_event_larger_than_any_batch_travels_alone() -> None:
    found = list(batches(events(3, padding=50), bytes_max=10))

    assert [len(batch.events) for batch in found] == [1, 1, 1]


def test_halves_have_everything_once_and_in_order() -> None:
    (batch,) = batches(events(5))

    first, second = batch.halves()

    assert [*first.events, *second.events] == events(5)
    assert [*first.encoded, *second.encoded] == list(batch.encoded)
    assert len(first.events) == 2


@given(
    st.lists(st.integers(min_value=0, max_value=300), max_size=60),
    st.integers(min_value=1, max_value=10),
    st.integers(min_value=1, max_value=1000),
)
def test_batches_lose_and_reorder_nothing(sizes: list[int], most: int, bytes_max: int) -> None:
    given_events: list[JsonObject] = [{"id": str(n), "p": "y" * s} for n, s in enumerate(sizes)]

    found = list(batches(given_events, events_max=most, bytes_max=bytes_max))

    assert [event for batch in found for event in batch.events] == given_events
    assert all(len(batch.events) <= most for batch in found)
    assert all(len(batch.body) <= bytes_max or len(batch.events) == 1 for batch in found)


def test_the_limits_are_below_those_of_the_server() -> None:
    assert BATCH_EVENTS_MAX <= 5_000
    assert BATCH_BYTES_MAX <= 8_000_000
