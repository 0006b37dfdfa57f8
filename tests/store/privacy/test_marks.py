"""What a schema marks is found in a payload, by whatever way the schema gets there."""

from __future__ import annotations

from typing import Any

import pytest
from tests.store.privacy.support import CUSTOMER, PAYLOAD, version

from penstock.catalog.vocabularies import ALL
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.schema import PayloadCheck
from penstock.store.privacy.marks import Marks, as_stored, mark_faults, marks_of
from penstock.store.privacy.paths import at, pointer_to, replaced

PII = {"x-pii": {"subject": "/id"}}


def found(schema: JsonObject, payload: JsonValue) -> dict[str, str | None]:
    return {field.pointer: field.subject for field in Marks(schema).find(payload)}


def test_every_marked_field_is_found_with_its_subject() -> None:
    assert found(CUSTOMER, PAYLOAD) == {
        "/email": "cust-17",
        "/age": "cust-17",
        "/address": "cust-17",
        "/contacts/0/phone": "bob",
        "/contacts/1/phone": "carol",
    }


WAYS: dict[str, JsonObject] = {
    "properties": {"properties": {"name": PII}},
    "additionalProperties": {"properties": {"id": {}}, "additionalProperties": PII},
    "$ref": {"properties": {"name": {"$ref": "#/$defs/n"}}, "$defs": {"n": PII}},
    "$anchor": {"properties": {"name": {"$ref": "#n"}}, "$defs": {"n": {"$anchor": "n", **PII}}},
    "a reference beside": {
        "properties": {"name": {"$ref": "#/$defs/n", **PII}},
        "$defs": {"n": {}},
    },
    "allOf": {"allOf": [{"properties": {"name": PII}}]},
    "anyOf": {"anyOf": [{"required": ["no"]}, {"properties": {"name": PII}}]},
    "oneOf inside": {"properties": {"name": {"oneOf": [{"type": "null"}, PII]}}},
    "if then": {"if": {"required": ["id"]}, "then": {"properties": {"name": PII}}},
    "else": {"if": False, "else": {"properties": {"name": PII}}},
    "dependentSchemas": {"dependentSchemas": {"id": {"properties": {"name": PII}}}},
    "root reference": {"$ref": "#/$defs/root", "$defs": {"root": {"properties": {"name": PII}}}},
    "one branch of two": {
        "allOf": [{"properties": {"name": {"type": "string"}}}, {"properties": {"name": PII}}]
    },
}


@pytest.mark.parametrize("way", WAYS)
def test_a_mark_is_found_by_every_way_a_schema_applies(way: str) -> None:
    assert found(WAYS[way], {"id": "u1", "name": "Alice"}) == {"/name": "u1"}
    assert mark_faults(WAYS[way]) == ()


def test_marks_of_items_are_found_by_their_place() -> None:
    schema: JsonObject = {"prefixItems": [{}, PII], "items": {"properties": {"n": PII}}}

    assert found(schema, ["a", "b", {"n": 1}, {"m": 2}]) == {"/1": None, "/2/n": None}


def test_a_schema_that_calls_itself_is_followed_as_deep_as_the_payload_goes() -> None:
    schema: JsonObject = {
        "properties": {"name": {"x-pii": {"subject": "1/id"}}, "child": {"$ref": "#"}}
    }
    payload: Any = {"id": 0, "name": "n0"}
    for depth in range(1, 30):
        payload = {"id": depth, "name": f"n{depth}", "child": payload}

    assert len(found(schema, payload)) == 30
    assert found(schema, payload)["/child/child/name"] == "27"


def test_a_field_inside_a_marked_field_is_part_of_it() -> None:
    schema: JsonObject = {"properties": {"person": {**PII, "properties": {"name": PII}}}}

    assert found(schema, {"id": "u", "person": {"name": "A"}}) == {"/person": "u"}


def test_the_whole_payload_can_be_marked() -> None:
    assert found(PII, {"id": "u", "x": 1}) == {"": "u"}


def test_null_is_nobodys_data() -> None:
    assert found({"properties": {"name": PII}}, {"id": "u", "name": None}) == {}


@pytest.mark.parametrize(
    ("subject", "whose"),
    [("/id", "u"), ("/n", "7"), ("/list/1", "b"), ("/a~1b", "s"), ("/flag", None), ("/none", None),
     ("/deep/id", None), ("/list", None), ("/empty", None), ("1/id", "u"), ("9/id", "u")],
)  # fmt: skip
def test_the_subject_is_the_text_or_number_it_points_to(subject: str, whose: str | None) -> None:
    payload: JsonValue = {
        "id": "u", "n": 7, "list": ["a", "b"], "a/b": "s", "flag": True, "empty": "", "name": "A",
    }  # fmt: skip

    assert found({"properties": {"name": {"x-pii": {"subject": subject}}}}, payload) == {
        "/name": whose
    }


