"""Gather what has to be written after some runs went on: rows for each statement, in bulk.

    Progress of each run ── add ──▶ Changes ── one statement per kind of row ──▶ PostgreSQL

Pure. Rows are plain JSON objects, because that is how they travel; values that are JSON already
(inputs, outputs) are put in as they are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.base.clock import format_instant
from penstock.base.ids import derived_id
from penstock.envelope.context import METADATA_KEY
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.workflows.port import Failed, Failure, Succeeded
from penstock.workflows.queue.job import Ended, step_name
from penstock.workflows.run import (
    LIVE,
    Job,
    Outcome,
    Progress,
    RunState,
    StepDone,
    StepState,
)

Rows = list[JsonObject]
TEXT_MAX = 2_000
JOB_SOURCE = "core.jobs"
LOGS_MAX = 64 * 1024 + 100  # with the line that says how much more was printed
_ENDS: dict[str, str] = {Failure.TIMED_OUT: "expired", Failure.CANCELED: "canceled"}


@dataclass(slots=True)
class Changes:
    """Rows to write in one transaction."""

    insert_steps: Rows = field(default_factory=list)
    update_steps: Rows = field(default_factory=list)
    queue_jobs: Rows = field(default_factory=list)
    delete_jobs: Rows = field(default_factory=list)
    drop_jobs: Rows = field(default_factory=list)
    insert_job_runs: Rows = field(default_factory=list)
    insert_history: Rows = field(default_factory=list)
    update_runs: Rows = field(default_factory=list)
    events: Rows = field(default_factory=list)  # what executions were, for the log
    states: dict[str, RunState] = field(default_factory=dict)  # as they are after the commit
    dropped: list[tuple[str, str]] = field(default_factory=list)  # run and address
    delay_ms_min: int | None = None  # until the first of the queued jobs that wait is due

    def add(
        self, tenant_id: str, before: RunState, progress: Progress, ended: Sequence[Ended] = ()
    ) -> None:
        """Take in how one run went on, and the executions that made it."""
        jobs = {job.address: job for job in progress.jobs}
        by_address = {each.claimed.address: each for each in ended}
        self._steps(tenant_id, before, progress, jobs, by_address)
        self._jobs(tenant_id, before.id, progress.jobs)
        for each in ended:
            if each.claimed.address not in jobs:
                self.delete_jobs.append({"id": each.claimed.id})
            row = job_run_row(each)
            self.insert_job_runs.append(row)
            self.events.append(job_event(each, row))
        for address in progress.drop:
            self.drop_jobs.append({"run_id": before.id, "address": address})
            self.dropped.append((before.id, address))
        if progress.insert or progress.update or progress.outcome or progress.shared:
            self.update_runs.append(_run_row(progress))
            self.states[before.id] = progress.run

    def _steps(
        self,
        tenant_id: str,
        before: RunState,
        progress: Progress,
        jobs: Mapping[str, Job],
        ended: Mapping[str, Ended],
    ) -> None:
        for place, state in enumerate(progress.insert, start=len(before.steps)):
            self.insert_steps.append(_new_step(tenant_id, before.id, place, state))
            self._note(tenant_id, before.id, state, None)
        for state in progress.update:
            job = jobs.get(state.address)
            row = _changed_step(before, state, job, ended.get(state.address))
            self.update_steps.append(row)
            self._note(tenant_id, before.id, state, job)

    def _jobs(self, tenant_id: str, run_id: str, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self.queue_jobs.append(
                {
                    "tenant_id": tenant_id, "run_id": run_id, "address": job.address,
                    "attempt": job.attempt, "delay_ms": job.delay_ms,
                }
            )  # fmt: skip
            if job.delay_ms and (self.delay_ms_min is None or job.delay_ms < self.delay_ms_min):
                self.delay_ms_min = job.delay_ms

    def _note(self, tenant_id: str, run_id: str, state: StepState, job: Job | None) -> None:
        payload: JsonObject = {"attempt": state.attempt}
        word: str = state.status.value
        if state.reason is not None:
            payload |= {"reason": clean(state.reason), "detail": clean(state.detail)}
        if state.status in LIVE:
            if job is None or job.attempt == 1:
                return  # a step that was queued says so by its row
            word = "retry"
            payload["delayMs"] = job.delay_ms
        self.insert_history.append(
            {
                "tenant_id": tenant_id, "run_id": run_id, "address": state.address,
                "event_type": f"step.{word}", "payload": payload,
            }
        )  # fmt: skip


def done_of(ended: Ended) -> StepDone:
    """What an execution says, as `advance` hears it; not for one that waits."""
    claimed, result = ended.claimed, ended.result
    if isinstance(result, Succeeded):
        return StepDone(claimed.address, claimed.attempt, True, result.output)
    if not isinstance(result, Failed):
        raise TypeError(f"expected an execution that is over, found {type(result).__name__}")
    return StepDone(
        claimed.address, claimed.attempt, False, None, clean(result.reason),
        clean(result.detail), result.retryable,
    )  # fmt: skip


def job_run_row(ended: Ended) -> JsonObject:
    """One execution, as the history keeps it."""
    claimed, result = ended.claimed, ended.result
    failed = result if isinstance(result, Failed) else None
    status = "succeeded"
    if failed is not None:
        status = _ENDS.get(failed.reason, "failed")
    logs = result.logs if isinstance(result, Succeeded | Failed) else None
    row: JsonObject = {
        "run_id": claimed.run_id,
        "address": claimed.address,
        "number": claimed.number,
        "tenant_id": claimed.tenant_id,
        "job_slug": ended.slug,
        "kind": ended.kind,
        "attempt": claimed.attempt,
        "status": status,
        "failure_reason": clean(failed.reason) if failed else None,
        "error_message": clean(failed.detail) if failed else None,
        "logs": clean(logs, LOGS_MAX),
        "worker": ended.worker,
        "queued_at": claimed.queued_at.isoformat(),
        "started_at": claimed.started_at.isoformat(),
    }
    return without_nulls(row)


def job_event(ended: Ended, row: JsonObject) -> JsonObject:
    """What the log hears of one execution: which step of which run, and how it ended."""
    claimed, status = ended.claimed, str(row["status"])
    where: JsonObject = {
        "workflowDefinitionId": claimed.definition_id,
        "workflowRunId": claimed.run_id,
        "workflowRunStepId": step_name(claimed.run_id, claimed.address),
        "jobRunId": claimed.job_run_id,
        "jobSlug": ended.slug,
    }
    payload: JsonObject = {
        **where,
        "attempt": claimed.attempt,
        "status": status,
        "startedAt": format_instant(claimed.started_at),
        "errorMessage": row.get("error_message"),
    }
    event: JsonObject = {
        "id": derived_id(0, "job", claimed.job_run_id, status),
        "type": f"job.run.{status}",
        "source": JOB_SOURCE,
        "payload": without_nulls(payload),
        "correlationId": claimed.correlation_id,
        "causationId": claimed.causation_id,
        "metadata": {METADATA_KEY: where},
        "tenantId": claimed.tenant_id,
    }
    return without_nulls(event)


def without_nulls(row: JsonObject) -> JsonObject:
    """The row without what is nothing: a missing name is read as NULL, and written faster."""
    return {name: value for name, value in row.items() if value is not None}


def clean(text: str | None, most: int = TEXT_MAX) -> str | None:
    """Text that a database and a browser can bear, cut to size."""
    if text is None:
        return None
    cut = text if len(text) <= most else text[: most - 1] + "…"
    if cut.isascii() and "\0" not in cut:
        return cut
    return cut.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def _new_step(tenant_id: str, run_id: str, place: int, state: StepState) -> JsonObject:
    row: JsonObject = {
        "run_id": run_id,
        "address": state.address,
        "place": place,
        "tenant_id": tenant_id,
        "step_id": state.step_id,
        "fanout_index": state.index,
        "status": state.status.value,
        "attempt": state.attempt,
        "input": state.input,
        "output": state.output,
        "reason": clean(state.reason),
        "detail": clean(state.detail),
    }
    return without_nulls(row)


def _changed_step(
    before: RunState, state: StepState, job: Job | None, ended: Ended | None
) -> JsonObject:
    old = before.steps.get(state.address)
    fresh_input = old is None or old.input is not state.input
    row: JsonObject = {
        "run_id": before.id,
        "address": state.address,
        "status": state.status.value,
        "attempt": state.attempt,
        "input": state.input if fresh_input else None,
        "output": state.output,
        "reason": clean(state.reason),
        "detail": clean(state.detail),
    }
    if job is not None and job.attempt > 1:
        row["delay_ms"] = job.delay_ms
    if ended is not None:
        row["job_run_id"] = ended.claimed.job_run_id
        row["started_at"] = ended.claimed.started_at.isoformat()
        if state.status in LIVE and row["detail"] is None and isinstance(ended.result, Failed):
            row["reason"], row["detail"] = clean(ended.result.reason), clean(ended.result.detail)
    return without_nulls(row)


def _run_row(progress: Progress) -> JsonObject:
    row: JsonObject = {"id": progress.run.id}
    if progress.shared:
        row["shared"] = dict(progress.run.shared)
    outcome: Outcome | None = progress.outcome
    if outcome is not None:
        found: dict[str, JsonValue] = {
            "status": outcome.status.value,
            "output": outcome.output,
            "reason": outcome.reason,
            "detail": clean(outcome.detail),
            "step_id": outcome.step_id,
        }
        row |= without_nulls(found)
    return row
