"""A histogram has equal buckets that hold both ends of its stretch of time."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.support import NOON

from penstock.base.errors import QueryInvalid
from penstock.envelope.envelope import Severity
from penstock.explorer.histogram import (
    Bucket,
    Ruler,
    fill,
    histogram_wire,
    read_histogram,
    rule,
    window_of,
)
from penstock.store.query import EventQuery

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (None, None, (NOON - HOUR, NOON)),
        (NOON - 2 * HOUR, None, (NOON - 2 * HOUR, NOON)),
        (None, NOON - HOUR, (NOON - 2 * HOUR, NOON - HOUR)),
        (NOON + HOUR, None, (NOON + HOUR, NOON + 2 * HOUR)),
        (NOON - HOUR, NOON + HOUR, (NOON - HOUR, NOON + HOUR)),
    ],
)
def test_the_stretch_of_time_is_the_last_hour_unless_it_is_said(
    first: datetime | None, last: datetime | None, expected: tuple[datetime, datetime]
) -> None:
    query = EventQuery("acme", occurred_from=first, occurred_to=last)

    assert window_of(query, NOON) == expected


@pytest.mark.parametrize("short", [timedelta(0), timedelta(milliseconds=1)])
def test_an_hour_of_sixty_buckets_has_one_a_minute(short: timedelta) -> None:
    assert rule(NOON, NOON + HOUR - short, 60) == Ruler(NOON, timedelta(minutes=1), 60)


def test_an_instant_alone_is_one_bucket() -> None:
    assert rule(NOON, NOON, 60) == Ruler(NOON, timedelta(milliseconds=1), 1)


def test_the_last_bucket_holds_the_very_end() -> None:
    found = [(NOON + HOUR, Severity.INFO, 4), (NOON + 2 * HOUR, Severity.INFO, 1)]

    buckets = fill(rule(NOON, NOON + 2 * HOUR, 2), found)

    assert [bucket.counts for bucket in buckets] == [{}, {Severity.INFO: 5}]


@given(
    st.timedeltas(timedelta(days=-20_000), timedelta(days=2_000_000)),
    st.timedeltas(timedelta(0), timedelta(days=300_000)),
    st.integers(1, 200),
    st.floats(0, 1),
)
def test_every_instant_of_the_range_has_its_bucket(
    start: timedelta, span: timedelta, buckets: int, at: float
) -> None:
    first = NOON + start
    last = first + span
    ruler = rule(first, last, buckets)
    number = (first + span * at - ruler.start) // ruler.step
    counted = [(ruler.start + number * ruler.step, Severity.INFO, 1)]

    assert 1 <= ruler.buckets <= buckets
    assert 0 <= number <= ruler.buckets
    assert sum(bucket.events for bucket in fill(ruler, counted)) == 1
    assert ruler.start + ruler.step * (ruler.buckets - 1) <= last
    assert last - ruler.start <= ruler.step * ruler.buckets


def test_silent_buckets_are_shown_too() -> None:
    ruler = Ruler(NOON, HOUR, 3)

    buckets = fill(ruler, [(NOON + HOUR, Severity.INFO, 4), (NOON + HOUR, Severity.ERROR, 1)])

    assert buckets == [
        Bucket(NOON, NOON + HOUR, {}),
        Bucket(NOON + HOUR, NOON + 2 * HOUR, {Severity.INFO: 4, Severity.ERROR: 1}),
        Bucket(NOON + 2 * HOUR, NOON + 3 * HOUR, {}),
    ]


def test_severities_are_written_loudest_first() -> None:
    buckets = [Bucket(NOON, NOON + HOUR, {Severity.INFO: 4, Severity.ERROR: 1})]

    wire = histogram_wire(buckets)

    assert wire == {
        "buckets": [
            {
                "start": "2026-03-01T12:00:00.000Z",
                "end": "2026-03-01T13:00:00.000Z",
                "count": 5,
                "severities": {"error": 1, "info": 4},
            }
        ]
    }
    assert '"error": 1, "info": 4' in str(wire).replace("'", '"')


@pytest.mark.parametrize(("said", "meant"), [("7", 7), ("0", 1), ("999", 200)])
def test_the_number_of_buckets_is_brought_into_its_range(said: str, meant: int) -> None:
    query, buckets = read_histogram([("buckets", said), ("type", "a.b")], tenant_id="acme")

    assert (query, buckets) == (EventQuery("acme", types=("a.b",)), meant)
    assert read_histogram([], tenant_id="acme")[1] == 60


@pytest.mark.parametrize(
    ("params", "parameter"),
    [
        ([("buckets", "many")], "buckets"),
        ([("buckets", "1"), ("buckets", "2")], "buckets"),
        ([("limit", "5")], "limit"),
        ([("cursor", "x")], "cursor"),
        ([("bucket", "5")], "bucket"),
    ],
)
def test_what_a_histogram_cannot_do_is_refused_by_name(
    params: list[tuple[str, str]], parameter: str
) -> None:
    with pytest.raises(QueryInvalid) as refusal:
        read_histogram(params, tenant_id="acme")

    assert refusal.value.parameter == parameter
