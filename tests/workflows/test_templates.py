"""Templates give values with their types, or say which path is not there."""

from __future__ import annotations

from typing import Any

import pytest
from tests.workflows.simulation import Play, document, fanout, function, plan_of

from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.workflows.definition import read_definition
from penstock.workflows.errors import WorkflowInvalid
from penstock.workflows.params import Scope, Unresolved, compile_template, parse_path
from penstock.workflows.plan import INPUT_BYTES_MAX
from penstock.workflows.run import RunState, StepState, StepStatus

RUN = RunState(
    "run-1",
    parameters={"name": "orders", "n": 7, "none": None, "list": [{"id": 1}, {"id": 2}], "f": 1.5},
    steps={"load": StepState("load", "load", StepStatus.SUCCEEDED, output={"rows": 42})},
    shared={"total": 9},
    run_key="k",
    trigger={"event": {"payload": {"path": "/a"}}},
)
SCOPE = Scope(RUN, "orders", {"id": "me", "name": "Me"}, {"id": "x"}, {"index": 3, "count": 4})


def render(template: JsonValue) -> JsonValue:
    return compile_template(template)(SCOPE)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ parameters.n }}", 7),
        ("{{parameters.n}}", 7),
        (" {{ parameters.n }} ", 7),
        ("{{ parameters.none }}", None),
        ("{{ parameters.list }}", [{"id": 1}, {"id": 2}]),
        ("{{ parameters.list[1].id }}", 2),
        ("{{ parameters.list.1.id }}", 2),
        ("{{ steps.load.output.rows }}", 42),
        ("{{ steps.load.result.rows }}", 42),
        ("{{ steps.load.status }}", "succeeded"),
        ("{{ shared.total }}", 9),
        ("{{ run.id }}", "run-1"),
        ("{{ run.key }}", "k"),
        ("{{ run.workflow }}", "orders"),
        ("{{ run.trigger.event.payload.path }}", "/a"),
        ("{{ run.partitionKey }}", None),
        ("{{ step.name }}", "Me"),
        ("{{ item }}", {"id": "x"}),
        ("{{ fanout.index }}", 3),
        ("{{ parameters.name }}-{{ parameters.n }}", "orders-7"),
        ("{{ parameters.none }}!", "null!"),
        ("of {{ item }}", 'of {"id":"x"}'),
        ("{{ parameters.f }} €", "1.5 €"),
        ("plain } text {", "plain } text {"),
        ("{{{ parameters.n }}}", "{7}"),
        (
            {"a": ["{{ shared.total }}", {"b": "{{ item.id }}"}], "c": 1},
            {"a": [9, {"b": "x"}], "c": 1},
        ),
        (None, None),
        ([], []),
    ],
)
def test_a_template_gives_the_value_it_names(template: JsonValue, expected: JsonValue) -> None:
    assert render(template) == expected


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("parameters.missing", "below parameters"),
        ("parameters.list.2", "below parameters.list"),
        ("parameters.list.id", "below parameters.list"),
        ("parameters.none.deep", "below parameters.none"),
        ("parameters.name.length", "below parameters.name"),
        ("steps.later.output", "below steps"),
        ("steps.load.output.cols", "below steps.load.output"),
        ("steps.load.cols", "below steps.load"),
        ("steps", "by that name"),
        ("shared.nothing", "below shared"),
        ("nowhere.at.all", "by that name"),
    ],
)
@pytest.mark.parametrize("around", ["{{ %s }}", "text {{ %s }}"])
def test_a_path_that_leads_nowhere_is_named(path: str, there: str, around: str) -> None:
    with pytest.raises(Unresolved, match="expected a value at") as missing:
        render(around % path)

    assert missing.value.path == path
    assert there in str(missing.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "a.",
        ".a",
        "a..b",
        "a[x]",
        "a[-1]",
        "a b",
        "a|b",
        "ä",
        "a[٣]",
        f"a[{'9' * 5_000}]",
    ],
)
def test_what_is_no_path_is_none(text: str) -> None:
    assert parse_path(text) is None


def fault(*steps: JsonObject) -> tuple[str, str]:
    with pytest.raises(WorkflowInvalid) as refused:
        read_definition(document(*steps))
    (found,) = refused.value.faults
    return found.pointer, found.detail


def reading(step_id: str, template: Any, *needs: str, **more: Any) -> JsonObject:
    return function(step_id, *needs, parameters={"deep": [{"x": template}]}, **more)


