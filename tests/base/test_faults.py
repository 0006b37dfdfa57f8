"""Hold what pydantic finds to our words, and to places that somebody wrote."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import (
    AnyUrl,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
)
from pydantic.alias_generators import to_camel

from penstock.base.errors import Fault
from penstock.base.faults import FAULTS_MAX, form_faults


class Colour(StrEnum):
    RED = "red"


class Cat(BaseModel):
    type: Literal["cat"]
    lives: int


class Dog(BaseModel):
    type: Literal["dog"]
    tricks: list[int | str] = []


class Wide(BaseModel):
    """A field of every kind that JSON can be read into."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)

    text: Annotated[str, Field(max_length=3, pattern="^a")] = "a"
    whole: Annotated[int, Field(gt=0, lt=10, multiple_of=3)] = 3
    number: Annotated[float, Field(allow_inf_nan=False)] = 1.0
    exact: Annotated[Decimal, Field(max_digits=3, decimal_places=1)] = Decimal(1)
    flag: bool = True
    colour: Colour = Colour.RED
    word: Literal["a", "b"] = "a"
    items: Annotated[list[int], Field(min_length=1)] = [1]
    pair: tuple[int, int] = (1, 2)
    unique: set[int] = set()
    table: dict[str, int] = {}
    at: AwareDatetime | None = None
    naive: datetime | None = None
    day: date = date(2026, 1, 1)
    hour: time = time(1)
    span: timedelta = timedelta(1)
    id: UUID | None = None
    url: AnyUrl | None = None
    secret: Annotated[SecretStr, Field(min_length=8)] = SecretStr("long enough")
    pet: Annotated[Cat | Dog, Field(discriminator="type")] | None = None
    row_count: int = 0

    @field_validator("word")
    @classmethod
    def _no_b(cls, word: str) -> str:
        if word == "b":
            raise ValueError("expected no b, found one")
        return word


def told(document: Any) -> list[Fault]:
    try:
        Wide.model_validate(document)
    except ValidationError as error:
        return form_faults(error, document)
    return []


def faults(document: Any) -> dict[str, str]:
    return {fault.pointer: fault.detail for fault in told(document)}


MISFITS: list[Any] = [
    "zz~secret", "", -1, 0.5, 12345.678, True, None, [], ["x"], {}, {"type": "cow"}, {"x": 1},
]  # fmt: skip


@pytest.mark.parametrize("field", sorted(Wide.model_fields))
def test_every_fault_says_what_was_expected_and_what_was_found(field: str) -> None:
    found = [fault for value in MISFITS for fault in told({field: value})]

    assert len(found) >= 4
    for fault in found:
        assert fault.detail.startswith("expected "), fault
        assert ", found " in fault.detail, fault
        assert "zz" not in fault.detail, fault
        assert fault.pointer.startswith(f"/{field}"), fault


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("whole", "many", "expected a whole number, found other text"),
        ("whole", 1.5, "expected a whole number, found one with a fraction"),
        ("whole", 12, "expected less than 10, found more or the same"),
        ("number", "x", "expected a number, found other text"),
        ("colour", "blue", "expected 'red', found something else"),
        ("word", "b", "expected no b, found one"),
        ("secret", "short", "expected at least 8 characters, found fewer"),
        ("items", [], "expected at least 1 entries, found 0"),
        ("day", "soon", "expected a date as YYYY-MM-DD, found other text"),
        ("id", "zz", "expected a UUID, found other text"),
        ("surprise", 1, "expected no such field, found one"),
    ],
)
def test_a_fault_reads_in_our_words(field: str, value: Any, sentence: str) -> None:
    assert faults({field: value}) == {f"/{field}": sentence}


def test_a_place_is_as_it_was_written_without_the_branches_that_were_tried() -> None:
    assert faults({"pet": {"type": "cat", "lives": "nine"}}) == {
        "/pet/lives": "expected a whole number, found other text"
    }
    assert list(faults({"pet": {"type": "dog", "tricks": [1, None]}})) == ["/pet/tricks/1"]
    assert list(faults({"pet": {"type": "cow"}})) == ["/pet"]


@pytest.mark.parametrize("stray", ["x", {}, {"lives": 1}, {"lives": "nine"}])
def test_a_field_called_like_its_branch_leads_nowhere_else(stray: Any) -> None:
    assert list(faults({"pet": {"type": "cat", "cat": stray}})) == ["/pet/lives"]
    assert list(faults({"pet": {"type": "cat", "cat": stray, "lives": []}})) == ["/pet/lives"]
    assert list(faults({"pet": {"type": "cat", "cat": stray, "lives": stray}})) == ["/pet/lives"]


def test_a_key_is_escaped_as_in_a_json_pointer() -> None:
    assert list(faults({"table": {"a/b~c": "x"}})) == ["/table/a~1b~0c"]


def test_a_field_is_named_as_it_was_given() -> None:
    assert list(faults({"row_count": "x"})) == ["/row_count"]
    assert list(faults({"rowCount": "x"})) == ["/rowCount"]


def test_no_more_faults_are_told_than_anyone_reads() -> None:
    assert len(told({"items": ["x"] * 1_000})) == FAULTS_MAX
