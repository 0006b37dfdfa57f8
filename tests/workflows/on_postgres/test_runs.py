"""Runs go through their steps, and everything about them is kept."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from tests.workflows.on_postgres.support import (
    CHAIN,
    RETRY_AT_ONCE,
    TENANT,
    Handlers,
    Shop,
    step,
    wait_for,
    workflow,
)

from penstock.base.errors import NotFound, PenstockError
from penstock.base.ids import uuid7
from penstock.workflows.book.on_postgres import WorkflowBook
from penstock.workflows.engine.launching.on_postgres import Launching
from penstock.workflows.engine.launching.start import RunKeyConflict, Start, WorkflowDisabled
from penstock.workflows.errors import ParametersInvalid
from penstock.workflows.port import Failed, Failure, StepCall, StepResult, Succeeded, Waiting

LATER = {
    "maxAttempts": 3,
    "strategy": "fixed",
    "initialDelayMs": 3_600_000,
    "maxDelayMs": 3_600_000,
    "jitter": "none",
}


def refuse(call: StepCall) -> StepResult:
    return Failed(Failure.HANDLER_ERROR, f"no luck in attempt {call.attempt}")


def test_a_run_goes_through_its_steps_and_hands_results_on(shop: Shop) -> None:
    shop.define(CHAIN)
    run = shop.start("chain")

    with shop.working():
        assert shop.ended(run) == ["succeeded"]

    assert shop.steps(run) == {"a": "succeeded", "b": "succeeded", "c": "succeeded"}
    assert shop.output(run) == {"c": {"n": 1}}
    assert shop.ask("SELECT count(*) FROM jobs") == [(0,)]


def test_a_failing_step_is_tried_as_often_as_its_policy_says(shop: Shop) -> None:
    shop.define(
        workflow("frail", step("a", handler="refuse", retryPolicy=RETRY_AT_ONCE), step("b", "a"))
    )
    run = shop.start("frail")

    with shop.working(Handlers(refuse=refuse)):
        assert shop.ended(run) == ["failed"]

    book = WorkflowBook(shop.pool)
    assert shop.steps(run) == {"a": "failed", "b": "skipped"}
    assert [(j.attempt, j.status) for j in book.runs.job_runs(TENANT, run)] == [
        (1, "failed"), (2, "failed"), (3, "failed"),
    ]  # fmt: skip
    found = book.runs.steps(TENANT, run)[0]
    assert (found.error_message, found.failure_reason) == ("no luck in attempt 3", "handler_error")
    assert "no luck in attempt 3" in (book.runs.run(TENANT, run).error_message or "")


def test_a_step_that_succeeds_on_its_second_attempt_carries_its_run_on(shop: Shop) -> None:
    def second(call: StepCall) -> StepResult:
        return Succeeded(call.attempt) if call.attempt == 2 else refuse(call)

    shop.define(workflow("frail", step("a", handler="second", retryPolicy=RETRY_AT_ONCE)))
    run = shop.start("frail")

    with shop.working(Handlers(second=second)):
        assert shop.ended(run) == ["succeeded"]

    (found,) = WorkflowBook(shop.pool).runs.steps(TENANT, run)
    assert (found.attempt, found.retry_state, found.retry_attempts) == (2, "completed", 1)
    assert found.next_attempt_at is None


def test_a_scheduled_retry_shows_when_it_is_due_and_can_be_forced(shop: Shop) -> None:
    def second(call: StepCall) -> StepResult:
        return Succeeded(call.attempt) if call.attempt == 2 else refuse(call)

    shop.define(workflow("frail", step("a", handler="second", retryPolicy=LATER)))
    run, book = shop.start("frail"), WorkflowBook(shop.pool)

    with shop.working(Handlers(second=second)):
        wait_for(lambda: book.runs.steps(TENANT, run)[0].retry_state == "scheduled")
        (found,) = book.runs.steps(TENANT, run)
        backlog = book.runs.retries(TENANT)
        shop.acts.force_retry(TENANT, found.id, by="ana")
        assert shop.ended(run) == ["succeeded"]

    assert found.next_attempt_at is not None
    assert found.error_message == "no luck in attempt 1"
    assert (backlog.summary.total, backlog.summary.overdue) == (1, 0)
    assert backlog.entries[0].wire()["workflowRunStepId"] == found.id
    (after,) = book.runs.steps(TENANT, run)
    assert isinstance(after.retry_metadata, dict)
    assert after.retry_metadata["forcedBy"] == "ana"
    assert book.runs.retries(TENANT).summary.total == 0


def test_a_retry_that_is_called_off_fails_its_step_and_its_run(shop: Shop) -> None:
    shop.define(workflow("frail", step("a", handler="refuse", retryPolicy=LATER), step("b", "a")))
    run, book = shop.start("frail"), WorkflowBook(shop.pool)

    with shop.working(Handlers(refuse=refuse)):
        wait_for(lambda: book.runs.steps(TENANT, run)[0].retry_state == "scheduled")
    shop.acts.cancel_retry(TENANT, f"{run}.a", by="ana")

    assert shop.status(run) == "failed"
    assert shop.steps(run) == {"a": "failed", "b": "skipped"}
    (found, _) = book.runs.steps(TENANT, run)
    assert (found.retry_state, found.error_message) == ("cancelled", "no luck in attempt 1")
    assert shop.ask("SELECT count(*) FROM jobs") == [(0,)]


@pytest.mark.parametrize("act", ["cancel_retry", "force_retry"])
def test_only_a_scheduled_retry_can_be_called_off_or_forced(shop: Shop, act: str) -> None:
    shop.define(CHAIN)
    run = shop.start("chain")

    with pytest.raises(NotFound, match="scheduled retry"):
        getattr(shop.acts, act)(TENANT, f"{run}.a", by="ana")
    with pytest.raises(NotFound):
        getattr(shop.acts, act)("another", f"{run}.a", by="ana")


def test_a_step_that_waits_is_looked_at_again_with_its_token(shop: Shop) -> None:
    def remote(call: StepCall) -> StepResult:
        polls = call.token if isinstance(call.token, int) else 0
        return Succeeded(polls) if polls == 3 else Waiting(0.01, polls + 1)

    shop.define(workflow("far", step("a", handler="remote")))
    run, handlers = shop.start("far"), Handlers(remote=remote)

    with shop.working(handlers):
        assert shop.ended(run) == ["succeeded"]

    assert shop.output(run) == {"a": 3}
    assert {call.job_run_id for call in handlers.calls} == {f"{run}.a.1"}
    assert len(WorkflowBook(shop.pool).runs.job_runs(TENANT, run)) == 1


def test_an_output_that_cannot_be_stored_fails_the_step_and_not_the_worker(shop: Shop) -> None:
    odd = {
        "nan": float("nan"), "nul": "a\0b", "large": "x" * 300_000, "thing": object(),
        "surrogate": "\ud800",
    }  # fmt: skip
    shop.define(*(workflow(name, step("a", handler=name)) for name in odd), CHAIN)
    handlers = {name: (lambda _call, v=value: Succeeded(v)) for name, value in odd.items()}
    runs = [shop.start(name) for name in odd]

    with shop.working(Handlers(**handlers)):
        assert shop.ended(*runs) == ["failed"] * len(odd)
        assert shop.ended(shop.start("chain")) == ["succeeded"]

    reasons = shop.ask(
        "SELECT DISTINCT failure_reason FROM workflow_run_steps WHERE status='failed'"
    )
    assert reasons == [("output_invalid",)]


def test_an_executor_that_raises_or_speaks_oddly_fails_its_step_only(shop: Shop) -> None:
    def explode(_call: StepCall) -> StepResult:
        raise RuntimeError("a\0b \ud800 " + "y" * 5_000)

    once = {"maxAttempts": 1}
    shop.define(workflow("odd", step("a", handler="explode", retryPolicy=once)), CHAIN)
    run = shop.start("odd")

    with shop.working(Handlers(explode=explode)):
        assert shop.ended(run) == ["failed"]
        assert shop.ended(shop.start("chain")) == ["succeeded"]

    assert len(shop.ask("SELECT error_message FROM workflow_run_steps")[0][0]) <= 2_000


def test_a_canceled_run_stops_what_runs_and_never_starts_the_rest(shop: Shop) -> None:
    shop.define(workflow("slow", step("a", handler="wait"), step("b", "a")))
    run, handlers = shop.start("slow"), Handlers()

    with shop.working(handlers):
        wait_for(lambda: handlers.calls)
        assert shop.acts.cancel(TENANT, run, by="ana")
        wait_for(lambda: shop.ask("SELECT count(*) FROM jobs") == [(0,)])

    assert shop.status(run) == "canceled"
    assert shop.steps(run) == {"a": "canceled", "b": "skipped"}
    assert [j.status for j in WorkflowBook(shop.pool).runs.job_runs(TENANT, run)] == ["canceled"]
    assert not shop.acts.cancel(TENANT, run, by="ana")


class Engine(Handlers):
    """Handlers whose work goes on elsewhere until it is ended there, at the second try."""

    def __init__(self) -> None:
        super().__init__(far=lambda _call: Waiting(600, {"id": 7}))
        self.stopped: list[StepCall] = []

    def stop_elsewhere(self, call: StepCall) -> StepResult:
        self.stopped.append(call)
        if len(self.stopped) == 1:
            return Waiting(0.01, call.token)
        return Failed(Failure.CANCELED, "ended there", retryable=False)


def test_what_a_canceled_run_has_started_elsewhere_is_ended_there(shop: Shop) -> None:
    shop.define(workflow("far", step("a", handler="far"), step("b", "a")))
    run, engine = shop.start("far"), Engine()

    with shop.working(engine):
        wait_for(lambda: shop.ask("SELECT count(*) FROM jobs WHERE token IS NOT NULL") == [(1,)])
        assert shop.acts.cancel(TENANT, run, by="ana")
        wait_for(lambda: shop.ask("SELECT count(*) FROM jobs") == [(0,)])

    assert [call.token for call in engine.stopped] == [{"id": 7}] * 2
    assert len(engine.calls) == 1
    assert (shop.status(run), shop.steps(run)) == ("canceled", {"a": "canceled", "b": "skipped"})
    assert [j.status for j in WorkflowBook(shop.pool).runs.job_runs(TENANT, run)] == ["canceled"]


def test_what_cannot_be_ended_elsewhere_is_let_go(shop: Shop) -> None:
    shop.define(workflow("far", step("a", handler="far")))
    run, handlers = shop.start("far"), Handlers(far=lambda _call: Waiting(600, {"id": 7}))

    with shop.working(handlers):
        wait_for(lambda: shop.ask("SELECT count(*) FROM jobs WHERE token IS NOT NULL") == [(1,)])
        assert shop.acts.cancel(TENANT, run, by="ana")
        wait_for(lambda: shop.ask("SELECT count(*) FROM jobs") == [(0,)])

    assert (len(handlers.calls), shop.status(run)) == (1, "canceled")


def test_a_run_that_was_canceled_before_it_began_runs_nothing(shop: Shop) -> None:
    shop.define(CHAIN)
    run, handlers = shop.start("chain"), Handlers()
    shop.acts.cancel(TENANT, run, by="ana")

    with shop.working(handlers):
        assert shop.ended(shop.start("chain")) == ["succeeded"]

    assert all(call.context.workflow_run_id != run for call in handlers.calls)


def test_a_failed_step_stops_its_running_sibling(shop: Shop) -> None:
    once = {"maxAttempts": 1}
    shop.define(
        workflow("pair", step("a", handler="wait"), step("b", handler="refuse", retryPolicy=once))
    )
    run = shop.start("pair")

    with shop.working(Handlers(refuse=refuse)):
        assert shop.ended(run) == ["failed"]
        wait_for(lambda: shop.ask("SELECT count(*) FROM jobs") == [(0,)])

    assert shop.steps(run) == {"a": "canceled", "b": "failed"}


def test_a_replay_begins_with_what_the_run_began_with(shop: Shop) -> None:
    shop.define(workflow("say", step("a", parameters={"word": "{{ parameters.word }}"})))
    first = shop.start("say", parameters={"word": "hello"}, run_key="greeting")

    second = shop.acts.replay(TENANT, first, by="ana")
    with shop.working():
        assert shop.ended(first, second) == ["succeeded", "succeeded"]

    assert shop.output(second) == {"a": {"word": "hello"}}
    found = WorkflowBook(shop.pool).runs.run(TENANT, second)
    assert (found.replay_of, found.run_key, found.triggered_by) == (first, None, "ana")


def test_of_eight_writers_with_one_run_key_one_makes_the_run(shop: Shop) -> None:
    shop.define(CHAIN)
    start = threading.Barrier(8)

    def write(_n: int) -> tuple[bool, str]:
        start.wait()
        try:
            return True, shop.start("chain", run_key="Orders-2026")
        except RunKeyConflict as error:
            return False, error.run_id

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(write, range(8)))

    assert sorted(made for made, _ in found) == [False] * 7 + [True]
    assert len({run for _, run in found}) == 1
    assert shop.ask("SELECT count(*) FROM workflow_runs") == [(1,)]
    assert shop.ask("SELECT count(*) FROM jobs") == [(1,)]


def test_a_run_key_is_free_again_when_its_run_has_ended(shop: Shop) -> None:
    shop.define(CHAIN)
    first = shop.start("chain", run_key="orders")

    with shop.working():
        shop.ended(first)
        assert shop.ended(shop.start("chain", run_key="orders")) == ["succeeded"]


def test_a_transaction_that_is_rolled_back_leaves_no_run_no_job_and_no_event(shop: Shop) -> None:
    shop.define(CHAIN)
    before = shop.ask("SELECT count(*) FROM event_outbox")
    with psycopg.connect(shop.dsn) as connection:
        Launching().make(connection, [Start(uuid7(), TENANT, "chain", {}, "tests")])
        connection.rollback()

    for table in ("workflow_runs", "jobs", "workflow_run_steps"):
        assert shop.ask(f"SELECT count(*) FROM {table}") == [(0,)]  # noqa: S608
    assert shop.ask("SELECT count(*) FROM event_outbox") == before


def test_what_cannot_be_started_says_why(shop: Shop) -> None:
    shop.define(
        CHAIN,
        workflow(
            "picky", step("a"),
            parametersSchema={"type": "object", "required": ["day"]},
        ),
    )  # fmt: skip
    shop.definitions.change(TENANT, "chain", by="ana", status="disabled")

    for slug, kind in (
        ("none", NotFound),
        ("chain", WorkflowDisabled),
        ("picky", ParametersInvalid),
    ):
        with pytest.raises(kind):
            shop.start(slug)
    with pytest.raises(PenstockError):
        shop.acts.start("another", "picky", parameters={"day": 1})
    assert shop.ask("SELECT count(*) FROM workflow_runs") == [(0,)]


def test_a_run_goes_on_under_the_version_it_began_with(shop: Shop) -> None:
    shop.define(workflow("say", step("a"), step("b", "a", parameters={"version": 1})))
    old = shop.start("say")
    shop.definitions.change(
        TENANT, "say", workflow("say", step("a"), step("b", "a", parameters={"version": 2})), by="x"
    )
    new = shop.start("say")

    with shop.working():
        shop.ended(old, new)

    assert shop.output(old) == {"b": {"version": 1}}
    assert shop.output(new) == {"b": {"version": 2}}


def test_a_fan_out_runs_every_item_and_joins(shop: Shop) -> None:
    shop.define(
        workflow(
            "fan",
            {
                "id": "each", "type": "fanout", "collection": "{{ parameters.days }}",
                "maxItems": 50, "storeResultsAs": "days",
                "template": step("one", parameters={"day": "{{ item }}"}),
            },
        )
    )  # fmt: skip
    run = shop.start("fan", parameters={"days": list(range(30))})

    with shop.working(), shop.working(name="second"):
        assert shop.ended(run) == ["succeeded"]

    assert shop.output(run) == {"each": [{"day": day} for day in range(30)]}
