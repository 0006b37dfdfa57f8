"""Show what became of events at triggers, and why.

A list of deliveries holds no payloads. An explanation shows the values that predicates looked at,
to those who may read events; to others they are null.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller, Scope
from penstock.api.asking import Asked, named
from penstock.api.context import house_of
from penstock.api.handlers.blindness import warnings
from penstock.api.handlers.preview import covered
from penstock.api.handlers.triggers import shown_workflow, trigger_ever, workflow_of
from penstock.api.reply import reply
from penstock.base.clock import format_instant
from penstock.base.errors import QueryInvalid
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.triggers.book.deliveries.on_postgres import LIMIT_DEFAULT, LIMIT_MAX
from penstock.triggers.delivery import Delivery, Held, Reason, RetryState, Status
from penstock.triggers.explain import Explanation

_PARAMETERS = ("limit", "status", "eventId", "dedupeKey", "before")
_POSITION_MAX = 2**62


async def list_deliveries(request: Request, caller: Caller) -> Response:
    """What became of events at a trigger, newest event first; at a deleted one too."""
    asked, house = Asked(request, *_PARAMETERS), house_of(request)
    limit, status = asked.number("limit", LIMIT_DEFAULT, most=LIMIT_MAX), asked.one("status")
    if status is not None and status not in set(Status):
        raise QueryInvalid(f"expected one of {', '.join(Status)}", parameter="status")
    trigger = await run_in_threadpool(trigger_ever, request, caller)
    workflow = await run_in_threadpool(workflow_of, house, caller, trigger.workflow_slug)
    ask = partial(
        house.trigger_desk.deliveries, caller.tenant_id, trigger.id, limit=limit,
        status=None if status is None else Status(status), event_id=asked.one("eventId"),
        dedupe_key=asked.one("dedupeKey"), before=_before(asked.one("before")),
    )  # fmt: skip
    found: list[Delivery] = await run_in_threadpool(ask)
    rows: list[JsonValue] = [
        delivery_wire(each) | {"workflowDefinitionId": workflow.id} for each in found
    ]
    meta: JsonObject = {
        "workflow": shown_workflow(workflow),
        "trigger": {"id": trigger.id, "name": trigger.spec.name, "version": trigger.version},
        "limit": limit,
    }
    return reply({"data": rows, "meta": meta})


async def explain(request: Request, caller: Caller) -> Response:
    """Why an event did, or did not, start something at a trigger."""
    asked = Asked(request, "event", "recompute")
    event_id, again = asked.one("event"), asked.one("recompute") or "false"
    if event_id is None:
        raise QueryInvalid("expected the id of an event, found none", parameter="event")
    if again not in ("true", "false"):
        raise QueryInvalid("expected true or false", parameter="recompute")
    ask = partial(
        house_of(request).trigger_record.explain,
        caller.tenant_id, named(request, "trigger_id", "trigger"), event_id,
        recompute=again == "true",
    )  # fmt: skip
    found = await run_in_threadpool(ask)
    sees = caller.may(Scope.EVENTS_READ)
    data = found.wire()
    data["sentence"] = found.sentence() if sees else None
    if found.predicates is not None:
        data["predicates"] = trace_wire(found.predicates.wire(), sees=sees)
    return reply({"data": data | await run_in_threadpool(_warned, request, caller, found)})


def _warned(request: Request, caller: Caller, found: Explanation) -> JsonObject:
    """What the trigger reads of personal data, in the version that judged."""
    house = house_of(request)
    versions = house.trigger_book.versions(caller.tenant_id, found.trigger_id)
    judged = [each for each in versions if each.version == found.trigger_version]
    return warnings(house, judged[0]) if judged else {}


def trace_wire(trace: JsonObject, *, sees: bool) -> JsonObject:
    """The working of a verdict; the values that were found only for those who may see events."""
    if sees:
        return cast("JsonObject", covered(trace))
    if "inner" not in trace:
        return trace | {"actual": None}
    inner = trace["inner"]
    listed = inner if isinstance(inner, list) else []
    return trace | {
        "inner": [trace_wire(each, sees=False) for each in listed if isinstance(each, dict)]
    }


def delivery_wire(d: Delivery) -> JsonObject:
    """A delivery as the API shows it, without what the event or the run hold."""
    return {
        "id": d.id,
        "triggerId": d.trigger_id,
        "triggerVersion": d.trigger_version,
        "workflowSlug": d.workflow_slug,
        "eventId": d.event_id,
        "position": str(d.event_position),
        "eventType": d.event_type,
        "eventSource": d.event_source,
        "correlationId": d.correlation_id,
        "status": str(d.status),
        "stage": str(d.stage),
        "reason": None if d.reason is None else str(d.reason),
        "role": None if d.role is None else str(d.role),
        "shadow": d.shadow,
        "attempts": d.attempts,
        "lastError": d.last_error,
        "workflowRunId": d.run_id,
        "runKey": d.run_key,
        "dedupeKey": d.dedupe_key,
        "groupKey": d.group_key,
        "nextAttemptAt": _instant(d.next_attempt_at),
        "throttledUntil": _instant(d.throttled_until),
        "retryState": _retry_state(d.retry_state, is_forced=d.reason is Reason.FORCED),
        "retryAttempts": d.retry_attempts,
        "retryMetadata": dict(d.retry_metadata),
        "createdAt": _instant(d.created_at),
        "updatedAt": _instant(d.updated_at),
    }


def held_wire(held: Held) -> JsonObject:
    """An event that waits for its source, as the API shows it."""
    return {
        "eventId": held.event_id,
        "position": str(held.position),
        "source": held.source,
        "attempts": held.attempts,
        "nextAttemptAt": _instant(held.next_attempt_at),
        "retryState": _retry_state(held.retry_state, is_forced=held.is_forced),
        "lastError": held.reason,
        "metadata": dict(held.metadata),
        "createdAt": _instant(held.held_at),
    }


def _retry_state(state: RetryState, *, is_forced: bool) -> str:
    """A forced retry waits for nothing but the next pass."""
    return str(RetryState.PENDING if is_forced else state)


def _instant(at: datetime | None) -> str | None:
    return None if at is None else format_instant(at)


def _before(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and int(text[:20]) <= _POSITION_MAX):
        raise QueryInvalid(f"expected a position, found {text[:40]!r}", parameter="before")
    return int(text)
