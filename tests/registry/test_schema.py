"""Payloads are checked exactly, and what is wrong is said with a pointer."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from penstock.base.errors import Fault
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.schema import (
    SchemaVersion,
    check_payload,
    compile_faults,
    schema_hash,
)

AT = datetime(2026, 3, 1, tzinfo=UTC)


def version(schema: JsonObject) -> SchemaVersion:
    return SchemaVersion(
        "orders.order.placed", 1, "active", schema, schema_hash(schema), {}, AT, "t", AT, "t"
    )


def check(schema: JsonObject, payload: JsonValue) -> list[tuple[str, str]]:
    return [(fault.pointer, fault.detail) for fault in check_payload(version(schema), payload)]


NINE = [*range(9)]
ORDER: JsonObject = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "minLength": 1},
        "total": {"type": "number", "minimum": 0, "maximum": 10},
        "lines": {"type": "array", "items": {"type": "object", "required": ["sku"]}},
        "at": {"type": "string", "format": "date-time"},
        "note": {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]},
    },
    "required": ["id"],
}


def test_a_payload_that_fits_has_no_faults() -> None:
    assert check(ORDER, {"id": "a", "total": 1.5, "lines": [{"sku": 1}], "note": None}) == []


def test_an_unknown_field_is_no_fault_unless_the_schema_forbids_it() -> None:
    assert check(ORDER, {"id": "a", "other": 1}) == []
    assert check({**ORDER, "additionalProperties": False}, {"id": "a", "other": 1}) == [
        ("/other", "expected no such field, found one")
    ]


def test_every_fault_is_said_at_once() -> None:
    found = check(ORDER, {"total": "x", "lines": [{"sku": 1}, {}], "at": "noon"})

    assert sorted(found) == [
        ("/at", 'expected text of format "date-time", found other text'),
        ("/id", "expected a required field, found nothing"),
        ("/lines/1/sku", "expected a required field, found nothing"),
        ("/total", "expected number, found string"),
    ]


def test_at_most_twenty_faults_are_listed() -> None:
    payload: JsonObject = {"id": "a", "lines": [{} for _ in range(50)]}

    assert len(check(ORDER, payload)) == 20


def test_a_large_payload_gets_at_least_its_first_fault() -> None:
    payload: JsonObject = {"id": "a", "total": "x", "lines": [{"sku": 1} for _ in range(9_000)]}

    assert check(ORDER, payload) == [("/total", "expected number, found string")]


def test_a_pointer_escapes_tilde_and_slash() -> None:
    schema: JsonObject = {"properties": {"a/b~c": {"type": "string"}}}

    assert check(schema, {"a/b~c": 1}) == [("/a~1b~0c", "expected string, found integer")]


@pytest.mark.parametrize(
    ("payload", "name"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "integer"),
        (1.5, "number"),
        (Decimal("1.00000000000000000000000001"), "number"),
        ("x", "string"),
        ([], "array"),
    ],
)
def test_a_payload_of_the_wrong_type_is_named(payload: JsonValue, name: str) -> None:
    assert check({"type": "object"}, payload) == [("", f"expected object, found {name}")]


@pytest.mark.parametrize(
    ("schema", "payload", "detail"),
    [
        ({"enum": ["a", "b"]}, "c", 'expected one of "a", "b", found another value'),
        ({"enum": NINE}, 9, "expected one of 0, 1, 2, 3, 4, 5, 6, 7, …, found another value"),
        ({"const": "a"}, "b", 'expected "a", found another value'),
        ({"pattern": "^a$"}, "b", "expected text that matches ^a$, found other text"),
        ({"format": "uuid"}, "b", 'expected text of format "uuid", found other text'),
        ({"minLength": 2}, "b", "expected a length of at least 2, found less"),
        ({"maxLength": 2}, "bbb", "expected a length of at most 2, found more"),
        ({"minimum": 2}, 1, "expected at least 2, found less"),
        ({"maximum": 2}, 3, "expected at most 2, found more"),
        ({"exclusiveMinimum": 2}, 2, "expected more than 2, found less or the same"),
        ({"exclusiveMaximum": 2}, 2, "expected less than 2, found more or the same"),
        ({"multipleOf": 2}, 3, "expected a multiple of 2, found another number"),
        ({"minItems": 1}, [], "expected a length of at least 1, found less"),
        ({"maxItems": 1}, [1, 2], "expected a length of at most 1, found more"),
        ({"uniqueItems": True}, [1, 1], "expected every item once, found one twice"),
        ({"contains": {"const": 1}}, [2], "expected an item that the schema asks for, found none"),
        ({"minProperties": 1}, {}, "expected a number of fields of at least 1, found less"),
        ({"maxProperties": 0}, {"a": 1}, "expected a number of fields of at most 0, found more"),
        ({"not": {}}, None, 'expected a value that meets "not", found one that does not'),
        ({"type": ["string", "null"]}, 1, "expected null or string, found integer"),
        ({"oneOf": [{}, {}]}, 1, "expected exactly one of the allowed shapes, found several"),
    ],
)  # fmt: skip
def test_each_rule_has_its_sentence(schema: JsonObject, payload: JsonValue, detail: str) -> None:
    assert check(schema, payload) == [("", detail)]


def test_a_forbidden_place_says_so() -> None:
    found = check({"properties": {"a": False}}, {"a": 1})

    assert found == [("/a", "expected nothing here, found a value")]


@pytest.mark.parametrize(
    ("note", "detail"),
    [
        (5, "expected string or null, found integer"),
        ("too long", "expected a length of at most 5, found more"),
    ],
)
def test_a_choice_is_explained_by_the_branch_of_the_right_type(
    note: JsonValue, detail: str
) -> None:
    assert check(ORDER, {"id": "a", "note": note}) == [("/note", detail)]


def test_a_choice_of_objects_is_explained_by_the_one_that_came_furthest() -> None:
    inner: JsonObject = {"properties": {"b": {"properties": {"c": {"type": "string"}}}}}
    schema: JsonObject = {"anyOf": [{"required": ["z"], "type": "object"}, inner]}

    assert check(schema, {"b": {"c": 1}}) == [("/b/c", "expected string, found integer")]


def test_a_fault_never_repeats_a_value_of_the_payload() -> None:
    schema: JsonObject = {
        "properties": {
            "a": {"type": "integer"},
            "b": {"enum": ["x"]},
            "c": {"pattern": "^x$"},
            "d": {"anyOf": [{"type": "null"}, {"type": "integer"}]},
            "e": {"not": {"type": "string"}},
        }
    }
    payload: JsonObject = dict.fromkeys("abcde", "secret")

    found = check(schema, payload)

    assert len(found) == 5
    assert not any("secret" in detail for _, detail in found)


@pytest.mark.parametrize(
    ("number", "fits"),
    [
        (Decimal(10), True),
        (Decimal("10.0000000000000000000000000000000001"), False),
        (Decimal("9.9999999999999999999999999999999999"), True),
        (10, True),
        (11, False),
        (9.99, True),
    ],
)
def test_numbers_are_compared_exactly(number: JsonValue, fits: bool) -> None:
    assert (check(ORDER, {"id": "a", "total": number}) == []) is fits


@pytest.mark.parametrize(
    ("number", "fits"),
    [
        (2**63 - 1, True),
        (-(2**63) + 1, True),
        (1.0, True),
        (1.5, False),
        (Decimal("1.00000000000000000000000001"), False),
        (True, False),
        ("1", False),
    ],
)
def test_an_integer_is_what_json_schema_calls_one(number: JsonValue, fits: bool) -> None:
    assert (check({"type": "integer"}, number) == []) is fits


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2026-03-01T10:30:00Z", "2026-03-01 10:30"),
        ("date", "2026-03-01", "2026-13-01"),
        ("uuid", "0197a3c2-5a00-7000-8000-000000000001", "0197"),
        ("email", "ana@example.org", "ana"),
        ("ipv4", "127.0.0.1", "127.0.0.256"),
        ("uri", "https://example.org/a", "not a uri"),
    ],
)
def test_formats_are_checked(name: str, good: str, bad: str) -> None:
    schema: JsonObject = {"format": name}

    assert check(schema, good) == []
    assert check(schema, bad) != []


def test_the_dialect_named_by_the_schema_decides() -> None:
    tuple_form: JsonObject = {"items": [{"type": "string"}]}
    old: JsonObject = {"$schema": "http://json-schema.org/draft-07/schema#", **tuple_form}

    assert compile_faults(old) == ()
    assert check(old, [1]) == [("/0", "expected string, found integer")]
    assert compile_faults(tuple_form) != ()


def test_the_hash_does_not_depend_on_the_order_of_keys() -> None:
    assert schema_hash({"a": 1, "b": {"c": 2, "d": 3}}) == schema_hash(
        {"b": {"d": 3, "c": 2}, "a": 1}
    )
    assert schema_hash({"a": 1}) != schema_hash({"a": 2})


def test_the_hash_is_sha_256_of_the_canonical_schema() -> None:
    assert schema_hash({"type": "object"}) == hashlib.sha256(b'{"type":"object"}').hexdigest()


def test_a_schema_that_no_longer_compiles_refuses_payloads_and_does_not_crash() -> None:
    (fault,) = check_payload(version({"type": "nonsense"}), {})

    assert fault.detail.startswith("expected a schema that compiles")


def test_a_schema_version_survives_pickling() -> None:
    kept = version(ORDER)

    assert pickle.loads(pickle.dumps(kept)) == kept  # noqa: S301 - our own bytes


@pytest.mark.parametrize("make", [lambda: {"id": "a"}, dict, lambda: {"id": 1}])
def test_checking_twice_gives_the_same_answer(make: Callable[[], JsonObject]) -> None:
    assert check(ORDER, make()) == check(ORDER, make())


def test_two_schemas_never_share_a_validator() -> None:
    assert check_payload(version({"type": "string"}), "a") == ()
    assert check_payload(version({"type": "integer"}), "a") == (
        Fault("", "expected integer, found string"),
    )
