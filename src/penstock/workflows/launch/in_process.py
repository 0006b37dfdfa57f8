"""Run a handler inside the worker, and go on when it does not return.

    inline      in the caller's thread, nothing around it: for handlers of microseconds
    otherwise   on a thread of the crew, with its time limit, its prints kept, its context entered

A handler that waits for ever leaves its thread behind. Few are bearable; with `abandoned_max` of
them this worker takes no more such steps (`is_exhausted`): they wait, and it is to be restarted.
"""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Callable
from typing import Any, Final

from penstock.workflows.launch.crew import Crew, Ended, Errand, Left, Outcome, Raised, Stopped
from penstock.workflows.launch.functions import Job, JobContext
from penstock.workflows.launch.prints import Log, captured
from penstock.workflows.launch.registry import Jobs
from penstock.workflows.launch.results import (
    canceled,
    failed,
    raised,
    succeeded,
    timed_out,
    unknown,
)
from penstock.workflows.port import Failure, StepCall, StepResult, Waiting

ABANDONED_MAX: Final = 8
_WAIT_S: Final = 1.0


class InProcess:
    """Runs steps of the kind `function`."""

    def __init__(
        self, jobs: Jobs, *, crew: Crew | None = None, abandoned_max: int = ABANDONED_MAX
    ) -> None:
        self._jobs = jobs
        self._crew = crew or Crew()
        self._abandoned_max = abandoned_max
        self._running: dict[str, Running] = {}

    @property
    def is_exhausted(self) -> bool:
        """Whether so many handlers never returned that this process should be replaced."""
        return self._crew.abandoned >= self._abandoned_max

    @property
    def abandoned(self) -> int:
        """How many handlers were left behind and still run."""
        return self._crew.abandoned

    def is_inline(self, call: StepCall) -> bool:
        """Whether the handler is so quick that it needs no thread."""
        found = self._jobs.find(call.slug)
        return isinstance(found, Job) and found.inline

    def run(self, call: StepCall) -> StepResult:
        """Run the handler to its end, its time limit or its cancellation."""
        found = self._jobs.find(call.slug)
        if not isinstance(found, Job):
            return unknown(call.slug, "function")
        misfit = found.misfit(call.input)
        if misfit is not None:
            return failed(Failure.INPUT_INVALID, misfit, retryable=False)
        return self._inline(found, call) if found.inline else self.attempt(found, call)

    def attempt(
        self,
        job: Job,
        call: StepCall,
        *,
        session: Any = None,
        on_stop: Callable[[], None] | None = None,
    ) -> StepResult:
        """Run a handler on a thread; `on_stop` is told when nobody waits any more."""
        if self.is_exhausted:
            # No fault of this step: it waits for a worker that can take it, and loses no attempt.
            return Waiting(_WAIT_S, call.token)
        running = Running(job, JobContext.of(call, session=session))
        self._running[call.job_run_id] = running
        try:
            outcome = self._crew.run(running.errand, call.timeout_s)
        finally:
            self._running.pop(call.job_run_id, None)
        if isinstance(outcome, Left) and on_stop is not None:
            on_stop()
        return _result(outcome, call, running.log)

    def cancel(self, call_id: str) -> None:
        """Wait no longer for this call, and ask its handler to stop."""
        running = self._running.get(call_id)
        if running is not None:
            running.errand.call_off()

    def close(self) -> None:
        """Let the threads go."""
        self._crew.close()

    def _inline(self, job: Job, call: StepCall) -> StepResult:
        context = JobContext.of(call)
        try:
            with context.entered():
                value = job.handler(context)
        except Exception as error:  # noqa: BLE001  a handler's error is its step's result
            return raised(error)
        except SystemExit as error:
            return raised(error)
        return succeeded(value)


class Running:
    """One attempt on a thread: how to do it, how to stop it, what it printed."""

    def __init__(self, job: Job, context: JobContext) -> None:
        self.job = job
        self.context = context
        self.log = Log()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self.errand = Errand(self._work, ask=self._ask, wake=self._wake)

    def _work(self) -> object:
        with captured(self.log), self.context.entered():
            try:
                if self.job.is_async:
                    return asyncio.run(self._await())
                return self.job.handler(self.context)
            except Stopped:
                raise
            except BaseException:
                traceback.print_exc()
                raise

    async def _await(self) -> object:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        return await self.job.handler(self.context)

    def _ask(self) -> None:
        """Say that time is over: to a plain handler that looks, to an awaited one by canceling."""
        self.context.stopping.set()
        self._soon(self._task.cancel if self._task else _nothing)

    def _wake(self) -> None:
        """Rouse the loop of an awaited handler, so that it meets what was raised."""
        self._soon(_nothing)

    def _soon(self, act: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has closed: it is ending by itself
            if self._loop is not None:
                self._loop.call_soon_threadsafe(act)


def _nothing() -> None:
    """Do nothing, but in the loop."""


def _result(outcome: Outcome, call: StepCall, log: Log) -> StepResult:
    match outcome:
        case Ended(value):
            return succeeded(value, log.text())
        case Raised(error):
            return raised(error, log.text())
        case Left.CALLED_OFF:
            return canceled(log.text())
        case Left.OUT_OF_TIME:
            return timed_out(call.timeout_s, log.text())
