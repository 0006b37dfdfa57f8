"""Play queue and workers for a run, and complain about anything that must never happen.

`Play` applies every `Progress` as the engine does, in memory. Which jobs finish next, alone or
together, is the test's choice; how each attempt ends is fixed beforehand by its `Fate`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.workflows.advance import advance, begin, cancel
from penstock.workflows.definition import read_definition
from penstock.workflows.plan import Caps, Plan
from penstock.workflows.run import (
    Job,
    Outcome,
    Progress,
    RunState,
    StepDone,
    StepState,
    StepStatus,
)


def function(step_id: str, *needs: str, **more: Any) -> JsonObject:
    return {"id": step_id, "type": "function", "handler": "noop", "dependsOn": list(needs), **more}


def fanout(step_id: str, collection: JsonValue, *needs: str, **more: Any) -> JsonObject:
    template: JsonObject = {
        **function(
            f"{step_id}-item", parameters={"item": "{{ item }}", "at": "{{ fanout.index }}"}
        ),
        "retryPolicy": {"maxAttempts": 2, "strategy": "none"},
    }
    del template["dependsOn"]
    step = {"id": step_id, "type": "fanout", "collection": collection, "template": template}
    return {**step, "dependsOn": list(needs), **more}


def document(*steps: JsonObject, **more: Any) -> JsonObject:
    return {"slug": "orders", "name": "Orders", "steps": list(steps), **more}


def plan_of(*steps: JsonObject, caps: Caps | None = None, **more: Any) -> Plan:
    return Plan(read_definition(document(*steps, **more)), caps)


@dataclass(frozen=True)
class Fate:
    """How the attempts of a step end: so many failures, then success if it is tried that often."""

    failures: int = 0
    retryable: bool = True


class Play:
    """One run, played by hand."""

    def __init__(
        self,
        plan: Plan,
        parameters: JsonObject | None = None,
        fates: Mapping[str, Fate] | None = None,
    ) -> None:
        self.plan = plan
        self.fates = fates or {}
        self.queue: dict[str, Job] = {}
        self.queued_ever: list[tuple[str, int]] = []
        self.rows: dict[str, StepState] = {}
        self.shared: JsonObject = {}
        self.outcome: Outcome | None = None
        self.run = RunState("run-1", parameters=parameters or {})
        self._apply(begin(plan, self.run))

    def state(self) -> RunState:
        """The run as it would be read back from its rows."""
        return self.run._replace(steps=dict(self.rows), shared=dict(self.shared))

    def done(self, address: str) -> StepDone:
        """What a worker says when the queued attempt of a step is over."""
        job, fate = self.queue[address], self.fates.get(address, Fate())
        if job.attempt <= fate.failures:
            return StepDone(
                address, job.attempt, False, None, "handler_error", "boom", fate.retryable
            )
        return StepDone(
            address, job.attempt, True, {"of": address, "in": dict(self.rows[address].input or {})}
        )

    def finish(self, *addresses: str, also: Sequence[StepDone] = ()) -> Progress:
        """Let the queued attempts of these steps end, in one batch, among other messages."""
        return self.tell([self.done(each) for each in addresses] + list(also))

    def tell(self, finished: Sequence[StepDone]) -> Progress:
        before = self.state()
        kept = deepcopy(before)
        progress = advance(self.plan, before, finished)
        assert before == kept, "advance changed what it was given"
        for done in finished:
            if done not in progress.ignored:
                assert self.queue.pop(done.address).attempt == done.attempt
        return self._apply(progress)

    def cancel(self) -> Progress:
        return self._apply(cancel(self.plan, self.state(), "enough"))

    def _apply(self, progress: Progress) -> Progress:
        assert self.outcome is None or progress.outcome is None, "a run ends once"
        for state in progress.insert:
            assert state.address not in self.rows, "inserted twice"
            self.rows[state.address] = state
        for state in progress.update:
            assert state.address in self.rows, "updated before it was inserted"
            self.rows[state.address] = state
        self.shared.update(progress.shared)
        for address in progress.drop:
            del self.queue[address]
        for job in progress.jobs:
            self._enqueue(job)
        self.run = progress.run
        self.outcome = progress.outcome or self.outcome
        assert progress.run.steps == self.rows, "the rows are not what the progress says"
        assert progress.run.shared == self.shared
        self._check_caps()
        return progress

    def _enqueue(self, job: Job) -> None:
        assert (job.address, job.attempt) not in self.queued_ever, "queued twice"
        assert job.address not in self.queue, "queued while it is queued"
        row = self.rows[job.address]
        assert row.attempt == job.attempt
        for need in self.plan.steps[row.step_id].before:
            assert self.rows[need].status == StepStatus.SUCCEEDED, "ran before its dependencies"
        self.queue[job.address] = job
        self.queued_ever.append((job.address, job.attempt))

    def _check_caps(self) -> None:
        for step_id, step in self.plan.steps.items():
            if step.fan is not None:
                running = [each for each in self.queue if each.startswith(f"{step_id}[")]
                assert len(running) <= step.fan.concurrency, "too many children at once"
