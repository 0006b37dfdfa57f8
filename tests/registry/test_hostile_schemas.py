"""No schema and no payload can make a check take for ever, reach outside, or fill the memory."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from penstock.base.errors import Fault
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.schema import SchemaVersion, check_payload, compile_faults, schema_hash
from penstock.registry.weight import HEAVY, weigh

pytestmark = pytest.mark.timeout(60)
AT = datetime(2026, 3, 1, tzinfo=UTC)
UNSAID = Fault("", "expected a payload that fits the schema, found one that does not")


def version(schema: JsonObject) -> SchemaVersion:
    return SchemaVersion("a.b", 1, "active", schema, schema_hash(schema), {}, AT, "t", AT, "t")


def laughs(levels: int) -> JsonObject:
    """Each definition asks for the next one twice."""
    definitions: JsonObject = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(levels)
    }
    definitions[f"d{levels}"] = {"type": "object"}
    return {"$defs": definitions, "$ref": "#/$defs/d0"}


def nested(levels: int) -> JsonObject:
    schema: JsonObject = {"type": "object"}
    for _ in range(levels):
        schema = {"allOf": [schema]}
    return schema


def expression(variants: int) -> JsonObject:
    """A tree of operations: every variant calls the whole choice again."""
    definitions: JsonObject = {
        f"V{n}": {
            "type": "object",
            "properties": {
                "op": {"const": f"v{n}"},
                "args": {"type": "array", "items": {"$ref": "#/$defs/E"}},
            },
            "required": ["op"],
        }
        for n in range(variants)
    }
    choice: list[JsonValue] = [{"$ref": f"#/$defs/V{n}"} for n in range(variants)]
    return {"$ref": "#/$defs/E", "$defs": {"E": {"anyOf": choice}, **definitions}}


def deep(levels: int, leaf: JsonValue) -> JsonValue:
    value = leaf
    for _ in range(levels):
        value = {"args": [value], "op": "v2"}
    return value


@pytest.mark.parametrize(
    "schema",
    [None, True, False, 1, "x", [], ["object"]],
)
def test_a_schema_must_be_an_object(schema: JsonValue) -> None:
    (fault,) = compile_faults(schema)

    assert fault == Fault("", "expected a JSON Schema object, found something else")


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "nonsense"}, "/type"),
        ({"properties": {"a": {"minLength": -1}}}, "/properties/a/minLength"),
        ({"properties": {"a": {"pattern": "("}}}, "/properties/a/pattern"),
        ({"required": "id"}, "/required"),
        ({"properties": []}, "/properties"),
        ({"items": 3}, "/items"),
        ({"enum": 3}, "/enum"),
        ({"$ref": "#/nowhere"}, ""),
        ({"$schema": "https://example.org/mine"}, ""),
    ],
)
def test_a_schema_that_does_not_compile_is_refused_with_its_place(
    schema: JsonObject, pointer: str
) -> None:
    (fault,) = compile_faults(schema)

    assert fault.pointer == pointer
    assert fault.detail.startswith("expected a valid schema, found ")
    assert len(fault.detail) < 300


@pytest.mark.parametrize(
    "reference",
    ["http://127.0.0.1:9/x.json", "https://example.org/x", "file:///etc/passwd", "x.json", "//x/y"],
)
def test_a_reference_that_leaves_the_schema_is_refused(reference: str) -> None:
    (fault,) = compile_faults({"properties": {"a": {"items": {"$ref": reference}}}})

    assert fault.pointer == "/properties/a/items/$ref"


@pytest.mark.parametrize("pattern", [r"(?=a)b", r"(?<!a)b", r"(a)\1", "(?:a{1,200}){1,40}b"])
def test_a_pattern_without_a_linear_time_is_refused(pattern: str) -> None:
    (fault,) = compile_faults({"properties": {"a": {"pattern": pattern}}})

    assert fault.pointer == "/properties/a/pattern"


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)+$", "^(.*a){20}$", "^([a-z]+)*!$"])
def test_a_pattern_that_ruins_other_engines_is_harmless(pattern: str) -> None:
    schema: JsonObject = {"pattern": pattern}

    assert compile_faults(schema) == ()
    assert check_payload(version(schema), "a" * 100_000 + "?") != ()


def test_a_schema_that_doubles_at_every_reference_is_refused() -> None:
    assert compile_faults(laughs(8)) == ()
    assert compile_faults(laughs(40)) != ()


@pytest.mark.parametrize(
    "schema",
    [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"not": {"$ref": "#"}}],
)
def test_a_schema_that_only_calls_itself_ends(schema: JsonObject) -> None:
    assert compile_faults(schema) == ()
    check_payload(version(schema), {"a": 1})


def test_a_schema_may_not_be_too_deep() -> None:
    assert compile_faults(nested(20)) == ()
    (fault,) = compile_faults(nested(40))
    assert fault.detail == "expected at most 64 levels, found 82"


def test_a_schema_may_not_have_too_many_values() -> None:
    (fault,) = compile_faults({"enum": list(range(6_000))})

    assert fault.detail == "expected at most 5000 values, found 6002"


def test_a_schema_may_not_be_too_large() -> None:
    (fault,) = compile_faults({"description": "x" * 300_000})

    assert fault.detail.startswith("expected at most 262144 bytes, found 3000")


def test_a_long_chain_of_references_neither_crashes_nor_hangs() -> None:
    definitions: JsonObject = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(1_500)}
    definitions["d1500"] = {"type": "object"}
    schema: JsonObject = {"$defs": definitions, "$ref": "#/$defs/d0"}

    compile_faults(schema)
    check_payload(version(schema), 1)


def test_a_recursive_choice_is_checked_but_faults_deep_in_it_are_not_listed() -> None:
    schema = version(expression(3))

    assert check_payload(schema, deep(14, {"op": "v1"})) == ()
    assert check_payload(schema, {"op": "v1", "args": 3}) == (
        Fault("/args", "expected array, found integer"),
    )
    assert check_payload(schema, deep(14, {"op": "v9"})) == (UNSAID,)


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        ({"items": {"type": "string"}}, [1] * 19_000),
        ({"items": {"anyOf": [{"type": "string"}] * 1_000}}, [1] * 10_000),
        ({"anyOf": [{"items": {"type": "string"}}] * 500}, [1] * 10_000),
        ({"required": [f"f{n}" for n in range(1_000)]}, {str(n): n for n in range(10_000)}),
        (
            {"properties": {"a": {"allOf": [{"$ref": "#"}] * 3}}, "required": ["a", "b"]},
            {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {}}}}}}}}},
        ),
        ({"uniqueItems": True}, [{"n": n} for n in range(9_000)] + [{"n": 1}]),
        ({"items": {"format": "regex"}}, ["(a{1000}){1000}("] * 1_000),
    ],
)
def test_listing_faults_is_bounded(schema: JsonObject, payload: JsonValue) -> None:
    began = time.perf_counter()

    found = check_payload(version(schema), payload)

    assert 1 <= len(found) <= 20
    assert time.perf_counter() - began < 10


def test_every_shape_of_fault_has_a_short_sentence() -> None:
    schema: JsonObject = {"properties": {"a": {"enum": ["x" * 500]}, "b": {"pattern": "y" * 500}}}

    for fault in check_payload(version(schema), {"a": 1, "b": "z"}):
        assert len(fault.detail) <= 160


@pytest.mark.parametrize(
    ("schema", "weight"),
    [
        ({}, 1),
        ({"required": ["a", "b"]}, 3),
        ({"allOf": [{}, {}]}, 3),
        ({"properties": {"a": {}, "b": {}}}, 2),
        ({"items": {}, "contains": {}}, 3),
        ({"prefixItems": [{}, {"allOf": [{}]}]}, 3),
        ({"additionalProperties": {}, "properties": {"a": {}}, "patternProperties": {"b": {}}}, 4),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"not": {}}}}, 3),
        ({"$ref": "#here", "$defs": {"a": {"$anchor": "here", "not": {}}}}, 3),
        ({"$ref": "#/$defs/a%25~1b", "$defs": {"a%/b": {"not": {}}}}, 3),
        ({"allOf": [{"$ref": "#/allOf/1"}, {"not": {}}]}, 6),
        ({"$ref": "#/nowhere/1"}, 2),
    ],
)
def test_a_schema_weighs_the_checks_of_one_place(schema: JsonObject, weight: int) -> None:
    assert weigh(schema) == weight


def test_a_tree_of_nodes_is_light_however_deep() -> None:
    tree: JsonObject = {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}

    assert weigh(tree, levels=32) < 200


def test_any_json_value_is_light_however_deep() -> None:
    anything: JsonObject = {
        "anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"$ref": "#"}},
            {"type": "object", "additionalProperties": {"$ref": "#"}},
        ]
    }

    assert weigh(anything, levels=32) < 1_000


def test_a_choice_that_calls_itself_from_every_branch_is_heavy() -> None:
    assert weigh(expression(3)) < 100
    assert weigh(expression(3), levels=2) < 1_000
    assert weigh(expression(4), levels=32) == HEAVY
