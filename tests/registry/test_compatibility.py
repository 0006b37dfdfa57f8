"""Two schemas are compared field by field, the verdict is right, and it is said in plain words."""

from __future__ import annotations

import copy
import time
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.registry.compatibility import breaks, compare, verdict
from penstock.registry.difference import Change


def obj(required: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": [*required]}


TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
NUMBER = {"type": "number"}
CLOSED = {"additionalProperties": False}

# name: (old, new, verdict, the sentences)
EVOLUTIONS: dict[str, tuple[Any, Any, str, list[str]]] = {
    "nothing changed": (obj(a=TEXT), obj(a=TEXT), "full", []),
    "only prose changed": (
        obj(a=TEXT),
        {**obj(a={**TEXT, "description": "a word", "title": "A"}), "$comment": "x"},
        "full",
        [],
    ),
    "another way to say the same": (
        obj(a={"type": ["string", "null"], "maxLength": 9}),
        obj(a={"anyOf": [{"type": "null"}, {"type": "string", "maxLength": 9}]}),
        "full",
        [],
    ),
    "a definition got another name": (
        {"$defs": {"A": TEXT}, **obj(a={"$ref": "#/$defs/A"})},
        {"definitions": {"B": TEXT}, **obj(a={"allOf": [{"$ref": "#/definitions/B"}]})},
        "full",
        [],
    ),
    "an anchor instead of a path": (
        {"$defs": {"A": {"$anchor": "word", **TEXT}}, **obj(a={"$ref": "#word"})},
        obj(a=TEXT),
        "full",
        [],
    ),
    "an optional field was added": (obj(), obj(a=TEXT), "full", ["/a was added"]),
    "a required field was added": (
        obj(),
        obj(("a",), a=TEXT),
        "forward",
        ["/a was added as a required field"],
    ),
    "a required field with a default was added": (
        obj(),
        obj(("a",), a={**TEXT, "default": "x"}),
        "forward",
        ["/a was added as a required field"],
    ),
    "an undeclared field is required now": (
        {"type": "object"},
        {"type": "object", "required": ["a"]},
        "forward",
        ["/a is required now"],
    ),
    "an optional field was removed": (obj(a=TEXT), obj(), "full", ["/a was removed"]),
    "a required field was removed": (
        obj(("a",), a=TEXT),
        obj(),
        "backward",
        ["/a was required and was removed"],
    ),
    "a field became required": (
        obj(a=TEXT),
        obj(("a",), a=TEXT),
        "forward",
        ["/a is required now"],
    ),
    "a field became optional": (
        obj(("a",), a=TEXT),
        obj(a=TEXT),
        "backward",
        ["/a is no longer required"],
    ),
    "a required field is not described any more": (
        obj(("a",), a=TEXT),
        {"type": "object", "required": ["a"]},
        "backward",
        ["/a was string, is now any JSON"],
    ),
    "an optional field is required now, and not described any more": (
        obj(a=TEXT),
        {"type": "object", "required": ["a"]},
        "none",
        ["/a is required now", "/a was string, is now any JSON"],
    ),
    "a field was added to a closed schema": (
        {**obj(), **CLOSED},
        {**obj(a=TEXT), **CLOSED},
        "backward",
        ["/a was added, which was refused before"],
    ),
    "a field was removed from a closed schema": (
        {**obj(a=TEXT), **CLOSED},
        {**obj(), **CLOSED},
        "forward",
        ["/a was removed, and is refused now"],
    ),
    "a schema was closed": (
        obj(a=TEXT),
        {**obj(a=TEXT), **CLOSED},
        "forward",
        ["the payload refuses fields that are not declared now"],
    ),
    "a schema was opened": (
        {**obj(a=TEXT), **CLOSED},
        obj(a=TEXT),
        "backward",
        ["the payload allows fields that are not declared now"],
    ),
    "other fields have another type": (
        {"type": "object", "additionalProperties": WHOLE},
        {"type": "object", "additionalProperties": NUMBER},
        "backward",
        ["/* was integer, is now number"],
    ),
    "a field was added where others have a type": (
        {"type": "object", "additionalProperties": TEXT},
        {**obj(a=WHOLE), "additionalProperties": TEXT},
        "none",
        ["/a was added", "/a was string, is now integer"],
    ),
    "retyped": (obj(a=WHOLE), obj(a=TEXT), "none", ["/a was integer, is now string"]),
    "integer became number": (
        obj(a=WHOLE),
        obj(a=NUMBER),
        "backward",
        ["/a was integer, is now number"],
    ),
    "number became integer": (
        obj(a=NUMBER),
        obj(a=WHOLE),
        "forward",
        ["/a was number, is now integer"],
    ),
    "null is allowed now": (
        obj(a=TEXT),
        obj(a={"anyOf": [TEXT, {"type": "null"}]}),
        "backward",
        ["/a was string, is now string or null"],
    ),
    "null is not allowed any more": (
        obj(a={"type": ["string", "null"]}),
        obj(a=TEXT),
        "forward",
        ["/a was string or null, is now string"],
    ),
    "an enum got a value": (
        obj(a={"enum": ["x"]}),
        obj(a={"enum": ["x", "y"]}),
        "backward",
        ['/a also allows "y" now'],
    ),
    "an enum lost a value": (
        obj(a={"enum": ["x", "y"]}),
        obj(a={"enum": ["x"]}),
        "forward",
        ['/a no longer allows "y"'],
    ),
    "an enum came": (
        obj(a=TEXT),
        obj(a={"type": "string", "enum": ["x"]}),
        "forward",
        ['/a allows only "x" now'],
    ),
    "an enum went": (
        obj(a={"enum": ["x"]}),
        obj(a={"type": "string", "maxLength": 1}),
        "backward",
        ['/a is no longer limited to "x"'],
    ),
    "an enum went, and a limit came that shuts a value out": (
        obj(a={"enum": ["x", "long"]}),
        obj(a={"type": "string", "maxLength": 1}),
        "none",
        ['/a no longer allows "long"', '/a is no longer limited to "x", "long"'],
    ),
    "a constant changed": (
        obj(a={"const": 1}),
        obj(a={"const": 2}),
        "none",
        ["/a no longer allows 1", "/a also allows 2 now"],
    ),
    "a minimum rose": (
        obj(a={**WHOLE, "minimum": 0}),
        obj(a={**WHOLE, "minimum": 1}),
        "forward",
        ["/a has a minimum of 1 now, was 0"],
    ),
    "a minimum is itself shut out": (
        obj(a={**NUMBER, "minimum": 0}),
        obj(a={**NUMBER, "exclusiveMinimum": 0}),
        "forward",
        ["/a has a minimum of 0, itself shut out now, was 0"],
    ),
    "a maximum rose": (
        obj(a={**WHOLE, "maximum": 10}),
        obj(a={**WHOLE, "maximum": 99}),
        "backward",
        ["/a has a maximum of 99 now, was 10"],
    ),
    "a maximum is no longer shut out": (
        obj(a={**NUMBER, "exclusiveMaximum": 10}),
        obj(a={**NUMBER, "maximum": 10}),
        "backward",
        ["/a has a maximum of 10 now, was 10, itself shut out"],
    ),
    "a step became coarser": (
        obj(a={**NUMBER, "multipleOf": 0.1}),
        obj(a={**NUMBER, "multipleOf": 0.5}),
        "forward",
        ["/a must be a multiple of 0.5 now, was of 0.1"],
    ),
    "a length limit came": (
        obj(a=TEXT),
        obj(a={**TEXT, "maxLength": 5, "minLength": 1}),
        "forward",
        ["/a has a least length of 1 now", "/a has a greatest length of 5 now"],
    ),
    "a pattern changed": (
        obj(a={**TEXT, "pattern": "^a"}),
        obj(a={**TEXT, "pattern": "^b"}),
        "none",
        ["/a has the pattern ^b now, was ^a"],
    ),
    "a format came": (
        obj(a=TEXT),
        obj(a={**TEXT, "format": "date-time"}),
        "forward",
        ["/a must have the format date-time now"],
    ),
    "items changed": (
        obj(a={"type": "array", "items": obj(x=WHOLE)}),
        obj(a={"type": "array", "items": obj(x=TEXT)}),
        "none",
        ["/a/*/x was integer, is now string"],
    ),
    "items must be unique": (
        obj(a={"type": "array"}),
        obj(a={"type": "array", "uniqueItems": True}),
        "forward",
        ["/a must not hold an item twice now"],
    ),
    "the first item changed": (
        obj(a={"type": "array", "prefixItems": [TEXT, TEXT]}),
        obj(a={"type": "array", "prefixItems": [WHOLE, TEXT]}),
        "none",
        ["/a/0 was string, is now integer"],
    ),
    "an array may be shorter": (
        obj(a={"type": "array", "minItems": 2}),
        obj(a={"type": "array", "minItems": 1}),
        "backward",
        ["/a has a least number of items of 1 now, was 2"],
    ),
    "a shape was added to a choice": (
        obj(a={"oneOf": [obj(("x",), x=TEXT)]}),
        obj(a={"oneOf": [obj(("x",), x=TEXT), obj(("y",), y=TEXT)]}),
        "backward",
        ["/a allows 1 more shapes of object now"],
    ),
    "a shape was taken from a choice": (
        obj(a={"oneOf": [obj(("x",), x=TEXT), obj(("y",), y=TEXT)]}),
        obj(a={"oneOf": [obj(("x",), x=TEXT)]}),
        "forward",
        ["/a no longer allows 1 of 2 shapes of object"],
    ),
    "one shape of a choice changed": (
        obj(a={"anyOf": [obj(("k",), k={"const": 1}), obj(("k", "x"), k={"const": 2}, x=WHOLE)]}),
        obj(a={"anyOf": [obj(("k",), k={"const": 1}), obj(("k", "x"), k={"const": 2}, x=TEXT)]}),
        "none",
        ["/a/x was integer, is now string"],
    ),
    "a rule that is only compared whole": (
        {"type": "object", "not": {"required": ["a"]}},
        {"type": "object", "not": {"required": ["b"]}},
        "none",
        ["the payload has another rule not now"],
    ),
    "a rule for names came": (
        {"type": "object"},
        {"type": "object", "propertyNames": {"pattern": "^a"}},
        "forward",
        ["the payload has the rule propertyNames now"],
    ),
    "a name with a slash": (
        obj(**{"a/b": WHOLE}),
        obj(**{"a/b": TEXT}),
        "none",
        ["/a~1b was integer, is now string"],
    ),
    "nothing fits any more": (
        {"type": "string"},
        {"type": "string", "enum": [1]},
        "forward",
        ["the payload was string, is now nothing at all"],
    ),
    "anything goes": (obj(a=WHOLE), obj(a={}), "backward", ["/a was integer, is now any JSON"]),
}


@pytest.mark.parametrize("name", EVOLUTIONS)
def test_an_evolution_gets_its_verdict_and_its_sentences(name: str) -> None:
    old, new, expected, sentences = EVOLUTIONS[name]

    found = compare(old, new)

    assert [each.sentence for each in found] == sentences
    assert verdict(found) == expected


@pytest.mark.parametrize("name", EVOLUTIONS)
def test_the_way_back_has_the_verdict_turned_round(name: str) -> None:
    old, new, expected, _ = EVOLUTIONS[name]
    turned = {"backward": "forward", "forward": "backward"}

    assert verdict(compare(new, old)) == turned.get(expected, expected)


@pytest.mark.parametrize("name", EVOLUTIONS)
def test_comparing_changes_neither_schema(name: str) -> None:
    old, new, _, _ = EVOLUTIONS[name]
    before = copy.deepcopy((old, new))

    compare(old, new)

    assert (old, new) == before


def test_a_schema_that_refers_to_itself_is_compared_to_the_end() -> None:
    def tree(value: Any) -> Any:
        node = {"type": "object", "properties": {"v": value, "kids": {"type": "array"}}}
        node["properties"]["kids"]["items"] = {"$ref": "#"}  # type: ignore[index]
        return node

    found = compare(tree(WHOLE), tree(TEXT))

    assert found[0].sentence == "/v was integer, is now string"
    assert verdict(found) == "none"
    assert compare(tree(WHOLE), tree(WHOLE)) == ()


def test_what_is_gone_or_retyped_is_told_apart_for_those_who_read_it() -> None:
    found = compare(obj(a=TEXT, b=TEXT, c=TEXT), obj(b=WHOLE, c={**TEXT, "maxLength": 3}))

    assert {each.pointer: each.change for each in found} == {
        "/a": Change.REMOVED,
        "/b": Change.RETYPED,
        "/c": Change.NARROWED,
    }
    assert [each.pointer for each in breaks(found)] == ["/b", "/c"]


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        {"allOf": [{"anyOf": [TEXT, WHOLE, NUMBER, {"maxLength": n}]} for n in range(12)]},
        {"allOf": [{"anyOf": [{"maxLength": n}, {"minLength": n}]} for n in range(40)]},
        {
            "$defs": {
                f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
                for n in range(60)
            },
            "$ref": "#/$defs/d0",
        },
        {"type": "object", "properties": {f"p{n}": {"$ref": "#"} for n in range(30)}},
    ],
)
def test_a_schema_made_to_take_for_ever_is_given_up_on_and_counts_as_broken(schema: Any) -> None:
    began = time.monotonic()

    found = compare(schema, {**schema, "title": "next", "minProperties": 1, "type": "object"})

    assert time.monotonic() - began < 5
    assert breaks(found)


