"""Hold one claimed attempt of a step, and how it ended.

    claim ──▶ Claimed ── executor ──▶ Ended(claimed, result) ── complete, under its fence

Ids are functions of what they name: a step is `<run>.<address>`, an execution of it
`<run>.<address>.<number>`, so whoever holds one can find the row.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from penstock.base.errors import PenstockError
from penstock.envelope.context import WorkflowContext
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.workflows.plan import WorkPlan
from penstock.workflows.port import StepCall, StepResult
from penstock.workflows.run import RunStatus

LOST_MAX = 5  # workers that may die while they run one job, before the job is to blame
QUEUE = "workflow"


class BatchRefused(PenstockError):
    """PostgreSQL would not take what executions gave; nothing of the batch was written."""

    code = "batch_refused"
    remedy = "Nothing was lost: the worker says each on its own, and fails the one to blame."


class Claimed(NamedTuple):
    """One attempt that this worker may run, and nobody else."""

    id: int
    fence: int
    run_id: str
    address: str
    attempt: int
    number: int
    lost: int
    token: JsonValue
    queued_at: datetime
    started_at: datetime
    claimed_at: datetime
    step_id: str
    input: JsonObject
    tenant_id: str
    run_status: RunStatus
    definition_id: str
    definition_version: int
    run_key: str | None
    correlation_id: str
    causation_id: str | None

    @property
    def job_run_id(self) -> str:
        """The name of this execution."""
        return f"{self.run_id}.{self.address}.{self.number}"

    def call(self, work: WorkPlan) -> StepCall:
        """The attempt as an executor takes it."""
        run_step_id = step_name(self.run_id, self.address)
        return StepCall(
            run_step_id=run_step_id,
            job_run_id=self.job_run_id,
            attempt=self.attempt,
            kind=work.kind.value,
            slug=work.slug,
            input=self.input,
            # All of it comes from rows that were checked when they were written.
            context=WorkflowContext.model_construct(
                workflow_definition_id=self.definition_id,
                workflow_run_id=self.run_id,
                workflow_run_step_id=run_step_id,
                job_run_id=self.job_run_id,
                job_slug=work.slug,
                workflow_run_key=self.run_key,
            ),
            timeout_s=work.timeout_ms / 1000,
            idempotency_key=run_step_id,
            correlation_id=self.correlation_id,
            causation_id=self.causation_id,
            tenant_id=self.tenant_id,
            token=self.token,
            started_at=self.started_at,
        )


class Ended(NamedTuple):
    """What an executor said about a claimed attempt."""

    claimed: Claimed
    kind: str
    slug: str
    worker: str
    result: StepResult


def step_name(run_id: str, address: str) -> str:
    """The id of a step of a run."""
    return f"{run_id}.{address}"


def read_step_name(name: str) -> tuple[str, str]:
    """The run and the address that an id names; no address has a dot in it."""
    run_id, _, address = name.rpartition(".")
    return run_id, address
