"""The inferred schema of a page lists every path with its types, counts and a few examples."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.fields import FIELDS_MAX, infer_fields


def fields(*payloads: JsonValue) -> dict[str, dict[str, Any]]:
    found: Any = infer_fields([{"payload": payload} for payload in payloads])["fields"]
    return {field["jsonPath"]: field for field in found}


def test_no_events_have_no_fields() -> None:
    assert infer_fields([]) == {"totalSamples": 0, "fields": []}


def test_a_page_counts_the_events_that_have_a_path() -> None:
    found = fields({"a": 1}, {"a": 2, "b": "x"}, {})

    assert found["$.payload"]["occurrences"] == 3
    assert found["$.payload.a"]["occurrences"] == 2
    assert found["$.payload.b"]["occurrences"] == 1


def test_a_field_is_described_in_full() -> None:
    assert fields({"items": [{"id": "a"}, {"id": "b"}]})["$.payload.items[*].id"] == {
        "path": ["payload", "items", "*", "id"],
        "jsonPath": "$.payload.items[*].id",
        "liquidPath": "event.payload.items[0].id",
        "occurrences": 1,
        "types": ["string"],
        "kind": "value",
        "examples": ["a", "b"],
    }


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("x", "string"),
        (1, "number"),
        (1.5, "number"),
        (True, "boolean"),
        (None, "null"),
        ({}, "object"),
        ([], "array"),
    ],
)
def test_each_type_has_its_name(value: JsonValue, name: str) -> None:
    assert fields({"a": value})["$.payload.a"]["types"] == [name]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([{}], "object"),
        ([{}, None], "object"),
        ([[]], "array"),
        ([[], None], "array"),
        ([{}, []], "value"),
        ([{}, 1], "value"),
        ([None], "value"),
        (["x", 1], "value"),
    ],
)
def test_the_kind_is_a_container_only_when_nothing_else_was_seen(
    values: list[JsonValue], kind: str
) -> None:
    payloads: list[JsonValue] = [{"a": value} for value in values]

    assert fields(*payloads)["$.payload.a"]["kind"] == kind


def test_at_most_five_different_examples_are_kept() -> None:
    payloads: list[JsonValue] = [{"a": n % 8} for n in range(20)]

    assert fields(*payloads)["$.payload.a"]["examples"] == [0, 1, 2, 3, 4]


def test_equal_examples_of_different_types_are_both_kept() -> None:
    assert fields({"a": 1}, {"a": "1"}, {"a": True})["$.payload.a"]["examples"] == [1, "1", True]


@pytest.mark.parametrize(("length", "shown"), [(80, 80), (81, 78), (5_000, 78)])
def test_a_long_example_is_cut(length: int, shown: int) -> None:
    (example,) = fields({"a": "x" * length})["$.payload.a"]["examples"]

    assert len(example) == shown
    assert example.endswith("…") is (length > 80)


@pytest.mark.parametrize(
    ("key", "json_path", "liquid_path"),
    [
        ("plain_1", "$.payload.plain_1", "event.payload.plain_1"),
        ("my-key", '$.payload."my-key"', 'event.payload["my-key"]'),
        ("a.b", '$.payload."a.b"', 'event.payload["a.b"]'),
        ('say "x"', r'$.payload."say \"x\""', r'event.payload["say \"x\""]'),
        ("", '$.payload.""', 'event.payload[""]'),
        ("*", '$.payload."*"', 'event.payload["*"]'),
        ("1st", '$.payload."1st"', 'event.payload["1st"]'),
    ],
)
def test_an_unusual_key_is_quoted(key: str, json_path: str, liquid_path: str) -> None:
    found = fields({key: 1})[json_path]

    assert found["liquidPath"] == liquid_path
    assert found["path"] == ["payload", key]


def test_fields_are_sorted_by_their_path() -> None:
    found: Any = infer_fields([{"b": 1, "a": {"z": 1, "c": [1]}}])["fields"]

    assert [field["jsonPath"] for field in found] == ["$.a", "$.a.c", "$.a.c[*]", "$.a.z", "$.b"]


def test_every_item_of_an_array_counts_once_per_event() -> None:
    assert fields([1, 2, 3], [4])["$.payload[*]"]["occurrences"] == 2


def test_a_huge_event_shows_only_so_many_fields() -> None:
    found: Any = infer_fields([{"payload": {f"k{n}": n for n in range(20_000)}}])

    assert len(found["fields"]) == FIELDS_MAX


def test_a_page_of_huge_events_is_sampled_evenly() -> None:
    wide: JsonObject = {f"k{n}": n for n in range(20_000)}

    found: Any = infer_fields([{"payload": wide}] * 200)

    assert found["totalSamples"] == 200
    assert {field["occurrences"] for field in found["fields"]} == {200}
    assert len(found["fields"]) == 250


def test_a_deep_event_costs_no_call_depth() -> None:
    value: JsonValue = 1
    for _ in range(3_000):
        value = [value]

    assert len(fields(value)) == FIELDS_MAX
