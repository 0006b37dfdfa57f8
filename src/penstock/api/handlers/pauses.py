"""Let operators hold things back and let them go: triggers, sources, and single retries.

    pause ── events wait, none is lost ──▶ resume ── judged in order (or dropped: skip) ──▶
    cancel · force      one waiting delivery, or one event that its source holds back

Each is carried out by a pass of its own, so it is done, durably, when it is answered; what it sets
free is judged by the next worker that looks. Doing it again changes nothing and says so.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StrictBool, StrictInt
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.acts import record
from penstock.api.asking import named
from penstock.api.body import read_bytes, read_model
from penstock.api.context import house_of
from penstock.api.handlers.deliveries import delivery_wire, held_wire
from penstock.api.handlers.triggers import told
from penstock.api.problems import RequestRefused
from penstock.api.reply import reply
from penstock.base.clock import format_instant
from penstock.base.errors import Fault, NotFound, QueryInvalid
from penstock.base.ids import uuid7
from penstock.envelope.envelope import JsonObject
from penstock.envelope.names import source_fault
from penstock.triggers.delivery import Act, ActKind, ActOutcome, Target

_FOR_MS_MIN, _FOR_MS_MAX = 1_000, 366 * 86_400_000
_TARGETS = {Target.EVENT: "events", Target.DELIVERY: "deliveries"}  # as the routes say it
Model = TypeVar("Model", bound=BaseModel)


class _Asked(BaseModel):
    """What an operator may say beside what is to be done."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    reason: str | None = Field(None, min_length=1, max_length=500, description="why; recorded")


class Pausing(_Asked):
    """How long to wait; without an end until somebody resumes it."""

    until: AwareDatetime | None = Field(None, description="when it goes on by itself, RFC 3339")
    for_ms: StrictInt | None = Field(
        None, alias="forMs", ge=_FOR_MS_MIN, le=_FOR_MS_MAX, description="or how long from now"
    )


class Resuming(_Asked):
    """How to go on."""

    skip: StrictBool = Field(False, description="drop what has waited instead of judging it")


class Retrying(_Asked):
    """Nothing but a reason."""


async def pause_trigger(request: Request, caller: Caller) -> Response:
    """Let a trigger wait; its events are judged when it goes on."""
    wanted = await _read(request, Pausing)
    house, key = house_of(request), named(request, "trigger_id", "trigger")
    trigger = await run_in_threadpool(house.trigger_book.get, caller.tenant_id, key)
    until = _until(wanted, house.clock.now())
    act = _act(request, caller, ActKind.PAUSE, Target.TRIGGER, key, wanted.reason, until=until)
    _require(await _carry_out(request, act))
    said = told(trigger) | _pause_of(act)
    await record(house, caller, "penstock.trigger.paused", said, once=(act.id,))
    return reply({"data": {"triggerId": key, "paused": True, "changed": True, **_pause_of(act)}})


async def resume_trigger(request: Request, caller: Caller) -> Response:
    """Let a trigger go on with what has waited, or drop that and go on."""
    wanted = await _read(request, Resuming)
    house, key = house_of(request), named(request, "trigger_id", "trigger")
    trigger = await run_in_threadpool(house.trigger_book.get, caller.tenant_id, key)
    act = _act(
        request, caller, ActKind.RESUME, Target.TRIGGER, key, wanted.reason, skip=wanted.skip
    )
    done = (await _carry_out(request, act)).is_done
    if done:
        said = told(trigger) | _resume_of(act)
        await record(house, caller, "penstock.trigger.resumed", said, once=(act.id,))
    return reply({"data": {"triggerId": key, "paused": False, "changed": done}})


async def pause_source(request: Request, caller: Caller) -> Response:
    """Let the events of a source wait before any trigger sees them."""
    wanted, source = await _read(request, Pausing), _source(request)
    house = house_of(request)
    until = _until(wanted, house.clock.now())
    act = _act(request, caller, ActKind.PAUSE, Target.SOURCE, source, wanted.reason, until=until)
    _require(await _carry_out(request, act))
    said: JsonObject = {"source": source}
    await record(house, caller, "penstock.source.paused", said | _pause_of(act), once=(act.id,))
    return reply({"data": {"source": source, "paused": True, "changed": True, **_pause_of(act)}})


async def resume_source(request: Request, caller: Caller) -> Response:
    """Let the events of a source go on, or drop those that have waited."""
    wanted, source = await _read(request, Resuming), _source(request)
    act = _act(
        request, caller, ActKind.RESUME, Target.SOURCE, source, wanted.reason, skip=wanted.skip
    )
    done = (await _carry_out(request, act)).is_done
    if done:
        said: JsonObject = {"source": source}
        await record(
            house_of(request), caller, "penstock.source.resumed", said | _resume_of(act),
            once=(act.id,),
        )  # fmt: skip
    return reply({"data": {"source": source, "paused": False, "changed": done}})


