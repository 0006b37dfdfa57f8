"""Gather what one call of `advance` changes: rows, jobs, shared results.

A `Turn` works on copies; the run that it was given stays as it is. It notes every finish before
anything new is started, so the order in which a batch lists them does not matter.
"""

from __future__ import annotations

from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.workflows.params import Scope
from penstock.workflows.plan import FanPlan, InputRefused, Plan, StepPlan
from penstock.workflows.retry import delay_ms, may_retry
from penstock.workflows.run import (
    LIVE,
    Job,
    Outcome,
    Progress,
    Reason,
    RunState,
    RunStatus,
    StepDone,
    StepState,
    StepStatus,
)

_SUCCEEDED = StepStatus.SUCCEEDED
_DETAIL_MAX = 2_000


class Turn:
    """One move of a run, while it is worked out."""

    def __init__(self, plan: Plan, run: RunState) -> None:
        self.plan = plan
        self.steps = dict(run.steps)
        self.succeeded: list[str] = []  # steps of the definition whose followers may be ready
        self.failed: set[str] = set()
        self.ended_a_sink = False
        self._shared: JsonObject = {}
        self._before = run
        self._run = run._replace(status=RunStatus.RUNNING, steps=self.steps)
        self._changed: dict[str, None] = {}  # addresses, each once, in order
        self._jobs: dict[str, Job] = {}
        self._drop: list[str] = []
        self._fans: dict[str, StepState | None] = {}  # touched; with the first child that failed
        self._ignored: list[StepDone] = []

    def note(self, done: StepDone) -> None:
        """Take in what a worker says about one attempt."""
        state = self.steps.get(done.address)
        if state is None or not self._concerns(state, done):
            self._ignored.append(done)
        elif done.succeeded:
            self._succeed(state, done.output)
        elif done.retryable and may_retry(self.plan.work_at(done.address).retry, done.attempt):
            self._retry(state, done)
        else:
            self._fail(state, done.reason, done.detail)

    def join(self) -> None:
        """Bring fan-outs up to date with their children: end them, or queue the next items."""
        for step_id, broken in self._fans.items():
            parent = self.steps[step_id]
            if broken is not None:
                detail = f"item {broken.index}: {broken.detail or broken.reason}"
                self._fail(parent, Reason.CHILD_FAILED, detail)
            elif parent.status in LIVE:
                self._join_children(parent)

    def is_ready(self, step_id: str) -> bool:
        """Whether the step has not been started, and all that it depends on has succeeded."""
        return step_id not in self.steps and all(
            self.has_succeeded(need) for need in self.plan.steps[step_id].before
        )

    def has_succeeded(self, step_id: str) -> bool:
        """Whether the step is done."""
        state = self.steps.get(step_id)
        return state is not None and state.status == _SUCCEEDED

    def start(self, step_id: str) -> None:
        """Queue a step that is ready; one whose input cannot be made fails at once."""
        step = self.plan.steps[step_id]
        try:
            if step.fan is not None:
                self._start_fan(step, step.fan)
            elif step.work is not None:
                given, _ = step.work.input(Scope(self._run, self.plan.slug, step.work.about))
                self._put(StepState(step_id, step_id, input=given))
                self._jobs[step_id] = Job(step_id, 1)
        except InputRefused as error:
            self._fail(StepState(step_id, step_id), error.reason, error.detail)

    def close(self, reason: Reason) -> None:
        """Stop what is alive and skip what has not begun."""
        for address, state in list(self.steps.items()):
            if state.status not in LIVE:
                continue
            if state.attempt == 0 or address not in self._before.steps:
                self._put(state._replace(status=StepStatus.SKIPPED, reason=reason))
                continue
            if address not in self._jobs and not self._is_fan(state):
                self._drop.append(address)
            self._put(state._replace(status=StepStatus.CANCELED, reason=reason))
        self._jobs.clear()
        for step_id in self.plan.dag.order:
            if step_id not in self.steps:
                broken = not self.failed.isdisjoint(self.plan.dag.ancestors[step_id])
                why = Reason.DEPENDENCY_FAILED if broken else reason
                self._put(StepState(step_id, step_id, StepStatus.SKIPPED, 0, reason=why))

    def progress(self, outcome: Outcome | None) -> Progress:
        """Everything that changed."""
        run, known = self._run, self._before.steps
        if outcome is not None:
            run = run._replace(status=outcome.status)
        changed = [self.steps[address] for address in self._changed]
        return Progress(
            run,
            tuple([state for state in changed if state.address not in known]),
            tuple([state for state in changed if state.address in known]),
            tuple(self._jobs.values()),
            tuple(self._drop),
            self._shared,
            outcome,
            tuple(self._ignored),
        )

    def _put(self, state: StepState) -> None:
        self.steps[state.address] = state
        self._changed[state.address] = None

    def _concerns(self, state: StepState, done: StepDone) -> bool:
        """Whether it is about the attempt that is queued or runs now."""
        return (
            state.status in LIVE and state.attempt == done.attempt > 0 and not self._is_fan(state)
        )

    def _is_fan(self, state: StepState) -> bool:
        return state.index is None and self.plan.steps[state.step_id].fan is not None

    def _succeed(self, state: StepState, output: JsonValue) -> None:
        self._put(state._replace(status=_SUCCEEDED, output=output, reason=None, detail=None))
        if state.index is not None:
            self._fans.setdefault(state.step_id)
            return
        step = self.plan.steps[state.step_id]
        self.succeeded.append(step.id)
        self.ended_a_sink = self.ended_a_sink or not step.after
        if step.stores_as is not None:
            self._shared[step.stores_as] = output
            self._run = self._run._replace(shared={**self._run.shared, step.stores_as: output})

    def _fail(self, state: StepState, reason: str | None, detail: str | None) -> None:
        said = detail[:_DETAIL_MAX] if detail else None
        failed = state._replace(status=StepStatus.FAILED, reason=reason, detail=said)
        self._put(failed)
        if failed.index is None:
            self.failed.add(failed.step_id)
            return
        first = self._fans.get(failed.step_id)
        if first is None or failed.index < (first.index or 0):
            self._fans[failed.step_id] = failed

    def _retry(self, state: StepState, done: StepDone) -> None:
        attempt = done.attempt + 1
        policy = self.plan.work_at(state.address).retry
        delay = delay_ms(policy, done.attempt, f"{self._run.id}/{state.address}")
        said = done.detail[:_DETAIL_MAX] if done.detail else None
        self._put(
            state._replace(
                status=StepStatus.PENDING, attempt=attempt, reason=done.reason, detail=said
            )
        )
        self._jobs[state.address] = Job(state.address, attempt, delay)

    def _start_fan(self, step: StepPlan, fan: FanPlan) -> None:
        scope = Scope(self._run, self.plan.slug, {"id": step.id, "name": step.id})
        items = fan.items(scope)
        here = StepState(step.id, step.id, StepStatus.RUNNING, input={"count": len(items)})
        if not items:
            self._succeed(here, [])
            return
        inputs = fan.inputs(scope, step.id, items)
        self._put(here)
        for index, given in enumerate(inputs):
            address = f"{step.id}[{index}]"
            attempt = 1 if index < fan.concurrency else 0  # 0: waits for its turn
            self._put(StepState(address, step.id, attempt=attempt, input=given, index=index))
            if attempt:
                self._jobs[address] = Job(address, 1)

    def _join_children(self, parent: StepState) -> None:
        count = (parent.input or {})["count"]
        children = [self.steps[f"{parent.step_id}[{at}]"] for at in range(int(str(count)))]
        open_ = [child for child in children if child.status in LIVE]
        if not open_:
            self._succeed(parent, [child.output for child in children])
            return
        fan = self.plan.steps[parent.step_id].fan
        waiting = [child for child in open_ if child.attempt == 0]
        free = fan.concurrency - (len(open_) - len(waiting)) if fan is not None else 0
        for child in waiting[: max(free, 0)]:
            self._put(child._replace(attempt=1))
            self._jobs[child.address] = Job(child.address, 1)