# Whatever the verdict says must hold for payloads.

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "maxLength": 2},
        {"type": "string", "minLength": 1},
        {"type": "integer"},
        {"type": "integer", "minimum": 1},
        {"type": "number", "exclusiveMaximum": 2},
        {"type": "number", "multipleOf": 2},
        {"type": ["integer", "null"]},
        {"enum": ["x", 1, None]},
        {"enum": ["x", "xyz"]},
        {"const": "x"},
        {"type": "boolean"},
        {},
        True,
        False,
    ]
)


def wider(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(NAMES, inner, max_size=3)
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": fields},
        optional={
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": st.one_of(st.booleans(), inner),
            "maxProperties": st.integers(1, 3),
        },
    )
    arrays = st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "maxItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
        },
    )
    choices = st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)})
    both = st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)})
    return st.one_of(objects, arrays, choices, both)


SCHEMAS = st.recursive(SCALARS, wider, max_leaves=6).filter(lambda s: isinstance(s, dict))
VALUES = st.recursive(
    st.sampled_from([None, True, 0, 1, 2, 3, 1.5, "", "x", "xyz"]),
    lambda inner: st.one_of(st.dictionaries(NAMES, inner, max_size=3), st.lists(inner, max_size=3)),
    max_leaves=6,
)


@settings(max_examples=600, deadline=None)
@given(SCHEMAS, SCHEMAS, st.lists(VALUES, min_size=5, max_size=20))
def test_a_payload_never_contradicts_the_verdict(old: Any, new: Any, payloads: list[Any]) -> None:
    found = compare(old, new)
    # An undeclared field may always have been sent; that is what the stored events are asked for.
    sure = not any(each.change in (Change.ADDED, Change.REMOVED) for each in found)
    before, after = jsonschema_rs.validator_for(old), jsonschema_rs.validator_for(new)

    for payload in payloads:
        fitted, fits = before.is_valid(payload), after.is_valid(payload)
        if sure and fitted and not fits:
            assert breaks(found), f"{payload} fitted and does not fit now"
        if sure and fits and not fitted:
            assert any(each.widens for each in found), f"{payload} fits now and did not before"


@settings(max_examples=300, deadline=None)
@given(SCHEMAS)
def test_a_schema_is_always_compatible_with_itself(schema: Any) -> None:
    assert compare(schema, copy.deepcopy(schema)) == ()