async def cancel_event(request: Request, caller: Caller) -> Response:
    """Take an event that waits for its source out of the line; no trigger will see it."""
    return await _retry_event(request, caller, ActKind.CANCEL)


async def force_event(request: Request, caller: Caller) -> Response:
    """Let an event that waits for its source be judged now."""
    return await _retry_event(request, caller, ActKind.FORCE)


async def cancel_delivery(request: Request, caller: Caller) -> Response:
    """End the wait of a delivery; it launches nothing."""
    return await _retry_delivery(request, caller, ActKind.CANCEL)


async def force_delivery(request: Request, caller: Caller) -> Response:
    """Let a waiting delivery be attempted now."""
    return await _retry_delivery(request, caller, ActKind.FORCE)


async def _retry_event(request: Request, caller: Caller, kind: ActKind) -> Response:
    wanted = await _read(request, Retrying)
    house, key = house_of(request), named(request, "event_id", "event")
    act = _act(request, caller, kind, Target.EVENT, key, wanted.reason)
    _require(await _carry_out(request, act))
    held = await run_in_threadpool(house.trigger_desk.held_event, caller.tenant_id, key)
    await _record_retry(request, caller, act, {"eventId": key})
    return _retried(act, {} if held is None else held_wire(held))


async def _retry_delivery(request: Request, caller: Caller, kind: ActKind) -> Response:
    wanted = await _read(request, Retrying)
    house, key = house_of(request), named(request, "delivery_id", "delivery")
    act = _act(request, caller, kind, Target.DELIVERY, key, wanted.reason)
    _require(await _carry_out(request, act))
    found, _ = await run_in_threadpool(house.trigger_desk.delivery, caller.tenant_id, key)
    about: JsonObject = {"triggerId": found.trigger_id, "eventId": found.event_id}
    await _record_retry(request, caller, act, about)
    return _retried(act, delivery_wire(found))


async def _record_retry(request: Request, caller: Caller, act: Act, about: JsonObject) -> None:
    word = "cancelled" if act.kind is ActKind.CANCEL else "forced"
    said: JsonObject = {"target": _TARGETS[act.target], "targetId": act.target_id, **about}
    if act.reason is not None:
        said["reason"] = act.reason
    await record(house_of(request), caller, f"penstock.retry.{word}", said, once=(act.id,))


def _retried(act: Act, retry: JsonObject) -> Response:
    """A cancelled retry is over; a forced one is only on its way."""
    return reply({"data": {str(act.target): retry}}, 200 if act.kind is ActKind.CANCEL else 202)


def _act(
    request: Request,
    caller: Caller,
    kind: ActKind,
    target: Target,
    target_id: str,
    reason: str | None,
    *,
    until: datetime | None = None,
    skip: bool = False,
) -> Act:
    at = house_of(request).clock.now()
    return Act(
        uuid7(), kind, target, target_id, caller.tenant_id, caller.name, at, reason, until, skip
    )


async def _carry_out(request: Request, act: Act) -> ActOutcome:
    return await run_in_threadpool(house_of(request).trigger_host.act, act)


def _require(outcome: ActOutcome) -> None:
    if not outcome.is_done:
        raise NotFound(
            f"nothing was changed: {outcome.detail}",
            remedy="`GET /admin/event-health` lists what is paused and what waits.",
        )


def _pause_of(act: Act) -> JsonObject:
    until = None if act.until is None else format_instant(act.until)
    return {"until": until, "reason": act.reason}


def _resume_of(act: Act) -> JsonObject:
    return {"skip": act.skip, "reason": act.reason}


def _until(wanted: Pausing, now: datetime) -> datetime | None:
    """When the pause ends; it must not have ended yet."""
    if wanted.until is not None and wanted.for_ms is not None:
        raise _invalid("/forMs", "expected until or forMs, found both")
    if wanted.for_ms is not None:
        return now + timedelta(milliseconds=wanted.for_ms)
    if wanted.until is not None and wanted.until <= now:
        raise _invalid("/until", f"expected an instant after now ({format_instant(now)})")
    return wanted.until


def _invalid(pointer: str, detail: str) -> RequestRefused:
    return RequestRefused(
        422,
        "body_invalid",
        f"{pointer}: {detail}",
        remedy="Send `until` as an instant to come, or `forMs`, or neither.",
        faults=(Fault(pointer, detail),),
    )


def _source(request: Request) -> str:
    source: str = request.path_params["source"]
    fault = source_fault(source)
    if fault is not None:
        raise QueryInvalid(fault, parameter="source")
    return source


async def _read(request: Request, model: type[Model]) -> Model:
    """The body as a model; nothing at all is as good as an empty object."""
    if not await read_bytes(request):
        return model()
    return await read_model(request, model)
