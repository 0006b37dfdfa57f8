"""A trigger that compares what nobody can read is refused, and one that hands it on is warned."""

from __future__ import annotations

from typing import Any

import pytest
from tests.store.privacy.support import CUSTOMER, version

from penstock.envelope.envelope import JsonObject
from penstock.registry.registry import Registry
from penstock.triggers.check import check_spec
from penstock.triggers.personal import (
    Blind,
    TriggerReadsPersonal,
    blind_reads,
    refuse_blind,
)
from penstock.triggers.trigger import TriggerSpec

JOINED, INVITED, MOVED = "shop.customer.joined", "shop.customer.invited", "shop.customer.moved"
OPEN: JsonObject = {"type": "object", "properties": {"email": {"type": "string"}}}
REGISTRY = Registry(
    [version(JOINED, CUSTOMER), version(INVITED, OPEN), version(MOVED, {"type": "object"})],
    mode="strict",
)


def spec(event_type: str = JOINED, **said: Any) -> TriggerSpec:
    return check_spec({"name": "greet", "eventType": event_type, **said})


def leaf(path: str, operator: str = "equals", **said: Any) -> JsonObject:
    operand = {} if operator == "exists" else {"value": "x"}
    return {"path": path, "operator": operator, **operand, **said}


def blind(*predicates: JsonObject, event_type: str = JOINED, **said: Any) -> list[Blind]:
    return blind_reads(spec(event_type, predicates=list(predicates), **said), REGISTRY)


@pytest.mark.parametrize(
    "clause",
    [
        leaf("$.payload.email"),
        leaf("$.payload['email']", "notEquals"),
        leaf("$.payload.email", "regex", orMissing=True),
        leaf("$.payload.address.city"),
        leaf("$.payload.address.city", "exists"),
        leaf("$.payload.contacts[0].phone"),
        leaf("$.payload.contacts[*].phone", "contains"),
        leaf("$.payload.contacts[?@.phone == '1']", "exists"),
        leaf("$..phone"),
    ],
    ids=str,
)
def test_comparing_a_personal_field_is_refused_where_it_is_said(clause: JsonObject) -> None:
    with pytest.raises(TriggerReadsPersonal) as caught:
        refuse_blind(spec(predicates=[{"any": [leaf("$.source"), {"not": clause}]}]), REGISTRY)

    (fault,) = caught.value.faults
    assert fault.pointer == "/predicates/0/any/1/not/path"
    assert fault.detail.startswith("expected a field that can be compared, found that /")
    assert fault.detail.endswith(f"is personal in {JOINED}: it is ciphertext here")


@pytest.mark.parametrize(
    "clause",
    [
        leaf("$.payload.email", "exists"),
        leaf("$.payload.contacts[*].phone", "exists"),
        leaf("$.payload.email", "equals", value=None),
        leaf("$.payload.email", "notEquals", value=None),
        leaf("$.payload.email.subject"),
        leaf("$.payload.customerId"),
        leaf("$.payload.contacts[?@.id == '1']", "exists"),
        leaf("$.payload.*"),
        leaf("$.payload.note"),
        leaf("$.tags.email"),
    ],
    ids=str,
)
def test_what_can_be_seen_of_a_personal_field_and_what_is_beside_it_may_be_compared(
    clause: JsonObject,
) -> None:
    assert blind(clause) == []


@pytest.mark.parametrize(
    "said",
    [
        {"idempotencyKeyExpression": "{{ event.payload.email }}"},
        {"runKeyTemplate": "{{ event.payload.email | downcase }}"},
        {"debounceMs": 5, "debounceKey": "{{ event.payload.email }}"},
        {"per": "latest", "groupKey": "{{ events[0].payload.email }}"},
    ],
    ids=str,
)
def test_a_key_of_ciphertext_is_refused_because_no_two_are_alike(said: dict[str, Any]) -> None:
    with pytest.raises(TriggerReadsPersonal) as caught:
        refuse_blind(spec(**said), REGISTRY)

    assert [fault.pointer for fault in caught.value.faults] == [f"/{list(said)[-1]}"]


def test_the_pseudonym_is_a_key() -> None:
    assert blind(idempotencyKeyExpression="{{ event.payload.email.subject }}") == []


def test_handing_a_personal_field_to_the_run_is_a_warning() -> None:
    (found,) = blind(parameterTemplate={"to": ["{{ event.payload.email }}"]})

    assert (found.pointer, found.is_refused) == ("/parameterTemplate", False)
    assert found.detail == f"/email is personal in {JOINED}: the run is handed its ciphertext"
    assert blind(parameterTemplate={"all": "{{ event.payload }}"}) == []


def test_a_field_that_one_of_the_types_has_in_the_clear_may_be_compared_with_a_warning() -> None:
    (found,) = blind(leaf("$.payload.email"), event_type="shop.customer.*")

    assert not found.is_refused
    assert found.detail == (
        f"/email is personal in {JOINED}, though not in every type it listens to: "
        "there it is ciphertext"
    )


def test_a_field_that_no_type_has_in_the_clear_is_refused_for_all_of_them() -> None:
    (found,) = blind(leaf("$.payload.age"), event_type="shop.customer.*")

    assert found.is_refused


def test_a_type_that_nobody_listens_to_is_no_matter() -> None:
    assert blind(leaf("$.payload.email"), event_type=INVITED) == []
    assert blind(leaf("$.payload.email"), event_type="nobody.registered.it") == []


def test_a_trigger_that_read_it_before_it_was_marked_can_still_be_changed() -> None:
    before = spec(predicates=[leaf("$.payload.email")])
    off = spec(predicates=[leaf("$.payload.email")], status="disabled")
    worse = spec(predicates=[leaf("$.payload.email"), leaf("$.payload.age")])

    refuse_blind(off, REGISTRY, before=before)
    with pytest.raises(TriggerReadsPersonal, match="/age") as caught:
        refuse_blind(worse, REGISTRY, before=before)

    assert len(caught.value.faults) == 1
