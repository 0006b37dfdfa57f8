"""Hold a run and its steps as plain values: what is stored, and what `advance` reads.

    run    pending ─▶ running ─▶ succeeded | failed | canceled
    step   pending ─▶ running ─▶ succeeded | failed | skipped | canceled
              ▲          │
              └── retry ─┘   the same step, its attempt one higher

A step is named within its run by its *address*: `load` for a step of the definition, `load[3]` for
the fourth child of the fan-out `load`. Run and address name a row, so nothing can be made twice.
To `advance`, `pending` and `running` are the same: queued, or in a worker's hands. A status read
from a row may stay plain text; it compares equal. A child with attempt 0 waits for its turn.

Tuples, because many are made: a tuple is the cheapest frozen value there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from penstock.envelope.envelope import JsonObject, JsonValue


class RunStatus(StrEnum):
    """Where a run stands."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


class StepStatus(StrEnum):
    """Where a step of a run stands."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"  # it never started, and will not
    CANCELED = "canceled"  # it was queued or running when its run ended


class Reason(StrEnum):
    """Why a step or a run ended without its handler's word; executors have their own words."""

    UNRESOLVED_INPUT = "unresolved_input"  # a template names what is not there
    INPUT_TOO_LARGE = "input_too_large"
    FANOUT_NOT_A_LIST = "fanout_not_a_list"
    FANOUT_TOO_LARGE = "fanout_too_large"
    CHILD_FAILED = "child_failed"  # a fan-out, because of one of its children
    DEPENDENCY_FAILED = "dependency_failed"  # skipped, because of a step before it
    RUN_FAILED = "run_failed"  # skipped or canceled, because of a step beside it
    RUN_CANCELED = "run_canceled"
    STEP_FAILED = "step_failed"  # a run, because of one of its steps
    OUTPUT_UNFIT = "output_unfit"  # a run whose output does not fit its outputSchema


LIVE = frozenset({StepStatus.PENDING, StepStatus.RUNNING})
ENDED = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELED})


class StepState(NamedTuple):
    """One row of `workflow_run_steps`, as far as it decides anything."""

    address: str
    step_id: str
    status: StepStatus = StepStatus.PENDING
    attempt: int = 1  # of the attempt that is queued, runs, or was the last
    input: JsonObject | None = None
    output: JsonValue = None
    reason: str | None = None
    detail: str | None = None
    # Of a child: its item's place in the list. It hides tuple.index, which nobody needs here.
    index: int | None = None  # type: ignore[assignment]


_EMPTY: JsonObject = {}
_NOTHING: Mapping[str, StepState] = MappingProxyType({})


class RunState(NamedTuple):
    """One row of `workflow_runs` with its steps, as far as it decides anything."""

    id: str
    status: RunStatus = RunStatus.PENDING
    parameters: JsonObject = _EMPTY
    steps: Mapping[str, StepState] = _NOTHING  # by address, in the order they were made
    shared: JsonObject = _EMPTY
    run_key: str | None = None
    trigger: JsonObject | None = None
    partition_key: str | None = None
    correlation_id: str | None = None

    def context(self) -> JsonObject:
        """The run's context as the API shows it: what every step gave, and what is shared."""
        return {
            "steps": {
                each.address: {"status": str(each.status), "output": each.output}
                for each in self.steps.values()
                if each.index is None
            },
            "shared": dict(self.shared),
        }


class StepDone(NamedTuple):
    """What a worker says about one attempt of a step."""

    address: str
    attempt: int
    succeeded: bool
    output: JsonValue = None
    reason: str | None = None  # of a failure
    detail: str | None = None
    retryable: bool = True


class Job(NamedTuple):
    """One attempt to be put into the queue."""

    address: str
    attempt: int
    delay_ms: int = 0


class Outcome(NamedTuple):
    """How a run ended."""

    status: RunStatus
    output: JsonValue = None
    reason: str | None = None
    detail: str | None = None
    step_id: str | None = None  # the step that decided it


class Progress(NamedTuple):
    """What follows from what has finished: rows to write, jobs to queue, what the run becomes.

    Apply it in one transaction under the run's row lock: insert, update, queue, drop, store `run`.
    """

    run: RunState
    insert: tuple[StepState, ...] = ()  # rows that do not exist yet, each in its state
    update: tuple[StepState, ...] = ()  # rows that do
    jobs: tuple[Job, ...] = ()  # to be queued; their rows are among the above, or already there
    drop: tuple[str, ...] = ()  # addresses whose queued or running attempt is to be stopped
    shared: Mapping[str, JsonValue] = MappingProxyType({})  # new entries of `run.shared`
    outcome: Outcome | None = None  # given once, by the call that ends the run
    ignored: tuple[StepDone, ...] = ()  # fenced: another attempt, or a step that is over
