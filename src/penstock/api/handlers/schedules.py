"""Keep the schedules of workflows: when they run by themselves, and with what."""

from __future__ import annotations

from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.acts import record
from penstock.api.asking import Asked, named
from penstock.api.body import JSON
from penstock.api.context import house_of
from penstock.api.document import merged, read_object
from penstock.api.reply import reply
from penstock.api.versions import MERGE_PATCH, etag, expected_version, is_merge_patch, put_on_top
from penstock.base.clock import format_instant
from penstock.base.errors import QueueUnavailable
from penstock.envelope.envelope import JsonObject
from penstock.workflows.book.conflict import WorkflowChanged
from penstock.workflows.book.schedules.kept import KeptSchedule
from penstock.workflows.schedule import ScheduleSpec


async def list_of_workflow(request: Request, caller: Caller) -> Response:
    """The schedules of one workflow."""
    slug, book = named(request, "slug", "workflow"), house_of(request).workflow_book
    workflow = await run_in_threadpool(book.definitions.get, caller.tenant_id, slug)
    found = await run_in_threadpool(book.schedules.list, caller.tenant_id, slug=slug)
    about: JsonObject = {"id": workflow.id, "slug": slug, "name": workflow.definition.name}
    return reply({"data": {"workflow": about, "schedules": [each.wire() for each in found]}})


async def list_schedules(request: Request, caller: Caller) -> Response:
    """Every schedule, by workflow."""
    slug = Asked(request, "workflow").one("workflow")
    book = house_of(request).workflow_book.schedules
    found = await run_in_threadpool(book.list, caller.tenant_id, slug=slug)
    return reply({"data": {"schedules": [each.wire() for each in found]}})


async def create_schedule(request: Request, caller: Caller) -> Response:
    """Add a schedule to a workflow; it fires what is due from now on."""
    house, slug = house_of(request), named(request, "slug", "workflow")
    document, book = await read_object(request), house.workflow_book.schedules
    made = await run_in_threadpool(book.create, caller.tenant_id, slug, document, by=caller.name)
    try:
        await record(house, caller, "penstock.schedule.created", _said(made), once=(made.id,))
    except QueueUnavailable:
        # The caller will try again; a schedule that nobody heard of must not fire beside that one.
        await run_in_threadpool(book.delete, caller.tenant_id, made.id)
        raise
    place = f"/workflow-schedules/{made.id}"
    return reply({"data": {"schedule": made.wire()}}, 201, {**etag(made), "Location": place})


async def show_schedule(request: Request, caller: Caller) -> Response:
    """One schedule, with when it fires next."""
    key, book = named(request, "schedule_id", "schedule"), house_of(request).workflow_book.schedules
    found = await run_in_threadpool(book.get, caller.tenant_id, key)
    return reply({"data": {"schedule": found.wire()}}, headers=etag(found))


async def change_schedule(request: Request, caller: Caller) -> Response:
    """Change the fields that are named; what was fired stays fired."""
    house, key = house_of(request), named(request, "schedule_id", "schedule")
    expected, given = expected_version(request), await read_object(request, JSON, MERGE_PATCH)
    changed = await run_in_threadpool(_change, request, caller, key, given, expected)
    once = (key, str(changed.version), format_instant(changed.updated_at))
    await record(house, caller, "penstock.schedule.updated", _said(changed), once=once)
    return reply({"data": {"schedule": changed.wire()}}, headers=etag(changed))


async def delete_schedule(request: Request, caller: Caller) -> Response:
    """Forget a schedule; its runs stay."""
    house, key = house_of(request), named(request, "schedule_id", "schedule")
    book, expected = house.workflow_book.schedules, expected_version(request)
    known = await run_in_threadpool(book.get, caller.tenant_id, key)
    drop = partial(book.delete, caller.tenant_id, key, expected_version=expected)
    await run_in_threadpool(drop)
    await record(house, caller, "penstock.schedule.deleted", _said(known), once=(key,))
    return Response(status_code=204)


def _change(
    request: Request, caller: Caller, key: str, given: JsonObject, expected: int | None
) -> KeptSchedule:
    """Put what is given on top of what the schedule says, or what it is expected to say."""
    book, is_deep = house_of(request).workflow_book.schedules, is_merge_patch(request)

    def put(known: KeptSchedule, version: int) -> KeptSchedule:
        document = merged(known.schedule.spec.wire(), given, ScheduleSpec, deeply=is_deep)
        change = partial(book.change, caller.tenant_id, key, document, by=caller.name)
        return change(expected_version=version)

    return put_on_top(partial(book.get, caller.tenant_id, key), put, WorkflowChanged, expected)


def _said(kept: KeptSchedule) -> JsonObject:
    return {
        "scheduleId": kept.id,
        "workflowSlug": kept.schedule.workflow_slug,
        "name": kept.schedule.spec.name,
        "version": kept.version,
    }
