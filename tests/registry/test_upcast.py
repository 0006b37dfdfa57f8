"""Old payloads are brought to the newest version step by step, and a failure shows the original."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from penstock.envelope.envelope import JsonObject
from penstock.registry.declare import EventType, Payload, Vocabulary
from penstock.registry.registry import Registry
from penstock.registry.schema import SchemaVersion, schema_hash
from penstock.registry.upcast import Upcasted, UpcastFailed, Upcasts

AT = datetime(2026, 3, 1, tzinfo=UTC)
TYPE = "order.placed"


class Placed(Payload):
    """An order was placed."""

    amount: int
    currency: str


def name_amount(payload: JsonObject) -> JsonObject:
    return {"amount": payload["total"]}


def add_currency(payload: JsonObject) -> JsonObject:
    return {**payload, "currency": "EUR"}


def version(number: int, schema: JsonObject | None = None, status: Any = "active") -> SchemaVersion:
    schema = schema or {"type": "object"}
    return SchemaVersion(
        TYPE, number, status, schema, schema_hash(schema), {}, AT, "ana", AT, "ana", number
    )


NEWEST = version(3, {"type": "object", "required": ["amount", "currency"]})


def registry(upcasts: dict[int, Any], *versions: SchemaVersion, declared: str = TYPE) -> Registry:
    event = EventType(declared, Placed, version=3, upcasts=upcasts)
    found = versions or (version(1), version(2), NEWEST)
    return Registry(found, mode="strict", upcasts=Upcasts((Vocabulary("shop", (event,)),)))


def test_a_payload_climbs_every_step_to_the_newest_active_version() -> None:
    found = registry({1: name_amount, 2: add_currency}).upcast(TYPE, 1, {"total": 5})

    assert found == Upcasted({"amount": 5, "currency": "EUR"}, 3)


def test_a_payload_starts_from_the_version_it_was_stored_with() -> None:
    found = registry({1: name_amount, 2: add_currency}).upcast(TYPE, 2, {"amount": 5})

    assert found == Upcasted({"amount": 5, "currency": "EUR"}, 3)


def test_a_step_that_needs_no_upcaster_has_none() -> None:
    assert registry({2: add_currency}).upcast(TYPE, 1, {"amount": 5}) == Upcasted(
        {"amount": 5, "currency": "EUR"}, 3
    )


@pytest.mark.parametrize(
    ("event_type", "stored", "upcasts"),
    [
        (TYPE, 3, {1: name_amount}),  # it is the newest already
        (TYPE, 4, {1: name_amount}),  # newer than the newest active one
        (TYPE, None, {1: name_amount}),  # stored before the type was known
        (TYPE, 1, {}),  # nobody declared a step
        (TYPE, 2, {1: name_amount}),  # the only step is behind it
        ("order.paid", 1, {1: name_amount}),  # another type
    ],
)
def test_a_payload_without_a_step_ahead_is_shown_as_it_is(
    event_type: str, stored: int | None, upcasts: dict[int, Any]
) -> None:
    assert registry(upcasts).upcast(event_type, stored, {"total": 5}) is None


def test_no_step_leads_past_the_newest_active_version() -> None:
    drafted = registry(
        {1: name_amount, 2: add_currency}, version(1), version(2), version(3, status="draft")
    )

    assert drafted.upcast(TYPE, 1, {"total": 5}) == Upcasted({"amount": 5}, 2)


def test_an_upcaster_that_raises_fails_with_a_sentence() -> None:
    found = registry({1: name_amount}).upcast(TYPE, 1, {})

    assert found == UpcastFailed(3, "the upcaster from version 1 failed with KeyError: 'total'")


def test_what_does_not_fit_the_newest_schema_counts_as_a_failure() -> None:
    found = registry({1: name_amount}).upcast(TYPE, 1, {"total": 5})

    assert isinstance(found, UpcastFailed)
    assert found.detail == (
        "the upcasted payload does not fit: /currency expected a required field, found nothing"
    )


@pytest.mark.parametrize(
    "given", [None, "text", {"a": object()}, {1: "a"}, {"a": {1, 2}}, {"a": (1,)}, AT]
)
def test_an_upcaster_that_gives_no_json_object_fails(given: Any) -> None:
    found = registry({1: lambda _payload: given, 2: add_currency}).upcast(TYPE, 1, {"total": 5})

    assert isinstance(found, UpcastFailed)


def test_a_payload_that_is_no_object_is_not_upcasted() -> None:
    found = registry({1: name_amount}).upcast(TYPE, 1, [1, 2])

    assert found == UpcastFailed(3, "expected an object to upcast at version 1")


def test_an_upcaster_cannot_change_what_is_stored() -> None:
    def scribble(payload: JsonObject) -> JsonObject:
        inner = payload["items"]
        assert isinstance(inner, list)
        inner.append("scribbled")
        payload.clear()
        return {"amount": 1, "currency": "EUR", "items": inner}

    stored: JsonObject = {"items": [{"n": Decimal("1.10")}]}
    before = copy.deepcopy(stored)

    found = registry({1: scribble}).upcast(TYPE, 1, stored)

    assert isinstance(found, Upcasted)
    assert stored == before


def test_upcasting_is_pure_so_the_same_payload_gets_the_same_answer() -> None:
    known = registry({1: name_amount, 2: add_currency})

    assert known.upcast(TYPE, 1, {"total": 5}) == known.upcast(TYPE, 1, {"total": 5})


def test_a_registry_travels_to_executors_without_its_upcasters() -> None:
    known = registry({1: lambda payload: payload})

    travelled = pickle.loads(pickle.dumps(known))  # noqa: S301  our own bytes

    assert travelled.versions == known.versions
    assert travelled.upcast(TYPE, 1, {"total": 5}) is None


@pytest.mark.parametrize(
    "hidden",
    [
        {"$masked": True, "subject": "s"},
        {"$erased": True, "subject": "s"},
        {"$enc": "1.xyz", "subject": "s"},
    ],
)
def test_a_hidden_field_travels_along_and_is_not_checked(hidden: JsonObject) -> None:
    target = version(
        3, {"properties": {"amount": {"type": "integer"}, "currency": {"type": "string"}}}
    )
    known = registry({1: name_amount, 2: add_currency}, version(1), version(2), target)

    assert known.upcast(TYPE, 1, {"total": hidden}) == Upcasted(
        {"amount": hidden, "currency": "EUR"}, 3
    )


def test_only_what_hides_a_value_is_passed_over() -> None:
    target = version(3, {"properties": {"amount": {"type": "object", "required": ["x"]}}})
    known = registry({1: name_amount}, version(1), version(2), target)

    assert isinstance(known.upcast(TYPE, 1, {"total": {"$masked": True}}), UpcastFailed)
    assert isinstance(known.upcast(TYPE, 1, {"total": {"subject": "s", "y": 1}}), UpcastFailed)
    inside: JsonObject = {"$masked": True, "subject": "s"}
    assert isinstance(known.upcast(TYPE, 1, {"total": inside}), Upcasted)