def test_many_branches_that_lead_to_one_place_cost_no_more_than_one() -> None:
    branches: list[JsonValue] = [{"$ref": "#/$defs/node"} for _ in range(500)]
    schema: JsonObject = {
        "$ref": "#/$defs/node",
        "$defs": {"node": {"anyOf": branches, "properties": {"name": PII}, "items": {"$ref": "#"}}},
    }

    assert len(found(schema, [{"name": "A"}] * 5_000)) == 5_000


@pytest.mark.parametrize("mark", [
    True, None, {}, "/id", {"subject": 1}, {"subject": "id"}, {"subject": ""},
    {"subject": "/a~2"}, {"subject": "0/id"},
])  # fmt: skip
def test_a_mark_that_names_no_subject_is_refused_and_still_hides(mark: JsonValue) -> None:
    schema: JsonObject = {"properties": {"name": {"x-pii": mark}}}

    assert [fault.pointer for fault in mark_faults(schema)] == ["/properties/name/x-pii"]
    assert found(schema, {"name": "A"}) == {"/name": None}


@pytest.mark.parametrize("word", ["patternProperties", "not", "contains", "propertyNames",
                                  "unevaluatedProperties", "unevaluatedItems"])  # fmt: skip
def test_a_mark_where_it_could_not_be_found_is_refused(word: str) -> None:
    marked: JsonObject = {"$ref": "#/$defs/n"}
    inside: JsonObject = {"^x": marked} if word == "patternProperties" else marked
    schema: JsonObject = {word: inside, "$defs": {"n": PII}}

    assert "is not under" in mark_faults(schema)[0].detail


def test_a_field_that_is_called_like_a_keyword_may_be_marked() -> None:
    schema: JsonObject = {"properties": {"not": PII, "contains": PII, "x-pii": {"type": "string"}}}

    assert mark_faults(schema) == ()
    assert set(found(schema, {"not": 1, "contains": 2, "x-pii": "3"})) == {"/not", "/contains"}


def test_nearly_all_types_mark_nothing() -> None:
    assert marks_of(None) is None
    assert marks_of(version("a.b", {"type": "object", "enum": [{"x-pii": 1}]})) is None
    assert marks_of(version("a.b", CUSTOMER)) is marks_of(version("a.c", CUSTOMER)) is not None


@pytest.mark.parametrize("event", [e for v in ALL for e in v.events], ids=lambda e: e.name)
def test_what_our_own_vocabularies_mark_can_be_acted_on(event: Any) -> None:
    assert mark_faults(event.schema()) == ()


def test_replacing_shares_what_does_not_change_and_changes_nothing_in_place() -> None:
    value: JsonValue = {"a": [1, {"b": 2}], "c": {"d": 3}}

    changed = replaced(value, {("a", 1, "b"): 9, ("x",): 1, ("a", 7): 1, ("c", "d", "e"): 1})

    assert changed == {"a": [1, {"b": 9}], "c": {"d": 3}}
    assert value == {"a": [1, {"b": 2}], "c": {"d": 3}}
    assert replaced(value, {}) is value
    assert replaced(value, {(): 5}) == 5


def test_a_path_leads_to_a_value_or_to_nothing() -> None:
    value: JsonValue = {"a": [1, {"b/~": 2}]}

    assert at(value, ("a", 1, "b/~")) == 2
    assert at(value, ("a", 2)) is None
    assert at(value, ("a", "0")) is None
    assert pointer_to(("a", 1, "b/~")) == "/a/1/b~1~0"


def test_what_is_stored_fits_the_schema_as_it_is_stored() -> None:
    hidden: JsonObject = {"$enc": "1.AAAA", "subject": "5f0e"}
    check = PayloadCheck(as_stored(CUSTOMER))

    assert check.faults(PAYLOAD) == ()
    assert check.faults({"customerId": "c", "email": hidden, "contacts": [{"phone": hidden}]}) == ()
    assert check.faults({"customerId": "c", "email": {"$enc": 1, "subject": "x"}}) != ()
    assert check.faults({"customerId": hidden}) != (), "what is not marked is never hidden"
    assert PayloadCheck(CUSTOMER).faults({"customerId": "c", "email": hidden}) != ()


def test_a_field_called_like_the_mark_is_no_mark() -> None:
    schema: JsonObject = {"properties": {"x-pii": {"type": "string"}}, "enum": [{"x-pii": {}}]}

    assert as_stored(schema) == schema


def test_a_schema_without_marks_is_stored_as_it_is_sent() -> None:
    plain: JsonObject = {"type": "object", "enum": [{"a": 1}]}

    assert as_stored(plain) is plain
