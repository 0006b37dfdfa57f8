"""Try a job without a worker: the same executor, one call, a context made up for it.

result = try_job("load-weather", {"city": "Ulm"})
assert result == Succeeded({"rows": 24})
"""

from __future__ import annotations

from penstock.base.ids import uuid7
from penstock.envelope.context import WorkflowContext
from penstock.envelope.envelope import JsonObject
from penstock.workflows.launch.in_process import InProcess
from penstock.workflows.launch.registry import JOBS, Jobs
from penstock.workflows.port import StepCall, StepResult


def try_job(
    slug: str,
    parameters: JsonObject | None = None,
    *,
    attempt: int = 1,
    timeout_s: float = 60.0,
    jobs: Jobs = JOBS,
) -> StepResult:
    """What a step of the kind `function` would become."""
    trial = f"trial-{uuid7()}"
    context = WorkflowContext(
        workflow_definition_id="trial",
        workflow_run_id=trial,
        workflow_run_step_id=f"{trial}-step",
        job_run_id=f"{trial}-job",
        job_slug=slug,
    )
    executor = InProcess(jobs)
    try:
        return executor.run(
            StepCall(
                run_step_id=context.workflow_run_step_id,
                job_run_id=context.job_run_id,
                attempt=attempt,
                kind="function",
                slug=slug,
                input=parameters or {},
                context=context,
                timeout_s=timeout_s,
                idempotency_key=context.workflow_run_step_id,
            )
        )
    finally:
        executor.close()
