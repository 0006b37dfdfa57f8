"""Compiled triggers: which events they want, and the keys and parameters they make."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from tests.triggers.definitions import NOON, compiled, document, scope

from penstock.triggers.compiled import KEY_CHARS_MAX, Scope
from penstock.triggers.template import TemplateFailed


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("shop.order.placed", True),
        ("shop.order.*", True),
        ("shop.**", True),
        ("shop.*", False),
        ("shop.order.paid", False),
        ("SHOP.*.*", False),
    ],
)
def test_a_trigger_wants_its_type_or_what_its_glob_stands_for(pattern: str, wanted: bool) -> None:
    assert compiled(eventType=pattern).wants("shop.order.placed", "shop.api") is wanted


@pytest.mark.parametrize("pattern", ["shop.order.placed", "shop.**"])
def test_a_trigger_with_a_source_wants_only_that_one(pattern: str) -> None:
    picky = compiled(eventType=pattern, eventSource="shop.api")

    assert picky.wants("shop.order.placed", "shop.api")
    assert not picky.wants("shop.order.placed", "shop.worker")


def test_parameters_and_run_key_are_rendered() -> None:
    made = compiled(
        parameterTemplate={"id": "{{ event.payload.id }}", "by": "{{ trigger.name }}@{{ now }}"},
        runKeyTemplate="order-{{ parameters.id }}-{{ trigger.version }}",
    )

    parameters = made.parameters(scope({"id": 42}))

    assert parameters == {"id": 42, "by": "gold orders@2026-03-01T12:00:00.000Z"}
    assert made.run_key(scope({"id": 42}), parameters) == "order-42-3"


def test_without_templates_there_are_no_keys_and_no_parameters() -> None:
    made = compiled()

    assert made.parameters(scope({})) == {}
    assert made.run_key(scope({}), {}) is None
    assert made.idempotency_key(scope({})) is None
    assert made.debounce_key(scope({})) == ""
    assert made.group_key(scope({})) == ""


@pytest.mark.parametrize(
    ("payload", "key"), [({"id": " o-1 "}, "o-1"), ({"id": ""}, None), ({}, None), ({"id": 7}, "7")]
)
def test_an_idempotency_key_is_trimmed_and_a_blank_one_is_none(payload: Any, key: Any) -> None:
    made = compiled(idempotencyKeyExpression="{{ event.payload.id }}")

    assert made.idempotency_key(scope(payload)) == key


def test_keys_that_differ_only_in_punctuation_stay_different() -> None:
    made = compiled(idempotencyKeyExpression="{{ event.payload.id }}")

    assert made.idempotency_key(scope({"id": "a:b"})) != made.idempotency_key(scope({"id": "a-b"}))


def test_a_key_that_is_too_long_fails_instead_of_being_cut() -> None:
    made = compiled(per="latest", groupKey="{{ event.payload.id }}")

    with pytest.raises(TemplateFailed, match="500"):
        made.group_key(scope({"id": "x" * (KEY_CHARS_MAX + 1)}))


def test_debounce_and_group_keys_are_rendered() -> None:
    assert (
        compiled(debounceMs=1, debounceKey="{{ event.payload.a }}").debounce_key(scope({"a": "x"}))
        == "x"
    )
    assert (
        compiled(per="latest", groupKey="{{ event.payload.a }}").group_key(scope({"a": "x"})) == "x"
    )


def test_a_batch_sees_all_its_events() -> None:
    made = compiled(
        per="batch",
        batchMaxEvents=10,
        batchTimeoutMs=1_000,
        parameterTemplate={
            "ids": "[{% for e in events %}{{ e.payload.id }}{% unless forloop.last %},"
            "{% endunless %}{% endfor %}]",
            "count": "{{ events.size }}",
            "last": "{{ event.payload.id }}",
        },
    )
    first, last = document({"id": 1}), document({"id": 2})

    assert made.parameters(Scope(last, NOON, (first, last))) == {
        "ids": [1, 2],
        "count": 2,
        "last": 2,
    }


def test_a_rendering_that_fails_says_where() -> None:
    made = compiled(parameterTemplate={"a": {"b": "{{ 1 | divided_by: event.payload.n }}"}})

    with pytest.raises(TemplateFailed) as caught:
        made.parameters(scope({"n": 0}))

    assert caught.value.faults[0].pointer == "/a/b"


def test_a_compiled_trigger_crosses_to_another_process() -> None:
    made = compiled(predicates=[{"path": "$.payload.n", "operator": "gt", "value": 1}])

    again = pickle.loads(pickle.dumps(made))  # noqa: S301

    assert again.trigger == made.trigger
    assert again.predicates.test(document({"n": 2}))


def test_triggers_that_say_the_same_share_what_was_compiled() -> None:
    assert compiled(description="same").predicates is compiled(description="same").predicates
