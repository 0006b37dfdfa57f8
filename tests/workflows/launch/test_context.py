"""What a step publishes says which run it belongs to: here, in threads, tasks and processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
from tests.workflows.launch.handlers import published
from tests.workflows.launch.support import call, context

from penstock import get_workflow_event_context
from penstock.envelope.context import VARIABLE
from penstock.workflows.launch.functions import JobContext, make_job
from penstock.workflows.launch.in_process import InProcess
from penstock.workflows.launch.registry import Jobs
from penstock.workflows.launch.sandbox.over_pipe import Sandbox
from penstock.workflows.port import Executor, StepResult, Succeeded


@pytest.fixture(params=["function", "subprocess"])
def executor(request: pytest.FixtureRequest, jobs: Jobs, inside: InProcess) -> Executor:
    return inside if request.param == "function" else Sandbox(jobs)


def output(result: StepResult) -> Any:
    assert isinstance(result, Succeeded), result
    return result.output


def workflow(run: str, slug: str) -> dict[str, Any]:
    return context(run, slug=slug).wire()


def test_an_event_published_by_a_step_carries_its_workflow(executor: Executor) -> None:
    said = output(executor.run(call("publish_here", run="run-7")))

    assert said["workflow"] == workflow("run-7", "publish_here")


def test_an_inline_step_does_too(inside: InProcess) -> None:
    said = output(inside.run(call("quick", run="run-7")))

    assert said["workflow"] == workflow("run-7", "quick")


def test_an_event_published_by_asyncio_tasks_carries_its_workflow(executor: Executor) -> None:
    said = output(executor.run(call("publish_from_tasks", run="run-7")))

    assert [each["workflow"] for each in said] == [workflow("run-7", "publish_from_tasks")] * 5


def test_an_event_published_by_threads_carries_its_workflow(executor: Executor) -> None:
    said = output(executor.run(call("publish_from_threads", run="run-7")))

    assert [each["workflow"] for each in said] == [workflow("run-7", "publish_from_threads")] * 5


def test_a_process_of_the_process_carries_it_on(jobs: Jobs) -> None:
    said = output(Sandbox(jobs).run(call("publish_from_a_process", run="run-7")))

    assert said == "run-7"


def test_the_process_is_told_by_the_variable_of_the_seed(jobs: Jobs) -> None:
    said = output(Sandbox(jobs).run(call("environment", run="run-7")))

    assert '"workflowRunId":"run-7"' in said[VARIABLE]


def test_what_a_step_publishes_is_caused_by_the_event_that_started_it(executor: Executor) -> None:
    said = output(executor.run(call("publish_here", causation_id="e-1", correlation_id="c-1")))

    assert (said["causationId"], said["correlationId"]) == ("e-1", "c-1")


def test_without_such_an_event_it_is_caused_by_the_run_itself(executor: Executor) -> None:
    said = output(executor.run(call("publish_here", run="run-7", correlation_id="run-7")))

    assert (said["causationId"], said["correlationId"]) == ("run-run-7-running", "run-7")


def test_after_a_step_nothing_of_it_is_left(inside: InProcess) -> None:
    inside.run(call("publish_here"))
    inside.run(call("quick"))
    inside.run(call("fail"))

    assert get_workflow_event_context() is None
    assert published()["workflow"] is None


def test_what_a_handler_leaves_in_its_thread_is_not_seen_by_the_next(
    jobs: Jobs, inside: InProcess
) -> None:
    mark: ContextVar[str] = ContextVar("mark", default="clean")

    def soil(job: JobContext) -> list[str]:
        found = mark.get()
        mark.set(job.workflow.workflow_run_id)
        return [found, threading.current_thread().name]

    jobs.add(make_job("soil", soil))
    first, second = (output(inside.run(call("soil", run=run))) for run in ("run-1", "run-2"))

    assert first == second == ["clean", first[1]]


def test_fifty_runs_at_once_never_see_each_other(inside: InProcess) -> None:
    results: dict[str, StepResult] = {}

    def run(name: str) -> None:
        results[name] = inside.run(call("name_run", run=name))

    names = [f"run-{number}" for number in range(50)]
    at_once([lambda name=name: run(name) for name in names])  # type: ignore[misc]

    assert {name: output(results[name]) for name in names} == {name: [name] for name in names}
    assert all(
        results[name].logs == f"printed by {name}\n"  # type: ignore[union-attr]
        for name in names
    )


def test_processes_at_once_never_see_each_other(jobs: Jobs) -> None:
    sandbox, results = Sandbox(jobs), dict[str, StepResult]()

    def run(name: str) -> None:
        results[name] = sandbox.run(call("name_run", run=name, timeout_s=60.0))

    names = [f"run-{number}" for number in range(4)]
    at_once([lambda name=name: run(name) for name in names])  # type: ignore[misc]

    assert {name: output(results[name]) for name in names} == {name: [name] for name in names}


def test_a_retry_has_its_own_context_even_while_the_first_attempt_lingers(
    jobs: Jobs, inside: InProcess
) -> None:
    go_on, late = threading.Event(), list[str]()

    def linger(job: JobContext) -> str:
        if job.attempt == 1:
            go_on.wait(10)
        found = get_workflow_event_context()
        late.append(found.job_run_id if found else "none")
        return late[-1]

    jobs.add(make_job("linger", linger))
    attempts = [
        call("linger", attempt=n, job_run_id=f"job-{n}", timeout_s=t, context=attempt(n))
        for n, t in ((1, 0.05), (2, 10.0))
    ]

    inside.run(attempts[0])
    second = output(inside.run(attempts[1]))
    go_on.set()

    assert second == "job-2"
    assert set(late) <= {"job-1", "job-2"}
    assert "none" not in late


def attempt(number: int) -> Any:
    return context().model_copy(update={"job_run_id": f"job-{number}"})


def at_once(works: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
