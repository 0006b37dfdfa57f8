"""Fire workflows by the clock: which slots are due, exactly, whoever asks and however late.

    cursor ──┬── slot ── slot ── slot ──▶ now      catchUp all   one run for each, oldest first
             │                    │                catchUp last  one run, for the last one
             └─ settled up to here                 catchUp none  one run if the last is fresh

A slot is named by its schedule and its instant, so two schedulers that fire it make one event and
one run. Pure: the clock is an argument. A slot settles the window from the one before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from penstock.base.clock import format_instant, parse_instant
from penstock.base.errors import Fault
from penstock.base.faults import form_faults
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.workflows.cron import cron_fault, instants, last_instant, zone_fault
from penstock.workflows.errors import ScheduleInvalid
from penstock.workflows.forms import AnyObject, Form, Name, model_wire
from penstock.workflows.params import Get, Path, Scope, Unresolved, compile_template, walk
from penstock.workflows.run import RunState
from penstock.workflows.runkey import RunKey, schedule_run_key

OCCURRENCES_MAX = 25  # a pass
FRESH = timedelta(seconds=60)  # how late a slot may be and still count when nothing is caught up


class ScheduleSpec(Form):
    """When a workflow runs by itself, and with what."""

    name: Name
    description: str | None = Field(default=None, max_length=2_000)
    cron: str = Field(max_length=200)
    timezone: str = Field(default="UTC", max_length=100)
    parameters: AnyObject = Field(default_factory=dict)
    start_window: str | None = None
    end_window: str | None = None
    catch_up: Literal["none", "last", "all"] = "last"
    is_active: bool = True

    @field_validator("catch_up", mode="before")
    @classmethod
    def _words(cls, said: Any) -> Any:
        """True and false are the older words for all and last."""
        return {True: "all", False: "last"}.get(said, said) if isinstance(said, bool) else said

    @field_validator("start_window", "end_window")
    @classmethod
    def _instants(cls, said: str | None) -> str | None:
        if said is None:
            return None
        try:
            return format_instant(parse_instant(said))
        except ValueError as error:
            raise PydanticCustomError("instant", "{detail}", {"detail": str(error)}) from None

    def wire(self) -> JsonObject:
        """The schedule under its wire names."""
        return model_wire(self)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as the book keeps it, and up to where it is settled."""

    id: str
    tenant_id: str
    workflow_slug: str
    spec: ScheduleSpec
    created_at: datetime
    cursor: datetime | None = None  # the last slot that was fired or passed over


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One slot that is due: its names, its window, and what its run is given."""

    event_id: str
    run_key: RunKey
    slot_at: datetime
    window_start: datetime | None
    parameters: JsonObject
    trigger: JsonObject


@dataclass(frozen=True, slots=True)
class Due:
    """What a schedule wants now, and what to keep once that is done."""

    occurrences: tuple[Occurrence, ...]
    cursor: datetime | None
    next_fire_at: datetime | None  # in the past when more than a pass's worth is due


def read_schedule(document: JsonValue) -> ScheduleSpec:
    """The schedule that a document says; ScheduleInvalid names every place that is wrong."""
    try:
        spec = ScheduleSpec.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ScheduleInvalid(form_faults(error, document)) from None
    places = (("/cron", cron_fault(spec.cron)), ("/timezone", zone_fault(spec.timezone)))
    found = [Fault(place, detail) for place, detail in places if detail is not None]
    if spec.start_window and spec.end_window and spec.end_window <= spec.start_window:
        found.append(Fault("/endWindow", "expected an end after startWindow, found one before"))
    if found:
        raise ScheduleInvalid(found)
    return spec


def next_fire_at(schedule: Schedule) -> datetime | None:
    """The first slot that is not settled; None when it is inactive or its time is over."""
    return _first(schedule, _settled_until(schedule)) if schedule.spec.is_active else None


def due(schedule: Schedule, now: datetime) -> Due:
    """Which slots to fire now, oldest first, at most 25."""
    since = _settled_until(schedule)
    if not schedule.spec.is_active:
        return Due((), schedule.cursor, None)
    slots, settled = _slots(schedule, since, now)
    before = [_before(schedule, slots[0])] if slots else []
    starts = before + slots[:-1]
    made = [_occurrence(schedule, slot, start) for slot, start in zip(slots, starts, strict=True)]
    return Due(tuple(made), settled or schedule.cursor, _first(schedule, settled or since))


def _settled_until(schedule: Schedule) -> datetime:
    """The instant after which slots are open."""
    if schedule.cursor is not None:
        return schedule.cursor
    if schedule.spec.start_window is not None:
        # The window's first instant is a slot itself if the cron expression says so.
        return parse_instant(schedule.spec.start_window) - timedelta(microseconds=1)
    return schedule.created_at


def _first(schedule: Schedule, after: datetime) -> datetime | None:
    spec = schedule.spec
    found = next(instants(spec.cron, spec.timezone, after), None)
    if found is None or (spec.end_window and found > parse_instant(spec.end_window)):
        return None
    return found


def _slots(
    schedule: Schedule, since: datetime, now: datetime
) -> tuple[list[datetime], datetime | None]:
    """The slots to fire, and the last one that is settled by it; None when none is due."""
    spec = schedule.spec
    until = min(now, parse_instant(spec.end_window)) if spec.end_window else now
    if spec.catch_up == "all":
        ahead = islice(instants(spec.cron, spec.timezone, since), OCCURRENCES_MAX)
        slots = [slot for slot in ahead if slot <= until]
        return slots, slots[-1] if slots else None
    last = last_instant(spec.cron, spec.timezone, until, after=since)
    if last is None:
        return [], None
    is_wanted = spec.catch_up == "last" or now - last <= FRESH
    return [last] if is_wanted else [], last


def _before(schedule: Schedule, slot: datetime) -> datetime | None:
    """Where the window of a slot starts: the last settled slot, or the one before it by cron."""
    if schedule.cursor is not None:
        return schedule.cursor
    spec = schedule.spec
    earlier = last_instant(spec.cron, spec.timezone, slot - timedelta(microseconds=1))
    if earlier is None and spec.start_window is not None:
        return parse_instant(spec.start_window)
    return earlier


def _occurrence(schedule: Schedule, slot: datetime, start: datetime | None) -> Occurrence:
    spec = schedule.spec
    name = slot.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    window = {"start": format_instant(start) if start else None, "end": format_instant(slot)}
    about: JsonObject = {
        "id": schedule.id,
        "name": spec.name,
        "cron": spec.cron,
        "timezone": spec.timezone,
        "occurrence": format_instant(slot),
        "window": {**window},
        "catchUp": spec.catch_up,
    }
    trigger: JsonObject = {"type": "schedule", "schedule": about}
    return Occurrence(
        event_id=f"sched:{schedule.id}:{name}",
        run_key=schedule_run_key(schedule.id, name),
        slot_at=slot,
        window_start=start,
        parameters=render_parameters(spec.parameters, trigger),
        trigger=trigger,
    )


def render_parameters(template: JsonObject, trigger: JsonObject) -> JsonObject:
    """Parameters with `{{ schedule.… }}` and `{{ trigger.… }}` filled in, the rest as it stands."""
    scope = Scope(RunState("", trigger=trigger))
    return {key: _rendered(value, scope) for key, value in template.items()}


def _rendered(template: JsonValue, scope: Scope) -> JsonValue:
    if isinstance(template, dict):
        return {key: _rendered(value, scope) for key, value in template.items()}
    if isinstance(template, list):
        return [_rendered(value, scope) for value in template]
    try:
        return compile_template(template, _look_in_trigger)(scope)
    except Unresolved:
        return template


def _look_in_trigger(path: Path) -> Get:
    return lambda scope: walk(_roots(scope.run.trigger or {}), path, 0)


def _roots(trigger: JsonObject) -> JsonObject:
    return {"trigger": trigger, "schedule": trigger.get("schedule")}
