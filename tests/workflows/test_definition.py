"""A definition is read, or every place that is wrong is named."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workflows.simulation import document, fanout, function

from penstock.envelope.codec import decode, encode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.workflows.definition import (
    Workflow,
    is_material_change,
    read_definition,
)
from penstock.workflows.errors import WorkflowInvalid

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def faults(written: Any) -> dict[str, str]:
    with pytest.raises(WorkflowInvalid) as refused:
        read_definition(written)
    return {fault.pointer: fault.detail for fault in refused.value.faults}


EVERY_KIND: tuple[JsonObject, ...] = (
    function("load", parameters={"table": "{{ parameters.table }}", "none": None}),
    {"id": "clean", "type": "subprocess", "handler": "orders.clean", "dependsOn": ["load"]},
    {"id": "profile", "type": "spark", "handler": "profile", "dependsOn": ["load"]},
    {
        "id": "tell",
        "type": "service",
        "serviceSlug": "metastore",
        "request": {
            "method": "PUT",
            "path": "/records/{{ run.id }}",
            "headers": {"authorization": {"secret": "metastore"}, "x-run": "{{ run.key }}"},
            "body": {"rows": "{{ steps.profile.output.rows }}"},
        },
        "requireHealthy": True,
        "storeResponseAs": "told",
        "dependsOn": ["profile"],
    },
    {
        "id": "hook",
        "type": "webhook",
        "url": "https://example.com/{{ parameters.table }}",
        "secretName": "hook",
        "body": {"told": "{{ shared.told }}"},
        "dependsOn": ["tell"],
    },
    {
        "id": "dag",
        "type": "airflow",
        "serviceSlug": "airflow",
        "dagId": "rebuild",
        "conf": {"table": "{{ parameters.table }}"},
        "timeoutMs": 86_400_000,
        "dependsOn": ["hook"],
    },
    fanout("each", "{{ steps.load.output.files }}", "load", maxItems=50, storeResultsAs="files"),
)


def test_every_kind_of_step_is_read_and_written_back_unchanged() -> None:
    definition = read_definition(document(*EVERY_KIND, metadata={"team": None}))

    wire = definition.wire()

    assert read_definition(decode(encode(wire))).wire() == wire
    steps = wire["steps"]
    assert isinstance(steps, list)
    assert steps[0]["parameters"] == {"table": "{{ parameters.table }}", "none": None}  # type: ignore[index,call-overload]
    assert wire["metadata"] == {"team": None}


def test_defaults_are_five_minutes_and_three_attempts() -> None:
    step = read_definition(document(function("only"))).steps[0]

    assert step.type == "function"
    assert step.timeout_ms == 300_000
    assert step.retry_policy.max_attempts == 3


def test_a_workflow_shows_its_graph() -> None:
    definition = read_definition(
        document(function("b", "a"), function("a"), function("c", "a", "b"))
    )
    workflow = Workflow("w1", "default", 2, definition, NOW, "ann", NOW, "ann")

    assert workflow.wire()["dag"] == {
        "roots": ["a"],
        "topologicalOrder": ["a", "b", "c"],
        "adjacency": {"b": ["c"], "a": ["b", "c"], "c": []},
        "edges": 3,
    }


def test_the_order_of_steps_is_the_documents_own_as_far_as_dependencies_allow() -> None:
    steps = (function("a"), function("b", "a"), function("z", "y"), function("c"), function("y"))

    assert read_definition(document(*steps)).dag.order == ("a", "b", "c", "y", "z")


def test_a_change_of_any_word_is_a_new_version_and_the_same_document_is_not() -> None:
    one = read_definition(document(function("a")))

    assert not is_material_change(one, read_definition(document(function("a"))))
    assert is_material_change(one, read_definition(document(function("a"), name="Other")))


def test_steps_in_a_circle_are_named_in_order() -> None:
    steps = (function("a", "c"), function("b", "a"), function("c", "b"), function("d", "c"))

    found = faults(document(*steps))

    assert found == {"/steps/0/dependsOn": "expected steps without a circle, found a → c → b → a"}


def test_a_circle_behind_other_steps_is_found() -> None:
    steps = (function("start"), function("x", "start", "y"), function("y", "x"))

    assert list(faults(document(*steps))) == ["/steps/1/dependsOn"]


def test_unknown_and_own_dependencies_and_ids_that_stand_twice_are_all_named() -> None:
    steps = (function("a", "a"), function("b", "nobody"), function("a"))

    assert faults(document(*steps)) == {
        "/steps/2/id": "expected an id of its own, found 'a' also at /steps/0",
        "/steps/0/dependsOn/0": "expected another step, found the step itself",
        "/steps/1/dependsOn/0": "expected the id of a step, found 'nobody'",
    }


WRONG: list[tuple[JsonObject, str, str]] = [
    ({"type": "magic"}, "/steps/0", "expected a `type` among"),
    ({"handler": None}, "/steps/0/handler", "expected text"),
    ({"handler": "a b"}, "/steps/0/handler", "expected text that matches"),
    ({"id": "a[0]"}, "/steps/0/id", "expected text that matches"),
    ({"id": "x" * 101}, "/steps/0/id", "expected at most 100 characters"),
    ({"name": "x" * 201}, "/steps/0/name", "expected at most 200 characters"),
    ({"timeoutMs": 999}, "/steps/0/timeoutMs", "expected at least 1000"),
    ({"timeoutMs": 86_400_001}, "/steps/0/timeoutMs", "expected at most 86400000"),
    ({"timeoutMs": True}, "/steps/0/timeoutMs", "expected a whole number"),
    ({"timeoutMs": "5000"}, "/steps/0/timeoutMs", "expected a whole number"),
    ({"dependsOn": [f"s{n}" for n in range(26)]}, "/steps/0/dependsOn", "expected at most 25"),
    ({"retryPolicy": {"maxAttempts": 0}}, "/steps/0/retryPolicy/maxAttempts", "at least 1"),
    ({"retryPolicy": {"maxAttempts": 11}}, "/steps/0/retryPolicy/maxAttempts", "at most 10"),
    ({"retryPolicy": {"strategy": "often"}}, "/steps/0/retryPolicy/strategy", "'exponential'"),
    (
        {"retryPolicy": {"initialDelayMs": 9, "maxDelayMs": 8}},
        "/steps/0/retryPolicy",
        "expected initialDelayMs up to maxDelayMs",
    ),
    ({"parameters": []}, "/steps/0/parameters", "expected an object"),
    ({"parameters": {"a": float("nan")}}, "/steps/0/parameters", "expected"),
    ({"parameters": {"a": NOW}}, "/steps/0/parameters", "expected a JSON value"),
    ({"surprise": 1}, "/steps/0/surprise", "expected no such field"),
    ({"storeResultAs": "a b"}, "/steps/0/storeResultAs", "expected text that matches"),
]


@pytest.mark.parametrize(("change", "pointer", "detail"), WRONG, ids=lambda each: str(each)[:40])
def test_a_field_that_does_not_fit_is_named(change: JsonObject, pointer: str, detail: str) -> None:
    found = faults(document({**function("only"), **change}))

    assert detail in found[pointer]


@pytest.mark.parametrize(
    ("written", "pointer"),
    [
        (None, ""),
        ([], ""),
        ({}, "/slug"),
        (document(), "/steps"),
        (document(*(function(f"s{n}") for n in range(101))), "/steps"),
        (document(function("a"), slug="no spaces"), "/slug"),
        (document(function("a"), slug="x" * 101), "/slug"),
        (document(function("a"), name="  "), "/name"),
        (document(function("a"), description="x" * 2_001), "/description"),
        (document(function("a"), metadata={"a": "x" * 17_000}), "/metadata"),
        (document(function("a"), parametersSchema={"type": "wrong"}), "/parametersSchema/type"),
        (document(function("a"), outputSchema={"$ref": "https://x/y"}), "/outputSchema/$ref"),
        (document(function("a"), defaultParameters=[1]), "/defaultParameters"),
        (document(7), "/steps/0"),  # type: ignore[arg-type]
        (document({"id": "a"}), "/steps/0"),
    ],
)
def test_a_document_that_is_no_workflow_is_refused_with_a_pointer(
    written: JsonValue, pointer: str
) -> None:
    assert pointer in faults(written)


def test_a_definition_that_is_too_large_as_a_whole_is_refused() -> None:
    steps = [function(f"s{n}", parameters={"x": "y" * 4_000}) for n in range(70)]

    assert faults(document(*steps))[""].startswith("expected at most 262144 bytes")


def test_a_value_nested_without_end_is_refused() -> None:
    deep: JsonValue = 1
    for _ in range(3_000):
        deep = [deep]

    assert "/steps/0/parameters" in faults(document(function("a", parameters={"x": deep})))


def test_faults_inside_a_fan_out_point_into_its_template() -> None:
    step = fanout("each", [1])
    step["template"] = function("one", timeoutMs=1)

    assert "/steps/0/template/timeoutMs" in faults(document(step))


def test_a_step_may_be_called_like_a_kind_or_like_template() -> None:
    read_definition(document(function("template"), function("function", "template")))

    found = faults(document(function("a", parameters={}, handler="")))
    assert list(found) == ["/steps/0/handler"]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"template": fanout("inner", [1])}, "/steps/0/template"),
        ({"template": function("one", "each")}, "/steps/0/template/dependsOn"),
        ({"template": function("one", storeResultAs="x")}, "/steps/0/template/storeResultAs"),
        ({"template": function("each")}, "/steps/0/template/id"),
        ({"maxItems": 10_001}, "/steps/0/maxItems"),
        ({"maxConcurrency": 0}, "/steps/0/maxConcurrency"),
        ({"collection": "just text"}, "/steps/0/collection"),
        ({"collection": 7}, "/steps/0/collection"),
        ({"storeResultAs": "a", "storeResultsAs": "b"}, "/steps/0/storeResultAs"),
        ({"timeoutMs": 1_000}, "/steps/0/timeoutMs"),
    ],
)
def test_a_fan_out_that_cannot_be_run_is_refused(change: JsonObject, pointer: str) -> None:
    assert pointer in faults(document({**fanout("each", [1]), **change}))


def test_a_number_that_a_float_cannot_hold_stays_as_it_is() -> None:
    exact = Decimal("0.12345678901234567890")
    definition = read_definition(document(function("a", parameters={"x": exact})))

    assert encode(definition.wire()).count(b"0.12345678901234567890") == 1


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["slug", "name", "steps", "id", "type", "template", "handler", "x"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_document_is_read_or_refused_with_pointers(written: JsonValue) -> None:
    try:
        read_definition(written)
    except WorkflowInvalid as refused:
        assert refused.faults
