"""A Spark job carries its workflow to the driver's thread, to its Spark jobs and to executors."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from tests.workflows.launch.handlers import published
from tests.workflows.launch.support import call, context, wait_until

from penstock.workflows.launch.functions import JobContext, make_job
from penstock.workflows.launch.in_process import InProcess
from penstock.workflows.launch.registry import Jobs
from penstock.workflows.port import Failed, StepResult, Succeeded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.workflows.launch.on_spark import SparkJobs

pytestmark = pytest.mark.spark


@pytest.fixture
def executor(jobs: Jobs, inside: InProcess, spark: SparkSession) -> SparkJobs:
    from penstock.workflows.launch.on_spark import SparkJobs

    return SparkJobs(jobs, lambda: spark, inside)


def output(result: StepResult) -> Any:
    assert isinstance(result, Succeeded), result
    return result.output


def run_of(_number: int) -> str:
    workflow = published("test.executors")["workflow"]
    return str(workflow["workflowRunId"]) if isinstance(workflow, dict) else "none"


def run_of_each(numbers: Iterable[int]) -> Iterator[str]:
    for number in numbers:
        yield run_of(number)


def run_of_task(_number: int) -> str:
    from penstock.workflows.launch.on_spark import context_of_task

    found = context_of_task()
    return found.workflow_run_id if found else "none"


def everywhere(job: JobContext) -> dict[str, object]:
    from penstock.workflows.launch.on_spark import on_executors

    numbers = job.session.sparkContext.parallelize(range(4), 2)
    return {
        "here": published()["workflow"],
        "each": sorted(set(numbers.map(on_executors(run_of)).collect())),
        "generated": sorted(set(numbers.mapPartitions(on_executors(run_of_each)).collect())),
        "task": sorted(set(numbers.map(run_of_task).collect())),
        "bare": sorted(set(numbers.map(run_of).collect())),
    }


def test_the_context_reaches_the_executors_and_leaves_with_its_run(
    jobs: Jobs, executor: SparkJobs
) -> None:
    jobs.add(make_job("everywhere", everywhere))

    for run in ("run-1", "run-2"):
        said = output(executor.run(call("everywhere", run=run, timeout_s=120.0)))

        assert said["here"] == context(run, slug="everywhere").wire()
        assert (said["each"], said["generated"], said["task"]) == ([run], [run], [run])
        assert said["bare"] == ["none"], "a worker that is used again remembers nothing"


def test_two_spark_jobs_at_once_never_see_each_other(jobs: Jobs, executor: SparkJobs) -> None:
    jobs.add(make_job("everywhere", everywhere))
    results: dict[str, StepResult] = {}

    def run(name: str) -> None:
        results[name] = executor.run(call("everywhere", run=name, timeout_s=120.0))

    threads = [threading.Thread(target=run, args=(f"run-{n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)

    for name, result in results.items():
        said = output(result)
        assert (said["each"], said["generated"], said["task"]) == ([name], [name], [name])


def sleep_long(_number: int) -> int:
    threading.Event().wait(60)
    return 0


def test_out_of_time_its_spark_jobs_are_canceled(
    jobs: Jobs, executor: SparkJobs, spark: SparkSession
) -> None:
    def slow(job: JobContext) -> int:
        return len(job.session.sparkContext.parallelize([1], 1).map(sleep_long).collect())

    jobs.add(make_job("slow", slow))

    result = executor.run(call("slow", timeout_s=3.0))

    assert isinstance(result, Failed)
    assert result.reason == "timed_out"
    tracker = spark.sparkContext.statusTracker()
    wait_until(lambda: not tracker.getActiveJobsIds(), 30)


def test_a_spark_job_that_it_submits_late_is_canceled_too(
    jobs: Jobs, executor: SparkJobs, spark: SparkSession
) -> None:
    ended: list[str] = []

    def late(job: JobContext) -> None:
        job.stopping.wait(30)
        job.session.sparkContext.parallelize([1], 1).map(sleep_long).collect()
        ended.append("it ran to its end")

    jobs.add(make_job("late", late))

    result = executor.run(call("late", timeout_s=1.0))

    assert isinstance(result, Failed)
    tracker = spark.sparkContext.statusTracker()
    wait_until(lambda: not tracker.getActiveJobsIds(), 30)
    assert ended == []


def test_a_spark_job_that_raises_is_a_failed_step(jobs: Jobs, executor: SparkJobs) -> None:
    jobs.add(make_job("wrong", lambda job: job.session.sql("SELECT nothing FROM nowhere")))

    result = executor.run(call("wrong", timeout_s=60.0))

    assert isinstance(result, Failed)
    assert result.reason == "handler_error"
    assert "nowhere" in result.detail
    assert isinstance(executor.run(call("nobody")), Failed)
