"""Hold instants to one way of being read and written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base import clock
from penstock.base.clock import FixedClock, SystemClock, format_instant, parse_instant

instants = st.datetimes(
    datetime(1970, 1, 2),  # noqa: DTZ001 - hypothesis wants them bare
    datetime(9999, 12, 30, 23, 59, 59, 999_999),  # noqa: DTZ001
).map(lambda at: at.replace(tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-01-31T10:30:00.000Z", datetime(2026, 1, 31, 10, 30, tzinfo=UTC)),
        ("2026-01-31T10:30:00Z", datetime(2026, 1, 31, 10, 30, tzinfo=UTC)),
        ("2026-01-31t10:30:00z", datetime(2026, 1, 31, 10, 30, tzinfo=UTC)),
        ("2026-01-31T10:30:00.123456789Z", datetime(2026, 1, 31, 10, 30, 0, 123456, tzinfo=UTC)),
        ("2026-01-31T10:30:00.1Z", datetime(2026, 1, 31, 10, 30, 0, 100_000, tzinfo=UTC)),
        ("2026-01-31T12:30:00+02:00", datetime(2026, 1, 31, 10, 30, tzinfo=UTC)),
        ("2026-01-31T00:30:00-10:00", datetime(2026, 1, 31, 10, 30, tzinfo=UTC)),
        ("1970-01-01T00:00:00.000Z", datetime(1970, 1, 1, tzinfo=UTC)),
        ("1969-12-31T23:30:00-01:00", datetime(1970, 1, 1, 0, 30, tzinfo=UTC)),
        ("9999-12-31T23:59:59.999Z", datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
        ("2024-02-29T00:00:00.000Z", datetime(2024, 2, 29, tzinfo=UTC)),
        ("2016-12-31T23:59:60.000Z", datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_an_rfc_3339_instant_with_an_offset_is_read_as_utc(text: str, at: datetime) -> None:
    assert parse_instant(text) == at
    assert parse_instant(text).tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-01-31",
        "2026-01-31T10:30:00",
        "2026-01-31 10:30:00Z",
        "2026-01-31T10:30Z",
        "2026-01-31T10:30:00.Z",
        "2026-01-31T10:30:00,000Z",
        "2026-01-31T10:30:00.0000000000Z",
        "2026-01-31T10:30:00.000+0200",
        "2026-01-31T10:30:00+24:00",
        "2026-01-31T10:30:00+02:60",
        "2026-01-31T24:00:00.000Z",
        "2026-01-31T10:60:00.000Z",
        "2026-01-31T10:30:61.000Z",
        "2026-02-29T10:30:00.000Z",
        "2026-13-01T10:30:00.000Z",
        "2026-00-01T10:30:00.000Z",
        "1969-12-31T23:59:59.999Z",
        "0000-01-01T00:00:00.000Z",
        "9999-12-31T23:59:59-01:00",
        "2026-W05-6T10:30:00.000Z",
        "2026-01-31T103000.00000Z",
        "2026-01-31T10:30:00.00-Z",
        "2026-01-31T10:30:00.000Z ",
        "2026-01-31T10:30:00.000Z\n",
        "\uff12026-01-31T10:30:00.00Z",
        "202٦-01-31T10:30:00.000Z",
        "+026-01-31T10:30:00.000Z",
    ],
)
def test_anything_else_is_no_instant(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected .*, found "):
        parse_instant(text)


def test_a_plus_that_a_url_turned_into_a_space_is_explained() -> None:
    with pytest.raises(ValueError, match=r"; a \+ in a URL is written %2B$"):
        parse_instant("2026-01-31T10:30:00 02:00")


@given(instants)
def test_what_is_written_is_read_back_to_the_millisecond(at: datetime) -> None:
    text = format_instant(at)

    assert len(text) == 24
    assert timedelta() <= at - parse_instant(text) < timedelta(milliseconds=1)
    assert format_instant(parse_instant(text)) == text


@given(instants, st.integers(-23 * 60, 23 * 60))
def test_an_instant_is_the_same_in_every_offset(at: datetime, minutes: int) -> None:
    elsewhere = timezone(timedelta(minutes=minutes))

    assert parse_instant(at.astimezone(elsewhere).isoformat()) == at
    assert format_instant(at.astimezone(elsewhere)) == format_instant(at)


@settings(max_examples=300)
@given(st.from_regex(r"[0-2]\d{3}-[0-3]\d-[0-3]\dT[0-2]\d:[0-6]\d:[0-6]\d\.\d{3}Z", fullmatch=True))
def test_the_quick_way_of_reading_agrees_with_the_general_one(text: str) -> None:
    assert outcome(text, parse_instant) == outcome(text, clock._parse_any)


def outcome(text: str, parse: object) -> datetime | None:
    try:
        return parse(text)  # type: ignore[operator,no-any-return]
    except ValueError:
        return None


def test_a_fixed_clock_stands_still_until_it_is_moved() -> None:
    fixed = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))

    assert fixed.now() == fixed.now()
    fixed.move(timedelta(seconds=5))
    assert fixed.now() == datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)


def test_the_system_clock_speaks_utc() -> None:
    assert SystemClock().now().tzinfo is UTC