@pytest.mark.parametrize(
    ("template", "detail"),
    [
        ("{{ parameters.x | upper }}", "expected a path like {{ steps.load.output.rows }}, found"),
        ("{{ }}", "expected a path like"),
        ("{{ parameters.x", "expected a path like"),
        ("{{ parameters.x }} {{", "expected a path like"),
        ("{{ {{ parameters.x }} }}", "expected a path like"),
        ("{{ enviroment.HOME }}", "expected one of parameters, steps, shared, run, step, item"),
        ("{{ steps }}", "expected a step that this one depends on, found ''"),
        ("{{ steps.nobody.output }}", "expected a step that this one depends on, found 'nobody'"),
        ("{{ steps.beside.output }}", "expected a step that this one depends on, found 'beside'"),
        ("{{ steps.me.output }}", "expected a step that this one depends on, found 'me'"),
        ("{{ steps.before }}", "expected steps.before with one of output, result, status"),
        ("{{ steps.before.outputs }}", "found 'outputs'"),
        ("{{ shared }}", "expected a name that a step before this one stores, found ''"),
        ("{{ shared.b }}", "expected a name that a step before this one stores, found 'b'"),
        ("{{ run }}", "expected run with one of"),
        ("{{ run.secret }}", "found 'secret'"),
        ("{{ step.attempt }}", "expected step with one of id, name"),
        ("{{ item }}", "expected 'item' in the template of a fan-out only"),
        ("{{ fanout.index }}", "expected 'fanout' in the template of a fan-out only"),
    ],
)
def test_a_template_that_can_never_resolve_is_refused_when_it_is_saved(
    template: str, detail: str
) -> None:
    steps = (function("before"), function("beside", storeResultAs="b"))

    pointer, found = fault(*steps, reading("me", template, "before"))

    assert pointer == "/steps/2/parameters/deep/0/x"
    assert detail in found


def test_faults_of_other_kinds_point_at_their_own_fields() -> None:
    service = {"id": "s", "type": "service", "serviceSlug": "m", "request": {"path": "/{{ x }}"}}
    webhook = {"id": "w", "type": "webhook", "url": "https://e.com/{{ y }}", "body": ["{{ z }}"]}
    inside = fanout("each", "{{ no }}")
    inside["template"] = reading("one", "{{ fanout.size }}")

    with pytest.raises(WorkflowInvalid) as refused:
        read_definition(document(service, webhook, inside))

    assert [each.pointer for each in refused.value.faults] == [
        "/steps/0/request/path",
        "/steps/1/url",
        "/steps/1/body/0",
        "/steps/2/collection",
        "/steps/2/template/parameters/deep/0/x",
    ]


def test_two_steps_beside_each_other_cannot_store_under_one_name() -> None:
    steps = (function("a", storeResultAs="x"), function("b", storeResultAs="x"))

    assert fault(*steps) == (
        "/steps/1/storeResultAs",
        "expected a name of its own, found 'x', which 'a' beside it stores too",
    )


def test_steps_after_one_another_may_store_under_one_name() -> None:
    play = Play(
        plan_of(
            function("a", storeResultAs="x"),
            reading("b", "{{ shared.x }}", "a", storeResultAs="x"),
            reading("c", "{{ shared.x.of }}", "b"),
        )
    )

    play.finish("a")
    play.finish("b")

    assert play.rows["c"].input == {"deep": [{"x": "b"}]}


def test_a_shared_name_is_not_read_beside_a_step_that_stores_it() -> None:
    steps = (
        function("a", storeResultAs="x"),
        function("b", "a", storeResultAs="x"),
        reading("c", "{{ shared.x }}", "a"),
    )

    assert fault(*steps) == (
        "/steps/2/parameters/deep/0/x",
        "expected a name stored before or after this step, found 'b' beside it",
    )


def test_more_templates_than_a_step_may_have_are_refused() -> None:
    many = {f"k{n}": "{{ parameters.x }}" for n in range(201)}

    assert fault(function("a", parameters=many)) == (
        "/steps/0",
        "expected at most 200 templates, found 201",
    )


def test_an_input_that_cannot_be_resolved_fails_its_step_without_running_it() -> None:
    play = Play(
        plan_of(
            reading("a", "{{ parameters.missing }}", retryPolicy={"maxAttempts": 10}),
            function("b", "a"),
            function("c"),
        )
    )

    assert play.queued_ever == []
    assert play.rows["a"][2:] == (
        "failed", 1, None, None, "unresolved_input",
        "expected a value at parameters.missing, found nothing there below parameters", None,
    )  # fmt: skip
    assert [str(play.rows[each].reason) for each in "bc"] == ["dependency_failed", "run_failed"]
    assert play.outcome is not None
    assert play.outcome.step_id == "a"


def test_an_input_that_grows_too_large_fails_its_step() -> None:
    half = "x" * (INPUT_BYTES_MAX // 2)
    play = Play(
        plan_of(reading("a", "{{ parameters.x }}{{ parameters.x }}{{ parameters.x }}")), {"x": half}
    )

    assert play.rows["a"].reason == "input_too_large"


def test_a_text_full_of_braces_is_read_in_one_go() -> None:
    braces = "{{" * 60_000

    pointer, _ = fault(function("a", parameters={"x": braces}))

    assert pointer == "/steps/0/parameters/x"
