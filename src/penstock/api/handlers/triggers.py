"""Keep triggers over HTTP: list, make, show, change and delete them, with every version.

A change is made as `versions` says. It may bring a `sampleEvent`, which is tried and not kept.
Every version stays; `asOf` shows the triggers as they were defined at a moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.acts import record
from penstock.api.asking import Asked, named
from penstock.api.body import JSON, read_bytes, require_media_type
from penstock.api.context import house_of
from penstock.api.handlers.blindness import refuse, warnings
from penstock.api.reply import reply
from penstock.api.versions import (
    MERGE_PATCH,
    etag,
    expected_version,
    is_merge_patch,
    merge_patched,
    put_on_top,
)
from penstock.base.errors import Fault, NotFound, QueueUnavailable
from penstock.envelope.codec import canonical, decode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.store.timetravel.moment import Moment, read_as_of, refuse_future
from penstock.triggers.book.conflict import TriggerConflict
from penstock.triggers.check import SPEC_BYTES_MAX, TriggerInvalid, check_patch, check_spec
from penstock.triggers.trigger import Trigger, TriggerSpec, TriggerStatus
from penstock.workflows.definition import Workflow

if TYPE_CHECKING:
    from penstock.house import House

SAMPLE = "sampleEvent"
_BODY_BYTES_MAX = SPEC_BYTES_MAX + 512 * 1024  # the trigger, and an event beside it
_FILTERS = ("status", "eventType", "eventSource", "asOf")
_FIELDS = frozenset(field.alias or name for name, field in TriggerSpec.model_fields.items())
_INSTANT = timedelta(microseconds=1)


async def list_of_workflow(request: Request, caller: Caller) -> Response:
    """The triggers of a workflow, oldest first."""
    asked, house = Asked(request, *_FILTERS), house_of(request)
    slug = named(request, "slug", "workflow")
    workflow = await run_in_threadpool(workflow_of, house, caller, slug)
    found = await run_in_threadpool(_listed, house, caller, asked, slug)
    return reply({"data": {"workflow": shown_workflow(workflow), **found}})


async def list_all(request: Request, caller: Caller) -> Response:
    """The triggers of every workflow of the tenant, oldest first."""
    asked = Asked(request, "workflow", *_FILTERS)
    slug = asked.one("workflow")
    return reply({"data": await run_in_threadpool(_listed, house_of(request), caller, asked, slug)})


async def create(request: Request, caller: Caller) -> Response:
    """Make a trigger; it judges what is stored from now on."""
    house, slug = house_of(request), named(request, "slug", "workflow")
    said, sample = await _read(request, JSON)
    spec, book = check_spec(said, sample), house.trigger_book
    await run_in_threadpool(workflow_of, house, caller, slug)
    await run_in_threadpool(refuse, house, spec)
    make = partial(book.create, spec, workflow_slug=slug, tenant_id=caller.tenant_id)
    made = await run_in_threadpool(make, by=caller.name)
    try:
        await record(house, caller, "penstock.trigger.created", told(made), once=(made.id,))
    except QueueUnavailable:
        # Whoever hears 503 tries again, and must not have made two.
        await run_in_threadpool(book.delete, caller.tenant_id, made.id, by=caller.name)
        raise
    place = f"/workflows/{slug}/triggers/{made.id}"
    return await _reply(request, caller, made, 201, Location=place)


async def show(request: Request, caller: Caller) -> Response:
    """One trigger in its newest version, or as it was defined at a moment."""
    as_of = Asked(request, "asOf").one("asOf")
    if as_of is not None:
        return reply({"data": await run_in_threadpool(_shown_as_of, request, caller, as_of)})
    found = await run_in_threadpool(trigger_of, request, caller)
    return await _reply(request, caller, found)


async def change(request: Request, caller: Caller) -> Response:
    """Change some fields of a trigger; null takes a field back."""
    expected = expected_version(request)
    said, sample = await _read(request, JSON, MERGE_PATCH)
    after = await run_in_threadpool(_change, request, caller, said, sample, expected)
    # Also when nothing changed now: the answer to the call that changed it may have been lost.
    if after.version > 1 and after.updated_by == caller.name:
        payload = await run_in_threadpool(_told_change, request, caller, after)
        once = (after.id, str(after.version))
        await record(house_of(request), caller, "penstock.trigger.updated", payload, once=once)
    return await _reply(request, caller, after)


async def remove(request: Request, caller: Caller) -> Response:
    """Delete a trigger; its versions and deliveries stay."""
    house, expected = house_of(request), expected_version(request)
    found = await run_in_threadpool(trigger_of, request, caller)
    drop = partial(house.trigger_book.delete, caller.tenant_id, found.id, by=caller.name)
    await run_in_threadpool(drop, expected_version=expected)
    await record(house, caller, "penstock.trigger.deleted", told(found), once=(found.id,))
    return Response(status_code=204)


async def list_versions(request: Request, caller: Caller) -> Response:
    """Every version of a trigger, oldest first, those of a deleted one too."""
    Asked(request)
    house = house_of(request)
    found = await run_in_threadpool(_versions, request, caller)
    return reply({"data": {"versions": await run_in_threadpool(shown, house, caller, found)}})


def trigger_of(request: Request, caller: Caller) -> Trigger:
    """The trigger that the path names; NotFound when this workflow has none by that id."""
    slug, key = named(request, "slug", "workflow"), named(request, "trigger_id", "trigger")
    return house_of(request).trigger_book.get(caller.tenant_id, key, workflow_slug=slug)


def trigger_ever(request: Request, caller: Caller) -> Trigger:
    """The same, also when it was deleted: what it said last."""
    return _versions(request, caller)[-1]


def _versions(request: Request, caller: Caller) -> list[Trigger]:
    slug, key = named(request, "slug", "workflow"), named(request, "trigger_id", "trigger")
    found = house_of(request).trigger_book.versions(caller.tenant_id, key)
    if found[0].workflow_slug != slug:
        raise NotFound(f"expected a trigger by the id {key[:60]!r}, found none")
    return found


def shown(house: House, caller: Caller, triggers: Sequence[Trigger]) -> list[JsonValue]:
    """Triggers as answers show them; the id of a workflow that was deleted is null."""
    slugs = {each.workflow_slug for each in triggers}
    ids = house.workflow_book.definitions.ids(caller.tenant_id, slugs)
    return [
        {**each.wire(), "workflowDefinitionId": ids.get(each.workflow_slug)} for each in triggers
    ]


async def _reply(
    request: Request, caller: Caller, trigger: Trigger, status: int = 200, **headers: str
) -> Response:
    house = house_of(request)
    (data,) = await run_in_threadpool(shown, house, caller, [trigger])
    warned = await run_in_threadpool(warnings, house, trigger)
    return reply({"data": cast("JsonObject", data) | warned}, status, {**etag(trigger), **headers})


def workflow_of(house: House, caller: Caller, slug: str) -> Workflow:
    """The workflow by that slug; NotFound when the tenant has none."""
    return house.workflow_book.definitions.get(caller.tenant_id, slug)


def shown_workflow(workflow: Workflow) -> JsonObject:
    """What answers about triggers say of their workflow."""
    definition = workflow.definition
    return {"id": workflow.id, "slug": definition.slug, "name": definition.name}


def told(trigger: Trigger) -> JsonObject:
    """What the event of an act says of its trigger."""
    return {
        "triggerId": trigger.id,
        "workflowSlug": trigger.workflow_slug,
        "name": trigger.spec.name,
        "version": trigger.version,
        "status": str(trigger.spec.status),
    }


def patched(spec: TriggerSpec, changes: JsonObject) -> JsonObject:
    """The spec with a merge patch applied; a field that does not exist stays, to be refused."""
    if not changes:
        raise TriggerInvalid([Fault("", "expected an object of at least one field, found none")])
    before: JsonObject = {k: v for k, v in spec.wire().items() if v is not None}
    unknown_nulls: JsonObject = {k: v for k, v in changes.items() if k not in _FIELDS and v is None}
    return merge_patched(before, changes) | unknown_nulls


async def _read(request: Request, *accepted: str) -> tuple[JsonObject, JsonValue]:
    """The body without its sample, and the sample."""
    require_media_type(request, *accepted)
    raw = await read_bytes(request)
    tree = decode(raw, bytes_max=_BODY_BYTES_MAX)
    if not isinstance(tree, dict):
        check_spec(tree)  # says what is wrong with it
        raise AssertionError("only an object is a trigger")
    return {name: value for name, value in tree.items() if name != SAMPLE}, tree.get(SAMPLE)


def _change(
    request: Request, caller: Caller, changes: JsonObject, sample: JsonValue, expected: int | None
) -> Trigger:
    """Put changes on top of the newest version, or the one that is expected."""
    house, is_deep = house_of(request), is_merge_patch(request)

    def put(before: Trigger, version: int) -> Trigger:
        if is_deep:
            spec = check_spec(patched(before.spec, changes), sample)
        else:
            spec = check_patch(before.spec, changes, sample)
        refuse(house, spec, before.spec)
        change = partial(
            house.trigger_book.change, caller.tenant_id, before.id, spec, by=caller.name
        )
        return change(expected_version=version)

    return put_on_top(partial(trigger_of, request, caller), put, TriggerConflict, expected)


def _told_change(request: Request, caller: Caller, after: Trigger) -> JsonObject:
    """What the event of a change says: the trigger, and the fields that differ from before."""
    versions = house_of(request).trigger_book.versions(caller.tenant_id, after.id)
    old = next(each for each in versions if each.version == after.version - 1).spec.wire()
    new = after.spec.wire()
    changed: list[JsonValue] = [
        name for name in new if canonical(old.get(name)) != canonical(new[name])
    ]
    return told(after) | {"changed": changed}


def _listed(house: House, caller: Caller, asked: Asked, slug: str | None) -> JsonObject:
    statuses = asked.among("status", *TriggerStatus)
    wanted_type, wanted_source = asked.one("eventType"), asked.one("eventSource")
    book, as_of = house.trigger_book, asked.one("asOf")
    if as_of is None:
        said: JsonObject = {}
        found = book.list(caller.tenant_id, workflow_slug=slug)
    else:
        moment = moment_of(house, as_of)
        said = {"asOf": moment.to_json()}
        at = cast("datetime", moment.at)
        found = book.as_of(caller.tenant_id, at, workflow_slug=slug)
    triggers = [
        each
        for each in found
        if not statuses or each.spec.status in statuses
        if wanted_type in (None, each.spec.event_type)
        if wanted_source in (None, each.spec.event_source)
    ]
    return {"triggers": shown(house, caller, triggers), **said}


def _shown_as_of(request: Request, caller: Caller, as_of: str) -> JsonObject:
    slug, key = named(request, "slug", "workflow"), named(request, "trigger_id", "trigger")
    house = house_of(request)
    moment = moment_of(house, as_of)
    then = house.trigger_book.as_of(
        caller.tenant_id, cast("datetime", moment.at), workflow_slug=slug
    )
    found = [each for each in then if each.id == key]
    if not found:
        raise NotFound(f"expected a trigger by the id {key[:60]!r} at that moment, found none")
    (data,) = shown(house, caller, found)
    return {**cast("JsonObject", data), "asOf": moment.to_json()}


def moment_of(house: House, text: str) -> Moment:
    """The moment that `asOf` names: a position until the next one came, or an instant."""
    asked, now = read_as_of(text, "asOf"), house.clock.now()
    head = house.history.head()
    refuse_future(asked, head=head, now=now, parameter="asOf")
    if not isinstance(asked, int):
        return Moment(house.history.locate(asked).position, min(asked, now))
    following = None if asked == head.position else house.history.locate(asked + 1).at
    return Moment(asked, now if following is None else following - _INSTANT)
