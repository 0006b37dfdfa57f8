"""A fan-out runs every item, a few at a time, and joins the results in the items' order."""

from __future__ import annotations

import pytest
from tests.workflows.simulation import Fate, Play, fanout, function, plan_of

from penstock.envelope.envelope import JsonValue
from penstock.workflows.advance import advance, begin
from penstock.workflows.plan import FANOUT_BYTES_MAX, INPUT_BYTES_MAX, Caps
from penstock.workflows.run import RunState, RunStatus, StepDone, StepStatus


def test_children_start_a_few_at_a_time_and_join_in_order() -> None:
    play = Play(plan_of(fanout("each", ["a", "b", "c"], maxConcurrency=2), function("end", "each")))

    assert list(play.queue) == ["each[0]", "each[1]"]
    play.finish("each[1]")
    assert list(play.queue) == ["each[0]", "each[2]"]
    play.finish("each[2]", "each[0]")
    play.finish("end")

    output = play.rows["each"].output
    assert isinstance(output, list)
    assert [each["in"] for each in output if isinstance(each, dict)] == [
        {"item": "a", "at": 0},
        {"item": "b", "at": 1},
        {"item": "c", "at": 2},
    ]


def test_the_items_come_from_an_earlier_step_and_the_results_are_shared() -> None:
    play = Play(
        plan_of(
            function("list"),
            fanout("each", "{{ steps.list.output.files }}", "list", storeResultsAs="loaded"),
            function("end", "each", parameters={"got": "{{ shared.loaded }}"}),
        )
    )

    play.tell([StepDone("list", 1, True, {"files": ["x", {"y": 1}]})])
    play.finish("each[1]")
    play.finish("each[0]")

    assert play.queue.keys() == {"end"}
    assert play.rows["end"].input == {"got": play.rows["each"].output}


def test_an_empty_list_is_done_at_once() -> None:
    play = Play(plan_of(fanout("each", []), function("end", "each")))

    assert play.queue.keys() == {"end"}
    assert play.rows["each"].output == []


def test_one_child_that_fails_for_good_fails_the_fan_out_and_the_run() -> None:
    play = Play(
        plan_of(fanout("each", [1, 2, 3, 4], maxConcurrency=2), function("end", "each")),
        fates={"each[1]": Fate(2)},
    )

    play.finish("each[1]")
    play.finish("each[1]")

    assert {each: str(row.status) for each, row in play.rows.items()} == {
        "each": "failed",
        "each[0]": "canceled",
        "each[1]": "failed",
        "each[2]": "skipped",
        "each[3]": "skipped",
        "end": "skipped",
    }
    assert play.rows["each"].detail == "item 1: boom"
    assert play.outcome is not None
    assert play.outcome.step_id == "each"


def test_of_two_children_that_fail_together_the_first_item_is_named() -> None:
    play = Play(plan_of(fanout("each", [1, 2])), fates={"each[0]": Fate(2), "each[1]": Fate(2)})

    play.finish("each[1]", "each[0]")
    play.finish("each[1]", "each[0]")

    assert play.rows["each"].detail == "item 0: boom"


def test_the_installation_caps_items_and_concurrency_whatever_the_definition_says() -> None:
    wide = fanout("each", list(range(6)), maxItems=10_000, maxConcurrency=1_000)

    assert len(Play(plan_of(wide, caps=Caps(6, 4))).queue) == 4
    refused = Play(plan_of(wide, caps=Caps(5, 4)))
    assert refused.rows["each"].reason == "fanout_too_large"
    assert refused.rows["each"].detail == "expected at most 5 items, found 6"


def test_without_a_word_a_hundred_items_are_the_most() -> None:
    assert Play(plan_of(fanout("each", list(range(100))))).run.status == RunStatus.RUNNING
    assert Play(plan_of(fanout("each", list(range(101))))).run.status == RunStatus.FAILED


@pytest.mark.parametrize("collection", [{"a": 1}, "text", 7, None])
def test_what_is_no_list_cannot_be_fanned_out(collection: JsonValue) -> None:
    play = Play(plan_of(fanout("each", "{{ parameters.items }}")), {"items": collection})

    assert play.rows["each"].reason == "fanout_not_a_list"
    assert play.queue == {}


def test_an_item_that_lacks_what_the_template_names_is_said_by_its_number() -> None:
    step = fanout("each", [{"id": 1}, {}])
    step["template"] = function("one", parameters={"id": "{{ item.id }}"})
    play = Play(plan_of(step))

    assert play.rows["each"].reason == "unresolved_input"
    assert play.rows["each"].detail == (
        "item 1: expected a value at item.id, found nothing there below item"
    )


def test_inputs_that_are_too_large_together_are_refused() -> None:
    big = "x" * (INPUT_BYTES_MAX - 1_000)
    items: list[JsonValue] = [0] * (FANOUT_BYTES_MAX // INPUT_BYTES_MAX + 2)
    step = fanout("each", items)
    step["template"] = function("one", parameters={"big": "{{ parameters.big }}"})
    play = Play(plan_of(step), {"big": big})

    assert play.rows["each"].reason == "input_too_large"


def test_nobody_can_end_a_fan_out_or_a_waiting_child_from_outside() -> None:
    play = Play(plan_of(fanout("each", [1, 2, 3], maxConcurrency=1)))
    rogue = [
        StepDone("each", 1, True),
        StepDone("each[2]", 0, True),
        StepDone("each[9]", 1, True),
        StepDone("nobody", 1, True),
    ]

    assert play.tell(rogue).ignored == tuple(rogue)
    assert play.rows["each"].status == StepStatus.RUNNING


def test_ten_thousand_items_run_to_their_end() -> None:
    plan = plan_of(
        fanout("each", list(range(10_000)), maxItems=10_000, maxConcurrency=1_000),
        caps=Caps(10_000, 1_000),
    )

    progress = begin(plan, RunState("run-1"))
    batches = 0
    while progress.outcome is None:
        finished = [StepDone(job.address, job.attempt, True, 1) for job in progress.jobs]
        progress = advance(plan, progress.run, finished)
        batches += 1

    assert batches == 10
    assert progress.outcome.output == {"each": [1] * 10_000}
