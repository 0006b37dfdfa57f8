"""Keep definitions of workflows, show their versions, and start runs of them.

A change is made as `versions` says: the version that If-Match names, or else the newest. Switching
a workflow on or off makes no version.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.acts import note, record
from penstock.api.asking import Asked, named
from penstock.api.body import JSON
from penstock.api.context import house_of
from penstock.api.document import merged, read_form, read_object, take
from penstock.api.problems import answer, problem_of
from penstock.api.reply import reply
from penstock.api.versions import MERGE_PATCH, etag, expected_version, is_merge_patch, put_on_top
from penstock.base.clock import format_instant
from penstock.base.errors import Fault, NotFound
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.workflows.book.conflict import WorkflowChanged
from penstock.workflows.definition import Status, Workflow, WorkflowDefinition
from penstock.workflows.engine.launching.start import RunKeyConflict
from penstock.workflows.errors import ParametersInvalid
from penstock.workflows.forms import AnyObject, Form

STATUSES = ("active", "disabled")
VERSION_MAX = 2**31 - 1


class NewRun(Form):
    """What to start a run with."""

    parameters: AnyObject = Field(default_factory=dict, description="what the workflow is given")
    triggered_by: str | None = Field(None, min_length=1, max_length=200, pattern=r"^[^\x00]*$")
    trigger: AnyObject | None = Field(None, description="what started it, as steps may read it")
    partition_key: str | None = Field(None, min_length=1, max_length=200, pattern=r"^[^\x00]*$")
    run_key: str | None = Field(None, description="one active run at a time has it")
    correlation_id: str | None = Field(
        None, max_length=128, pattern=r"^[\x20-\x7e]+$", description="the trace it is part of"
    )


async def list_workflows(request: Request, caller: Caller) -> Response:
    """Every workflow in its newest version, by slug."""
    asked = Asked(request, "status")
    words = asked.among("status", *STATUSES)
    status = cast("Status", words[0]) if len(words) == 1 else None
    book = house_of(request).workflow_book.definitions
    found = await run_in_threadpool(book.list, caller.tenant_id, status=status)
    return reply({"data": {"workflows": [each.wire() for each in found]}})


async def create_workflow(request: Request, caller: Caller) -> Response:
    """Add a workflow."""
    house, document = house_of(request), await read_object(request)
    status = cast("Status", take(document, "status", *STATUSES) or "active")
    made = await run_in_threadpool(
        house.workflow_book.definitions.create,
        caller.tenant_id, document, by=caller.name, status=status,
    )  # fmt: skip
    await note(house, caller, "penstock.workflow.created", _said(made), once=_once(made))
    place = f"/workflows/{made.definition.slug}"
    return reply({"data": {"workflow": made.wire()}}, 201, {**etag(made), "Location": place})


async def show_workflow(request: Request, caller: Caller) -> Response:
    """One workflow with its versions, schedules and triggers."""
    asked, slug = Asked(request, "version"), named(request, "slug", "workflow")
    wanted = asked.exactly("version")
    found, data = await run_in_threadpool(_whole, request, caller.tenant_id, slug, wanted)
    return reply({"data": data}, headers=etag(found))


async def change_workflow(request: Request, caller: Caller) -> Response:
    """Make a new version of a workflow, or switch it on or off."""
    house, slug = house_of(request), named(request, "slug", "workflow")
    expected, given = expected_version(request), await read_object(request, JSON, MERGE_PATCH)
    changed = await run_in_threadpool(_change, request, caller, slug, given, expected)
    await record(house, caller, "penstock.workflow.updated", _said(changed), once=_once(changed))
    return reply({"data": {"workflow": changed.wire()}}, headers=etag(changed))


async def delete_workflow(request: Request, caller: Caller) -> Response:
    """Let a workflow launch nothing more; its versions and runs stay."""
    house, slug = house_of(request), named(request, "slug", "workflow")
    book = house.workflow_book.definitions
    expected = expected_version(request)
    known = await run_in_threadpool(book.get, caller.tenant_id, slug)
    drop = partial(book.delete, caller.tenant_id, slug, by=caller.name)
    await run_in_threadpool(drop, expected_version=expected)
    await record(house, caller, "penstock.workflow.deleted", _said(known), once=(known.id,))
    return Response(status_code=204)


async def run_workflow(request: Request, caller: Caller) -> Response:
    """Start a run; 409 with the run that has its key already."""
    house, slug = house_of(request), named(request, "slug", "workflow")
    wanted = await read_form(request, NewRun)
    book = house.workflow_book
    try:
        run_id = await run_in_threadpool(
            book.acts.start, caller.tenant_id, slug,
            parameters=wanted.parameters, triggered_by=wanted.triggered_by or caller.name,
            trigger=wanted.trigger, partition_key=wanted.partition_key, run_key=wanted.run_key,
            correlation_id=wanted.correlation_id,
        )  # fmt: skip
    except RunKeyConflict as error:
        taken = await run_in_threadpool(book.runs.run, caller.tenant_id, error.run_id)
        problem = replace(problem_of(error), members={"run": taken.wire()})
        return answer(problem, request.state.instance)
    except ParametersInvalid as error:
        places = [Fault(f"/parameters{each.pointer}", each.detail) for each in error.faults]
        raise ParametersInvalid(places) from None
    run = await run_in_threadpool(book.runs.run, caller.tenant_id, run_id)
    said: JsonObject = {"workflowRunId": run_id, "workflowSlug": slug, "runKey": run.run_key}
    await note(house, caller, "penstock.run.started", said, once=(run_id,))
    return reply({"data": {"run": run.wire()}}, 202)


def _whole(
    request: Request, tenant_id: str, slug: str, version: int | None
) -> tuple[Workflow, JsonObject]:
    house = house_of(request)
    book = house.workflow_book
    if version is not None and not 1 <= version <= VERSION_MAX:
        raise NotFound(f"expected a version of {slug!r}, found none by that number")
    workflow = book.definitions.get(tenant_id, slug, version=version)
    versions: list[JsonValue] = [
        {
            "version": each.version,
            "createdAt": format_instant(each.updated_at),
            "createdBy": each.updated_by,
        }
        for each in book.definitions.versions(tenant_id, slug)
    ]
    schedules = [each.wire() for each in book.schedules.list(tenant_id, slug=slug)]
    known: JsonObject = {"workflowDefinitionId": workflow.id}
    kept = house.trigger_book.list(tenant_id, workflow_slug=slug)
    triggers = [each.wire() | known for each in kept]
    whole = workflow.wire() | {"schedules": [*schedules], "eventTriggers": [*triggers]}
    return workflow, {"workflow": whole, "versions": versions}


def _change(
    request: Request, caller: Caller, slug: str, given: JsonObject, expected: int | None
) -> Workflow:
    """Put what is given on top of the newest version, or the one that is expected."""
    book, fields = house_of(request).workflow_book.definitions, dict(given)
    status = cast("Status | None", take(fields, "status", *STATUSES))
    is_deep = is_merge_patch(request)

    def put(known: Workflow, version: int) -> Workflow:
        document = None
        if fields or status is None:
            kept = known.definition.wire()
            document = merged(kept, fields, WorkflowDefinition, deeply=is_deep)
        change = partial(book.change, caller.tenant_id, slug, document, by=caller.name)
        return change(status=status, expected_version=version)

    return put_on_top(partial(book.get, caller.tenant_id, slug), put, WorkflowChanged, expected)


def _said(workflow: Workflow) -> JsonObject:
    return {
        "workflowDefinitionId": workflow.id,
        "workflowSlug": workflow.definition.slug,
        "name": workflow.definition.name,
        "version": workflow.version,
        "status": workflow.status,
    }


def _once(workflow: Workflow) -> tuple[str, ...]:
    return workflow.id, str(workflow.version), workflow.status, format_instant(workflow.updated_at)
