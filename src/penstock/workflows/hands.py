"""Run claimed steps in threads, and hand back what came of each.

    take(claimed) ── inline ──▶ Ended, at once
                  ── a thread ──▶ inbox gets Ended when it is over

Whatever an executor gives is checked here: an output that is no JSON or too large is a failed step,
never a broken worker. Threads are daemons, so a handler that never returns does not keep a process.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Collection
from typing import TypeAlias

import structlog

from penstock.base.errors import NotInProfile
from penstock.envelope.codec import decode, encode
from penstock.workflows.plan import WorkPlan
from penstock.workflows.port import (
    Elsewhere,
    Executor,
    Failed,
    Failure,
    StepCall,
    StepResult,
    Succeeded,
)
from penstock.workflows.queue.job import LOST_MAX, Claimed, Ended
from penstock.workflows.run import ENDED

log = structlog.get_logger(__name__)

OUTPUT_BYTES_MAX = 256 * 1024
Inbox: TypeAlias = "queue.SimpleQueue[Ended | str]"


def never(_call: StepCall) -> bool:
    return False


class Hands:
    """The threads of one worker, and what they hold."""

    def __init__(
        self,
        executor: Executor,
        inbox: Inbox,
        *,
        name: str,
        slots: int,
        is_inline: Callable[[StepCall], bool] = never,
    ) -> None:
        self._executor = executor
        self._inbox = inbox
        self._name = name
        self._is_inline = is_inline
        self._work: queue.SimpleQueue[tuple[Claimed, WorkPlan, StepCall] | None] = (
            queue.SimpleQueue()
        )
        self._slots = slots
        self._threads = 0
        self.held: dict[int, Claimed] = {}  # by job; changed by the worker's own thread only

    def take(self, claimed: Claimed, work: WorkPlan) -> Ended | None:
        """Run it; the end of it at once, or None when the inbox will have it."""
        call = claimed.call(work)
        refusal = _refusal(claimed, call)
        if refusal is not None and not self._goes_on_elsewhere(claimed, call):
            return Ended(claimed, work.kind.value, work.slug, self._name, refusal)
        if refusal is None and self._is_inline(call):
            return self._run(claimed, work, call)
        self.held[claimed.id] = claimed
        if self._threads < min(self._slots, len(self.held)):
            self._threads += 1
            threading.Thread(target=self._serve, name=f"step-{self._threads}", daemon=True).start()
        self._work.put((claimed, work, call))
        return None

    def cancel(self, jobs: Collection[int]) -> None:
        """Stop these; what they say when they end is for the fence to judge."""
        for job in jobs:
            claimed = self.held.get(job)
            # One whose run was over when it was taken up is only being ended elsewhere.
            if claimed is not None and claimed.run_status not in ENDED:
                self._executor.cancel(claimed.job_run_id)

    def close(self) -> None:
        """Let idle threads go."""
        for _ in range(self._threads):
            self._work.put(None)

    def _goes_on_elsewhere(self, claimed: Claimed, call: StepCall) -> bool:
        """Whether the run is over while something that this step started may not be."""
        is_left = claimed.run_status in ENDED and call.token is not None
        return is_left and isinstance(self._executor, Elsewhere)

    def _serve(self) -> None:
        while (item := self._work.get()) is not None:
            self._inbox.put(self._run(*item))

    def _run(self, claimed: Claimed, work: WorkPlan, call: StepCall) -> Ended:
        try:
            if isinstance(self._executor, Elsewhere) and self._goes_on_elsewhere(claimed, call):
                result = self._executor.stop_elsewhere(call)
            else:
                result = checked(self._executor.run(call))
        except Exception as error:
            log.exception("an executor raised", step=call.run_step_id)
            result = Failed(Failure.HANDLER_ERROR, f"{type(error).__name__}: {error}")
        return Ended(claimed, work.kind.value, work.slug, self._name, result)


def checked(result: StepResult) -> StepResult:
    """The result, if what it gives can be stored and sent; else the failure that says why not."""
    if not isinstance(result, Succeeded) or result.output is None:
        return result
    try:
        output = decode(encode(result.output), bytes_max=OUTPUT_BYTES_MAX)
    except NotInProfile as error:
        return Failed(Failure.OUTPUT_INVALID, error.detail, result.logs, retryable=False)
    return Succeeded(output, result.logs)


def _refusal(claimed: Claimed, call: StepCall) -> Failed | None:
    """Why a claimed step must not be run, if so."""
    if claimed.run_status in ENDED:
        return Failed(Failure.CANCELED, "its run is over", retryable=False)
    if claimed.lost >= LOST_MAX:
        detail = f"expected a step that leaves its worker alive, found {claimed.lost} that died"
        return Failed(Failure.WORKER_LOST, detail, retryable=False)
    waited_s = (claimed.claimed_at - claimed.started_at).total_seconds()
    if call.token is not None and waited_s > call.timeout_s:
        return Failed(Failure.TIMED_OUT, f"expected an end within {call.timeout_s:g} s, found none")
    return None
