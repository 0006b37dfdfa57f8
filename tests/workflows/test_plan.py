"""A plan gives a run its parameters, and says how each step is run."""

from __future__ import annotations

import pytest
from tests.workflows.simulation import fanout, function, plan_of

from penstock.workflows.errors import ParametersInvalid

SCHEMA = {
    "type": "object",
    "required": ["table"],
    "properties": {"table": {"type": "string"}, "limit": {"type": "integer"}},
    "additionalProperties": False,
}


def test_defaults_are_filled_in_and_what_is_given_wins() -> None:
    plan = plan_of(
        function("a"), parametersSchema=SCHEMA, defaultParameters={"limit": 5, "table": "x"}
    )

    assert plan.parameters({"table": "orders"}) == {"limit": 5, "table": "orders"}


def test_parameters_that_do_not_fit_are_refused_with_pointers() -> None:
    plan = plan_of(function("a"), parametersSchema=SCHEMA)

    with pytest.raises(ParametersInvalid) as refused:
        plan.parameters({"limit": "many", "other": 1})

    assert {fault.pointer for fault in refused.value.faults} == {"/table", "/limit", "/other"}
    assert refused.value.code == "parameters_invalid"


def test_without_a_schema_any_parameters_will_do() -> None:
    assert plan_of(function("a")).parameters({"any": [1]}) == {"any": [1]}


def test_a_child_of_a_fan_out_is_run_as_its_template_says() -> None:
    plan = plan_of(fanout("each", [1, 2]), function("end", "each", timeoutMs=5_000))

    assert plan.work_at("each[1]").retry.max_attempts == 2
    assert (plan.work_at("end").kind, plan.work_at("end").slug) == ("function", "noop")
    assert plan.work_at("end").timeout_ms == 5_000


def test_what_an_executor_is_given_has_the_documents_own_names() -> None:
    plan = plan_of(
        {
            "id": "tell",
            "type": "service",
            "serviceSlug": "metastore",
            "request": {"path": "/x", "headers": {"authorization": {"secret": "metastore"}}},
        },
        {"id": "hook", "type": "webhook", "url": "https://example.com", "secretName": "s"},
        {"id": "dag", "type": "airflow", "serviceSlug": "airflow", "dagId": "rebuild"},
    )
    inputs = {each: plan.work_at(each).render(None) for each in plan.steps}  # type: ignore[arg-type]

    assert inputs == {
        "tell": {
            "request": {
                "method": "POST",
                "path": "/x",
                "headers": {"authorization": {"secret": "metastore"}},
                "query": {},
                "body": None,
            },
            "captureResponse": True,
            "requireHealthy": False,
            "allowDegraded": True,
        },
        "hook": {
            "url": "https://example.com",
            "secretName": "s",
            "body": {},
            "waitForCallback": False,
        },
        "dag": {"dagId": "rebuild", "conf": {}, "pollSeconds": 10},
    }
    assert [plan.work_at(each).slug for each in plan.steps] == ["metastore", "webhook", "airflow"]
