"""Runs end the same way whatever finishes first, and nothing runs too early, twice or too much."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workflows.simulation import Fate, Play, document, fanout, function

from penstock.envelope.envelope import JsonObject
from penstock.workflows.advance import begin
from penstock.workflows.definition import read_definition
from penstock.workflows.plan import Plan
from penstock.workflows.run import LIVE, Reason, RunStatus, StepDone, StepStatus

MANY = settings(max_examples=50, deadline=None)


@st.composite
def workflows(draw: st.DrawFn) -> tuple[Plan, dict[str, Fate]]:
    """Any graph of a few steps, each reading all it may see, and how every attempt will end."""
    fates: dict[str, Fate] = {}
    ancestors: dict[str, set[str]] = {}
    steps: list[JsonObject] = []
    for number in range(draw(st.integers(1, 7))):
        step_id = f"s{number}"
        needs = sorted(
            draw(st.sets(st.sampled_from(sorted(ancestors)), max_size=3)) if steps else ()
        )
        seen = set(needs).union(*(ancestors[need] for need in needs))
        ancestors[step_id] = seen
        reads = {each: f"{{{{ steps.{each}.output }}}}" for each in sorted(seen)}
        shared = {f"shared-{each}": f"got {{{{ shared.{each} }}}}" for each in sorted(seen)}
        fate = st.builds(Fate, st.sampled_from([0, 0, 0, 0, 1, 1, 2, 3]), st.just(True))
        if draw(st.integers(0, 3)) == 0:
            items = draw(st.integers(0, 6))
            more = {"maxConcurrency": draw(st.integers(1, 3)), "storeResultsAs": step_id}
            steps.append(fanout(step_id, list(range(items)), *needs, **more))
            fates |= {f"{step_id}[{at}]": draw(fate) for at in range(items)}
        else:
            policy = {"maxAttempts": draw(st.integers(1, 3)), "strategy": "none"}
            more = {"parameters": {**reads, **shared}, "retryPolicy": policy}
            steps.append(function(step_id, *needs, storeResultAs=step_id, **more))
            fates[step_id] = draw(fate)
    draw(st.randoms(use_true_random=False)).shuffle(steps)
    return Plan(read_definition(document(*steps))), fates


def attempts_max(plan: Plan, address: str) -> int:
    return plan.work_at(address).retry.max_attempts


def must_fail(plan: Plan, fates: dict[str, Fate]) -> bool:
    """Whether any step can never succeed; then the run cannot either."""
    return any(fate.failures >= attempts_max(plan, each) for each, fate in fates.items())


def play_to_the_end(play: Play, data: st.DataObject) -> None:
    """Finish queued attempts in an order and in batches that are drawn, with stale echoes."""
    said: list[StepDone] = []
    while play.outcome is None:
        assert play.queue, "nothing is queued and the run has not ended"
        some = data.draw(st.lists(st.sampled_from(sorted(play.queue)), min_size=1, unique=True))
        echoes = data.draw(st.lists(st.sampled_from(said), max_size=2)) if said else []
        finished = [play.done(each) for each in some]
        order = data.draw(st.permutations(finished + echoes))
        progress = play.tell(order)
        assert [each for each in order if each in echoes] == list(progress.ignored)
        said += finished
    assert play.queue == {}, "something is left in the queue of a run that ended"
    assert not [row for row in play.rows.values() if row.status in LIVE]
    assert set(play.plan.steps) <= set(play.rows), "a step of the definition has no row"


@MANY
@given(workflows(), st.data())
def test_any_interleaving_ends_in_the_same_outcome(
    drawn: tuple[Plan, dict[str, Fate]], data: st.DataObject
) -> None:
    plan, fates = drawn
    one, other = Play(plan, fates=fates), Play(plan, fates=fates)

    play_to_the_end(one, data)
    while other.outcome is None:
        other.finish(*other.queue)

    assert one.outcome is not None
    expected = RunStatus.FAILED if must_fail(plan, fates) else RunStatus.SUCCEEDED
    assert one.outcome.status == other.outcome.status == one.run.status == expected
    if expected == RunStatus.SUCCEEDED:
        assert one.outcome == other.outcome
        assert one.rows == other.rows
        assert one.run.context() == other.run.context()


@MANY
@given(workflows(), st.data())
def test_a_batch_says_the_same_in_any_order(
    drawn: tuple[Plan, dict[str, Fate]], data: st.DataObject
) -> None:
    plan, fates = drawn
    play = Play(plan, fates=fates)
    for _ in range(data.draw(st.integers(0, 4))):
        if play.outcome is None:
            play.finish(*data.draw(st.sets(st.sampled_from(sorted(play.queue)), min_size=1)))
    if play.outcome is not None:
        return

    other = Play.__new__(Play)
    other.__dict__.update(play.__dict__, queue=dict(play.queue), rows=dict(play.rows))
    other.__dict__.update(shared=dict(play.shared), queued_ever=list(play.queued_ever))
    finished = [play.done(each) for each in play.queue]
    turned = data.draw(st.permutations(finished))
    first, second = play.tell(finished), other.tell(turned)

    assert first.outcome == second.outcome
    assert set(first.jobs) == set(second.jobs)
    assert first.run.steps == second.run.steps


@MANY
@given(workflows(), st.data())
def test_every_attempt_is_queued_once_and_no_more_often_than_the_policy_allows(
    drawn: tuple[Plan, dict[str, Fate]], data: st.DataObject
) -> None:
    plan, fates = drawn
    play = Play(plan, fates=fates)

    play_to_the_end(play, data)

    assert len(play.queued_ever) == len(set(play.queued_ever))
    for address, attempt in play.queued_ever:
        assert 1 <= attempt <= attempts_max(plan, address)
    succeeded = [row for row in play.rows.values() if row.status == StepStatus.SUCCEEDED]
    for row in succeeded:
        if row.address in fates:
            assert row.attempt == fates[row.address].failures + 1


@MANY
@given(workflows(), st.data())
def test_what_depends_on_a_failed_step_is_skipped(
    drawn: tuple[Plan, dict[str, Fate]], data: st.DataObject
) -> None:
    plan, fates = drawn
    play = Play(plan, fates=fates)

    play_to_the_end(play, data)

    failed = {row.step_id for row in play.rows.values() if row.status == StepStatus.FAILED}
    for step_id in plan.steps:
        if not failed.isdisjoint(plan.dag.ancestors[step_id]):
            row = play.rows[step_id]
            assert (row.status, row.reason) == (StepStatus.SKIPPED, Reason.DEPENDENCY_FAILED)
    assert bool(failed) == (play.run.status == RunStatus.FAILED)


@MANY
@given(workflows(), st.data())
def test_a_run_can_be_canceled_at_any_moment_and_then_stays_so(
    drawn: tuple[Plan, dict[str, Fate]], data: st.DataObject
) -> None:
    plan, fates = drawn
    play = Play(plan, fates=fates)
    for _ in range(data.draw(st.integers(0, 5))):
        if play.outcome is None:
            play.finish(data.draw(st.sampled_from(sorted(play.queue))))
    if play.outcome is not None:
        return
    late = [play.done(each) for each in play.queue]

    canceled = play.cancel()

    assert canceled.outcome is not None
    assert canceled.outcome.status == RunStatus.CANCELED
    assert play.queue == {}
    assert set(canceled.drop) == {done.address for done in late}
    assert not [row for row in play.rows.values() if row.status in LIVE]
    assert set(plan.steps) <= set(play.rows)
    rows = dict(play.rows)
    assert play.tell(late).ignored == tuple(late)
    assert play.cancel().outcome is None
    assert play.rows == rows


def test_the_chain_hands_results_on_and_gives_the_last_one() -> None:
    plan = Plan(
        read_definition(
            document(
                function("load", parameters={"table": "{{ parameters.table }}"}),
                function("count", "load", parameters={"of": "{{ steps.load.output.in.table }}"}),
            )
        )
    )
    play = Play(plan, {"table": "orders"})

    play.finish("load")
    play.finish("count")

    assert play.outcome is not None
    assert play.outcome.output == {"count": {"of": "count", "in": {"of": "orders"}}}


def test_a_failure_cancels_what_runs_beside_it_and_skips_the_rest() -> None:
    plan = Plan(
        read_definition(
            document(
                function("bad", retryPolicy={"maxAttempts": 1}),
                function("beside"),
                function("after-bad", "bad"),
                function("after-beside", "beside"),
            )
        )
    )
    play = Play(plan, fates={"bad": Fate(1)})

    progress = play.finish("bad")

    states = {each: (row.status, row.reason) for each, row in play.rows.items()}
    assert states == {
        "bad": ("failed", "handler_error"),
        "beside": ("canceled", "run_failed"),
        "after-bad": ("skipped", "dependency_failed"),
        "after-beside": ("skipped", "run_failed"),
    }
    assert progress.drop == ("beside",)
    assert progress.outcome is not None
    assert progress.outcome[2:] == ("step_failed", "step 'bad': boom", "bad")


def test_a_failure_that_cannot_be_retried_is_not_retried() -> None:
    plan = Plan(read_definition(document(function("only", retryPolicy={"maxAttempts": 10}))))
    play = Play(plan, fates={"only": Fate(1, retryable=False)})

    play.finish("only")

    assert play.run.status == RunStatus.FAILED


def test_without_a_policy_a_failing_step_is_tried_three_times() -> None:
    plan = Plan(read_definition(document(function("only"))))
    play = Play(plan, fates={"only": Fate(99)})

    while play.outcome is None:
        play.finish("only")

    assert play.queued_ever == [("only", 1), ("only", 2), ("only", 3)]


def test_a_retry_waits_as_its_policy_says_and_keeps_the_error() -> None:
    policy = {"strategy": "fixed", "initialDelayMs": 700, "jitter": "none"}
    plan = Plan(read_definition(document(function("only", retryPolicy=policy))))
    play = Play(plan, fates={"only": Fate(1)})

    progress = play.finish("only")

    assert [job.delay_ms for job in progress.jobs] == [700]
    assert progress.update[0].detail == "boom"
    assert play.finish("only").update[0].detail is None


def test_an_output_that_does_not_fit_its_schema_fails_the_run() -> None:
    schema = {"properties": {"only": {"type": "string"}}}
    plan = Plan(read_definition(document(function("only"), outputSchema=schema)))
    play = Play(plan)

    play.finish("only")

    assert play.outcome is not None
    assert play.outcome.status == RunStatus.FAILED
    assert play.outcome.reason == Reason.OUTPUT_UNFIT
    assert play.outcome.detail == "/only: expected string, found object"


def test_a_run_begins_once() -> None:
    plan = Plan(read_definition(document(function("only"))))
    play = Play(plan)

    assert begin(plan, play.run).jobs == ()


def test_nothing_new_begins_in_the_batch_that_brings_a_failure() -> None:
    plan = Plan(
        read_definition(
            document(
                function("bad", retryPolicy={"maxAttempts": 1}),
                function("good"),
                fanout("empty", [], "good"),
                function("unresolved", "good", parameters={"x": "{{ parameters.missing }}"}),
            )
        )
    )
    play = Play(plan, fates={"bad": Fate(1)})

    play.finish("good", "bad")

    assert {each: str(row.status) for each, row in play.rows.items()} == {
        "bad": "failed",
        "good": "succeeded",
        "empty": "skipped",
        "unresolved": "skipped",
    }


def test_of_two_steps_that_fail_together_the_first_of_the_definition_is_named() -> None:
    once = {"maxAttempts": 1}
    steps = (function("first", retryPolicy=once), function("second", retryPolicy=once))
    play = Play(
        Plan(read_definition(document(*steps))), fates={"first": Fate(1), "second": Fate(1)}
    )

    play.finish("second", "first")

    assert play.outcome is not None
    assert play.outcome.step_id == "first"
