"""Hold `plain` to its promise: JSON values out of Python values, and nothing guessed."""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.base.errors import EventRefused
from penstock.publish.plain import plain, plain_object


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    LARGE = 3


class Mixed(Enum):
    PAIR = "pair"


class Row(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    row_count: int
    seen_at: datetime


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_a_json_value_stays_what_it_is(value: object) -> None:
    assert plain(value) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, 2), [1, 2]),
        (OrderedDict(a=1), {"a": 1}),
        (Colour.RED, "red"),
        (Size.LARGE, 3),
        (Mixed.PAIR, "pair"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (datetime(2026, 1, 31, 10, 30, tzinfo=UTC), "2026-01-31T10:30:00+00:00"),
        (
            datetime(2026, 1, 31, 10, 30, 0, 5, tzinfo=timezone(timedelta(hours=2))),
            "2026-01-31T10:30:00.000005+02:00",
        ),
        (Decimal("1.50"), Decimal("1.50")),
        (
            [Row(row_count=3, seen_at=datetime(2026, 1, 1, tzinfo=UTC))],
            [{"rowCount": 3, "seenAt": "2026-01-01T00:00:00Z"}],
        ),
    ],
)
def test_what_has_one_meaning_in_json_is_written(value: object, expected: object) -> None:
    assert plain(value) == expected


@pytest.mark.parametrize(
    ("value", "pointer", "detail"),
    [
        ({"a": {1, 2}}, "/a", "expected a JSON value, found set"),
        ({"a": [b"x"]}, "/a/0", "expected a JSON value, found bytes"),
        ({"a": float("nan")}, "/a", "expected a finite number, found nan"),
        ({"a": float("-inf")}, "/a", "expected a finite number, found -inf"),
        ({"a": Decimal("NaN")}, "/a", "expected a finite number, found NaN"),
        ({"x/y~z": object()}, "/x~1y~0z", "expected a JSON value, found object"),
        ({"a": {1: 2}}, "/a", "expected keys that are strings, found int 1"),
        ({"a": date(2026, 1, 1)}, "/a", "expected a JSON value, found date"),
        (
            {"a": datetime(2026, 1, 1)},  # noqa: DTZ001  that it is naive is the point
            "/a",
            "expected an instant with an offset, found the naive 2026-01-01T00:00:00",
        ),
    ],
)
def test_what_has_no_one_meaning_is_refused_with_its_place(
    value: object, pointer: str, detail: str
) -> None:
    with pytest.raises(EventRefused) as caught:
        plain(value)

    assert caught.value.faults[0].pointer == pointer
    assert caught.value.detail == detail


def test_a_value_that_contains_itself_is_refused() -> None:
    knot: list[object] = []
    knot.append(knot)

    with pytest.raises(EventRefused) as caught:
        plain(knot)

    assert caught.value.reason == "too_deep"


def test_a_value_that_contains_itself_many_times_is_refused_soon() -> None:
    knot: list[object] = []
    knot += [knot, knot, knot]

    with pytest.raises(EventRefused) as caught:
        plain(knot)

    assert caught.value.reason in ("too_deep", "too_many_nodes")


def test_changing_the_original_afterwards_changes_nothing() -> None:
    inner = {"n": 1}
    event = plain_object({"payload": inner})

    inner["n"] = 2

    assert event == {"payload": {"n": 1}}


def test_keys_of_an_event_are_strings() -> None:
    with pytest.raises(EventRefused, match="expected keys that are strings"):
        plain_object({1: "x"})  # type: ignore[dict-item]


class Part(BaseModel):
    name: str | None = None
    size: int = 1


class Whole(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")

    first_part: Part | None = None
    parts: list[Part] = []
    note: str | None = None
    kind: str = "plain"


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (Whole(), {"parts": [], "kind": "plain"}),
        (Whole(note=None), {"parts": [], "kind": "plain", "note": None}),
        (Whole(first_part=Part()), {"firstPart": {"size": 1}, "parts": [], "kind": "plain"}),
        (
            Whole(parts=[Part(name=None), Part(size=2)], note="n"),
            {"parts": [{"name": None, "size": 1}, {"size": 2}], "note": "n", "kind": "plain"},
        ),
        (
            Whole.model_validate({"extra": None}),
            {"parts": [], "kind": "plain", "extra": None},
        ),
    ],
)
def test_a_model_says_its_defaults_but_no_null_that_nobody_said(
    model: Whole, expected: object
) -> None:
    assert plain(model) == expected
