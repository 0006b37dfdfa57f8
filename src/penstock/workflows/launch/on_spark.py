"""Run a handler with the worker's Spark session, in a job group that can be called off.

    @job("count-rows")
    def count_rows(job: JobContext) -> JsonObject:
        return {"rows": job.session.read.parquet(job.parameters["path"]).count()}

The session starts with the first such step. The handler's thread carries the workflow context as
always; its Spark jobs carry it as a local property; and a function sent to the executors carries it
when it went through `on_executors`, however often Spark uses a Python worker again.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from pyspark import TaskContext
from pyspark.sql import SparkSession

from penstock.base.errors import NotInProfile
from penstock.envelope.codec import decode, encode
from penstock.envelope.context import (
    WorkflowContext,
    carry,
    get_workflow_event_context,
    workflow_event_context,
)
from penstock.workflows.launch.functions import Job, JobContext
from penstock.workflows.launch.in_process import InProcess
from penstock.workflows.launch.registry import Jobs
from penstock.workflows.launch.results import failed, unknown
from penstock.workflows.port import Failure, StepCall, StepResult

PROPERTY = "penstock.workflow"
_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


class SparkJobs:
    """Runs steps of the kind `spark`, on threads of the in-process executor."""

    def __init__(
        self, jobs: Jobs, open_session: Callable[[], SparkSession], inside: InProcess
    ) -> None:
        self._jobs = jobs
        self._open = open_session
        self._inside = inside
        self._session: SparkSession | None = None
        self._lock = threading.Lock()

    def run(self, call: StepCall) -> StepResult:
        """Run the handler; out of time or called off, its Spark jobs are canceled too."""
        found = self._jobs.find(call.slug)
        if not isinstance(found, Job):
            return unknown(call.slug, "spark job")
        misfit = found.misfit(call.input)
        if misfit is not None:
            return failed(Failure.INPUT_INVALID, misfit, retryable=False)
        job = replace(found, handler=self._within(found, call.job_run_id), inline=False)
        return self._inside.attempt(job, call, on_stop=lambda: self._stop(call.job_run_id))

    def cancel(self, call_id: str) -> None:
        """Call off the handler and its Spark jobs."""
        self._inside.cancel(call_id)

    def _within(self, job: Job, group: str) -> Callable[[JobContext], object]:
        def handler(context: JobContext) -> object:
            session = self._opened()
            spark = session.sparkContext
            spark.setJobGroup(group, job.slug, interruptOnCancel=True)
            spark.setLocalProperty(PROPERTY, encode(context.workflow.wire()).decode())
            try:
                value = job.handler(replace(context, session=session))
                return asyncio.run(value) if inspect.iscoroutine(value) else value
            finally:
                # The thread is used again; what it does then belongs to another step.
                for name in (PROPERTY, "spark.jobGroup.id", "spark.job.description"):
                    spark.setLocalProperty(name, cast("str", None))

        return handler

    def _opened(self) -> SparkSession:
        with self._lock:
            if self._session is None:
                self._session = self._open()
            return self._session

    def _stop(self, group: str) -> None:
        session = self._session
        if session is not None:
            # Also what the handler's thread is just about to submit; Python has no name for that.
            java: Any = session.sparkContext._jsc  # noqa: SLF001
            java.sc().cancelJobGroupAndFutureJobs(group)


def on_executors(function: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """`function` for Spark's executors, under the context of now; generators included."""
    if not inspect.isgeneratorfunction(function):
        return carry(function)
    context = get_workflow_event_context()

    @wraps(function)
    def generating(*args: Any, **kwargs: Any) -> Iterator[Any]:
        with workflow_event_context(context):
            yield from function(*args, **kwargs)

    return cast("Callable[_Params, _Result]", generating)


def context_of_task() -> WorkflowContext | None:
    """On an executor: the context of the Spark job that the running task belongs to."""
    task = TaskContext.get()
    text = task.getLocalProperty(PROPERTY) if task is not None else None
    if not text:
        return None
    try:
        return WorkflowContext.model_validate(decode(text.encode()))
    except (NotInProfile, ValueError):
        return None
