"""A moment is a position or an instant; the future is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.store.support import NOON

from penstock.base.errors import QueryInvalid
from penstock.store.timetravel.moment import START, Moment, read_as_of, refuse_future

HEAD = Moment(100, NOON)


@pytest.mark.parametrize(("text", "position"), [("0", 0), ("1042", 1042), ("007", 7)])
def test_digits_are_a_position(text: str, position: int) -> None:
    assert read_as_of(text, "asOf") == position


def test_an_instant_reaches_to_the_end_of_its_millisecond() -> None:
    found = read_as_of("2026-03-01T13:00:00.005+01:00", "asOf")

    assert found == datetime(2026, 3, 1, 12, 0, 0, 5_999, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["", "x", "-1", "1.5", "1e3", "2026-03-01", "2026-03-01T12:00:00", "٣", "9" * 19,
     "2026-03-01T12:00:00 01:00", "now"],
)  # fmt: skip
def test_anything_else_is_refused_by_the_name_of_its_parameter(text: str) -> None:
    with pytest.raises(QueryInvalid) as refused:
        read_as_of(text, "asOf")

    assert refused.value.parameter == "asOf"
    assert "expected a position or an RFC 3339 instant" in refused.value.detail


def test_the_newest_position_and_the_present_are_known() -> None:
    refuse_future(100, head=HEAD, now=NOON, parameter="asOf")
    refuse_future(NOON, head=HEAD, now=NOON, parameter="asOf")
    refuse_future(0, head=START, now=NOON, parameter="asOf")


def test_a_log_that_is_ahead_of_the_clock_is_known_up_to_its_end() -> None:
    refuse_future(NOON, head=HEAD, now=NOON - timedelta(hours=1), parameter="asOf")


@pytest.mark.parametrize("asked", [101, NOON + timedelta(milliseconds=1), NOON.replace(year=2099)])
def test_the_future_is_refused_with_what_is_newest(asked: int | datetime) -> None:
    with pytest.raises(QueryInvalid) as refused:
        refuse_future(asked, head=HEAD, now=NOON, parameter="to")

    assert refused.value.parameter == "to"
    assert "100" in refused.value.detail or "2026-03-01T12:00:00.000Z" in refused.value.detail
    assert "Leave to out" in refused.value.remedy


def test_a_moment_is_shown_as_position_and_instant() -> None:
    assert HEAD.to_json() == {"position": "100", "at": "2026-03-01T12:00:00.000Z"}
    assert START.to_json() == {"position": "0", "at": None}
