"""Show runs with their steps and history, compare two, and cancel or replay them.

A page of runs goes on after the run that its cursor names, so runs that begin meanwhile neither
repeat nor hide others.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.acts import note, record
from penstock.api.asking import Asked, named
from penstock.api.body import read_bytes
from penstock.api.context import house_of
from penstock.api.problems import RequestRefused
from penstock.api.reply import next_link, page_of, reply
from penstock.base.errors import NotFound, QueryInvalid
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.store.timetravel.diff import changes_between
from penstock.workflows.book.runs.on_postgres import RunReader
from penstock.workflows.book.views import RunView, StepView
from penstock.workflows.run import RunStatus

LIMIT_DEFAULT = 50
HISTORY_DEFAULT = HISTORY_MAX = 1000


async def list_runs(request: Request, caller: Caller) -> Response:
    """Runs, newest first."""
    asked = Asked(request, "workflow", "status", "from", "to", "limit", "cursor")
    limit, cursor = asked.number("limit", LIMIT_DEFAULT), asked.one("cursor")
    found = await run_in_threadpool(_page, request, caller.tenant_id, asked, limit, cursor)
    runs, following = found[:limit], found[limit - 1].id if len(found) > limit else None
    data: JsonObject = {
        "runs": [each.wire() for each in runs],
        "page": page_of(following, following is not None, limit),
    }
    return reply({"data": data}, headers=next_link(request, following))


async def show_run(request: Request, caller: Caller) -> Response:
    """One run, with its context."""
    runs, run_id = _runs(request), _run_id(request)
    run = await run_in_threadpool(runs.run, caller.tenant_id, run_id)
    steps = await run_in_threadpool(runs.steps, caller.tenant_id, run_id)
    return reply({"data": {"run": run.wire(steps)}})


async def list_steps(request: Request, caller: Caller) -> Response:
    """The steps of a run, in order, and every execution of them."""
    runs, run_id = _runs(request), _run_id(request)
    run = await run_in_threadpool(runs.run, caller.tenant_id, run_id)
    steps = await run_in_threadpool(runs.steps, caller.tenant_id, run_id)
    executions = await run_in_threadpool(runs.job_runs, caller.tenant_id, run_id)
    data: JsonObject = {
        "run": run.wire(),
        "steps": [each.wire() for each in steps],
        "jobRuns": [each.wire() for each in executions],
    }
    return reply({"data": data})


async def show_history(request: Request, caller: Caller) -> Response:
    """What happened to a run, oldest first."""
    asked = Asked(request, "limit", "cursor")
    limit = asked.number("limit", HISTORY_DEFAULT, most=HISTORY_MAX)
    after = asked.exactly("cursor") or 0
    runs, run_id = _runs(request), _run_id(request)
    await run_in_threadpool(runs.run, caller.tenant_id, run_id)
    found = await run_in_threadpool(
        runs.history, caller.tenant_id, run_id, after=after, limit=limit + 1
    )
    shown, has_more = found[:limit], len(found) > limit
    following = str(shown[-1].id) if has_more else None
    data: JsonObject = {
        "history": [each.wire() for each in shown],
        "page": page_of(following, has_more, limit),
    }
    return reply({"data": data})


async def show_diff(request: Request, caller: Caller) -> Response:
    """What is not the same in two runs: parameters, steps, output, how they ended."""
    other_id = Asked(request, "compareTo").one("compareTo")
    if other_id is None:
        raise QueryInvalid("expected the id of another run, found none", parameter="compareTo")
    base, base_steps = await run_in_threadpool(_with_steps, request, caller, _run_id(request))
    other, other_steps = await run_in_threadpool(_with_steps, request, caller, other_id)
    changes = changes_between(_compared(base, base_steps), _compared(other, other_steps))
    data: JsonObject = {
        "base": base.wire(),
        "compareTo": other.wire(),
        "changes": [each.to_json() for each in changes],
    }
    return reply({"data": data})


async def cancel_run(request: Request, caller: Caller) -> Response:
    """End a run; what is queued is dropped, what runs is told to stop."""
    await read_bytes(request)
    house, run_id = house_of(request), _run_id(request)
    book = house.workflow_book
    is_done = await run_in_threadpool(book.acts.cancel, caller.tenant_id, run_id, by=caller.name)
    run = await run_in_threadpool(book.runs.run, caller.tenant_id, run_id)
    if not is_done and run.status != RunStatus.CANCELED:
        raise RequestRefused(
            409,
            "run_ended",
            f"expected a run that goes on, found it {run.status}",
            remedy="Nothing is left to cancel; replay the run to do it once more.",
        )
    await record(house, caller, "penstock.run.cancelled", _said(run), once=(run_id,))
    return reply({"data": {"run": run.wire()}})


async def replay_run(request: Request, caller: Caller) -> Response:
    """Start a new run with the same parameters, trigger and partition, without a key."""
    await read_bytes(request)
    house, run_id = house_of(request), _run_id(request)
    book = house.workflow_book
    new_id = await run_in_threadpool(book.acts.replay, caller.tenant_id, run_id, by=caller.name)
    run = await run_in_threadpool(book.runs.run, caller.tenant_id, new_id)
    said = _said(run) | {"replayOf": run_id}
    await note(house, caller, "penstock.run.replayed", said, once=(new_id,))
    return reply({"data": {"run": run.wire()}}, 202)


async def cancel_retry(request: Request, caller: Caller) -> Response:
    """Call off a scheduled retry of a step; the step fails, and its run with it."""
    step = await _retry(request, caller, "cancelled")
    return reply({"data": {"step": step.wire()}})


async def force_retry(request: Request, caller: Caller) -> Response:
    """Bring a scheduled retry of a step forward to now."""
    step = await _retry(request, caller, "forced")
    return reply({"data": {"step": step.wire()}}, 202)


async def _retry(request: Request, caller: Caller, word: str) -> StepView:
    await read_bytes(request)
    house, step_id = house_of(request), named(request, "step_id", "step")
    acts = house.workflow_book.acts
    act = acts.force_retry if word == "forced" else acts.cancel_retry
    await run_in_threadpool(act, caller.tenant_id, step_id, by=caller.name)
    run_id = step_id.rpartition(".")[0]
    steps = await run_in_threadpool(_runs(request).steps, caller.tenant_id, run_id)
    step = next((each for each in steps if each.id == step_id), None)
    if step is None:
        raise NotFound(f"expected a step {step_id[:200]}, found none")
    said: JsonObject = {
        "target": "workflow-steps",
        "targetId": step_id,
        "workflowRunId": run_id,
    }
    await record(house, caller, f"penstock.retry.{word}", said)
    return step


def _page(
    request: Request, tenant_id: str, asked: Asked, limit: int, cursor: str | None
) -> Sequence[RunView]:
    """One more than a page, so that it is known whether there is more."""
    runs = _runs(request)
    return runs.runs(
        tenant_id,
        slug=asked.one("workflow"),
        statuses=asked.among("status", *RunStatus),
        since=asked.instant("from"),
        until=asked.instant("to"),
        before=None if cursor is None else _place(runs, tenant_id, cursor),
        limit=limit + 1,
    )


def _place(runs: RunReader, tenant_id: str, cursor: str) -> tuple[datetime, str]:
    try:
        last = runs.run(tenant_id, cursor)
    except NotFound:
        detail = "expected a cursor from page.nextCursor, found other text"
        raise QueryInvalid(detail, parameter="cursor") from None
    return last.created_at, last.id


def _with_steps(
    request: Request, caller: Caller, run_id: str
) -> tuple[RunView, Sequence[StepView]]:
    runs = _runs(request)
    run = runs.run(caller.tenant_id, run_id)
    return run, runs.steps(caller.tenant_id, run_id)


def _compared(run: RunView, steps: Sequence[StepView]) -> JsonObject:
    """What of a run is worth comparing: not its ids and times, which are never the same."""
    found: dict[str, JsonValue] = {
        each.address: {
            "status": each.status,
            "attempt": each.attempt,
            "input": each.input,
            "output": each.output,
            "failureReason": each.failure_reason,
            "errorMessage": each.error_message,
        }
        for each in steps
    }
    return {
        "workflowSlug": run.workflow_slug,
        "workflowVersion": run.definition_version,
        "status": run.status,
        "parameters": run.parameters,
        "output": run.output,
        "shared": run.shared,
        "failureReason": run.failure_reason,
        "errorMessage": run.error_message,
        "partitionKey": run.partition_key,
        "steps": found,
    }


def _said(run: RunView) -> JsonObject:
    return {"workflowRunId": run.id, "workflowSlug": run.workflow_slug, "runKey": run.run_key}


def _runs(request: Request) -> RunReader:
    return house_of(request).workflow_book.runs


def _run_id(request: Request) -> str:
    return named(request, "run_id", "run")
