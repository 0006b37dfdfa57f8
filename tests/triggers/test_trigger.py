"""Triggers as values: what they hold, what they may not say, and what makes a new version."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError
from tests.triggers.definitions import PLAIN, trigger

from penstock.envelope.codec import encode, load_stored
from penstock.triggers.trigger import TriggerSpec, is_material_change

FULL: dict[str, Any] = {
    "name": "gold orders",
    "description": "Ship what gold customers order.",
    "eventType": "shop.order.*",
    "eventSource": "shop.api",
    "predicates": [
        {"path": "$.payload.tier", "operator": "equals", "value": None},
        {"any": [{"not": {"path": "$.payload.n", "operator": "in", "values": [1, "a"]}}]},
        {"path": "$.type", "operator": "regex", "value": "^s", "flags": "i"},
    ],
    "parameterTemplate": {"id": "{{ event.payload.id }}", "n": Decimal("0.1000000000000000000001")},
    "runKeyTemplate": "order-{{ parameters.id }}",
    "idempotencyKeyExpression": "{{ event.payload.id }}",
    "throttleWindowMs": 60_000,
    "throttleCount": 10,
    "maxConcurrency": 3,
    "per": "batch",
    "batchMaxEvents": 100,
    "batchTimeoutMs": 5_000,
    "groupKey": "{{ event.payload.region }}",
    "maxAttempts": 7,
    "status": "shadow",
    "metadata": {"team": "shipping"},
}


def spec(**said: Any) -> TriggerSpec:
    return TriggerSpec.model_validate(PLAIN | said)


def test_a_spec_survives_the_wire_the_database_and_another_process() -> None:
    full = TriggerSpec.model_validate(FULL)

    assert TriggerSpec.model_validate(full.wire()) == full
    assert TriggerSpec.model_validate(load_stored(encode(full.wire()))) == full
    assert pickle.loads(pickle.dumps(full)) == full  # noqa: S301
    assert {name: full.wire()[name] for name in FULL if name != "predicates"} == {
        name: value for name, value in FULL.items() if name != "predicates"
    }


def test_what_is_not_said_has_its_default() -> None:
    plain = spec()

    assert (plain.status, plain.per, plain.max_attempts) == ("active", "event", 5)
    assert plain.predicates == ()
    assert plain.wire()["throttleCount"] is None


def test_a_spec_never_changes() -> None:
    with pytest.raises(ValidationError):
        spec().name = "other"


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({}, {}, False),
        ({}, {"name": "other"}, True),
        ({}, {"description": "new"}, True),
        ({}, {"status": "disabled"}, True),
        ({}, {"metadata": {"a": 1}}, True),
        ({"metadata": {"a": 1}}, {"metadata": {"a": True}}, True),
        ({"metadata": {"a": 1, "b": 2}}, {"metadata": {"b": 2, "a": 1}}, False),
        ({}, {"maxAttempts": 5}, False),
        (
            {"predicates": [{"path": "$.a", "operator": "exists"}]},
            {"predicates": [{"type": "jsonPath", "path": "$.a", "operator": "exists"}]},
            False,
        ),
    ],
)
def test_only_another_word_makes_another_version(before: Any, after: Any, changed: bool) -> None:
    assert is_material_change(spec(**before), spec(**after)) is changed


def test_a_trigger_shows_itself_with_everything_its_spec_says() -> None:
    shown = trigger(metadata={"team": "x"}).wire()

    assert shown["id"] == "t-1"
    assert shown["workflowSlug"] == "ship"
    assert shown["version"] == 3
    assert shown["eventType"] == "shop.order.placed"
    assert shown["metadata"] == {"team": "x"}
    assert shown["createdAt"] == "2026-03-01T12:00:00.000Z"
    assert shown["updatedBy"] == "ann"
