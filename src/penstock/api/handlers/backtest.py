"""Say what a trigger would have done, or did: over its own past, over any past, for one event.

    recorded       a trigger's own passes, run again and held against its deliveries: no difference
    hypothetical   a draft, or a trigger as it is now, over any events, on a simulated clock
    preview        a draft against one event: predicates, keys, parameters, run key

Nothing is launched and nothing is written. A stretch is work, so it has a few threads of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, Self, TypeVar, cast

import anyio.to_thread
from anyio import CapacityLimiter
from pydantic import BaseModel, ConfigDict, Field, StrictInt, model_validator
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller, Scope
from penstock.api.body import read_model
from penstock.api.context import house_of
from penstock.api.handlers.blindness import warnings
from penstock.api.handlers.preview import covered, preview_of
from penstock.api.reply import reply
from penstock.base.clock import format_instant
from penstock.base.errors import AccessDenied, NotFound, QueryInvalid
from penstock.envelope.envelope import JsonObject, Stored
from penstock.store.timetravel.moment import read_as_of, refuse_future
from penstock.triggers.backtest import Difference
from penstock.triggers.check import check_spec
from penstock.triggers.host.compare import RecordedBacktest
from penstock.triggers.predicate import document_of
from penstock.triggers.simulate import simulate
from penstock.triggers.trigger import Trigger, TriggerSpec

if TYPE_CHECKING:
    from penstock.house import House

DAYS_DEFAULT = 7
EVENTS_DEFAULT, EVENTS_MAX = 200_000, 2_000_000
RUN_MS_DEFAULT, RUN_MS_MAX = 60_000, 86_400_000
_BEFORE = datetime(1970, 1, 1, tzinfo=UTC)  # any pass
_AT_ONCE = 2
_STRETCH = 2_000
_DIFFERENCES_SHOWN = 20
_NOT_RECORDED = ("eventsRead", "verdicts", "coverage")  # a record runs passes, not events
_Answer = TypeVar("_Answer")
_Document = dict[str, object]
_Place = str | int


class Backtesting(BaseModel):
    """What to try, and over which stretch of the log."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    trigger_id: str | None = Field(
        None, alias="triggerId", max_length=200, description="a trigger that is there"
    )
    trigger: _Document | None = Field(None, description="or a draft, as it would be made")
    workflow: str | None = Field(None, max_length=100, description="the workflow of a draft")
    mode: Literal["recorded", "hypothetical"] | None = Field(
        None, description="default: recorded for triggerId, hypothetical for a draft"
    )
    begins: _Place | None = Field(
        None, alias="from", description=f"position or instant; {DAYS_DEFAULT} days ago"
    )
    ends: _Place | None = Field(None, alias="to", description="position or instant; now")
    run_ms: StrictInt | None = Field(
        None, alias="runMs", ge=0, le=RUN_MS_MAX,
        description="how long a run takes; default the workflow's median, else a minute",
    )  # fmt: skip
    events_max: StrictInt = Field(
        EVENTS_DEFAULT, alias="eventsMax", ge=1, le=EVENTS_MAX, description="events read at most"
    )

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.trigger_id is None) == (self.trigger is None):
            raise ValueError("expected either triggerId or trigger")
        if self.mode == "recorded" and self.trigger_id is None:
            raise ValueError("expected triggerId: a draft has no record")
        return self

    @property
    def is_recorded(self) -> bool:
        """Whether a trigger's own past is run again."""
        return self.trigger_id is not None and self.mode != "hypothetical"


class Previewing(BaseModel):
    """A draft, and one event to try it with."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    trigger: _Document = Field(description="the draft, as it would be made")
    workflow: str = Field("preview", max_length=100, description="what trigger.workflowSlug says")
    event_id: str | None = Field(None, alias="eventId", max_length=128, description="a stored one")
    event: _Document | None = Field(None, description="or one as it could come")

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.event_id is None) == (self.event is None):
            raise ValueError("expected either eventId or event")
        return self


async def run(request: Request, caller: Caller) -> Response:
    """Run a trigger's past again, or say what a draft would have done; nothing is launched."""
    wanted, house = await read_model(request, Backtesting), house_of(request)
    if wanted.is_recorded:
        return reply({"data": await _work(request, lambda: _recorded(house, caller, wanted))})
    _require_events(caller)
    return reply({"data": await _work(request, lambda: _hypothetical(house, caller, wanted))})


async def preview(request: Request, caller: Caller) -> Response:
    """Try a draft with one event: predicates, keys, parameters and run key."""
    wanted, house = await read_model(request, Previewing), house_of(request)
    spec = check_spec(cast("JsonObject", wanted.trigger))
    _require_events(caller)
    if wanted.event_id is not None:
        found = await run_in_threadpool(house.reader.by_id, caller.tenant_id, wanted.event_id)
        if found is None:
            raise NotFound(f"expected an event by the id {wanted.event_id[:60]!r}, found none")
        document = document_of(found)
    else:
        document = cast("JsonObject", wanted.event)
    draft = draft_of(spec, caller, wanted.workflow, house.clock.now())
    warned = await run_in_threadpool(warnings, house, draft)
    return reply({"data": preview_of(draft, document, house.clock.now()) | warned})


def draft_of(spec: TriggerSpec, caller: Caller, workflow: str, now: datetime) -> Trigger:
    """A trigger that is not there, as if it were."""
    who = caller.name
    return Trigger("draft", caller.tenant_id, workflow, 1, spec, now, who, now, who)


def _require_events(caller: Caller) -> None:
    """A draft can ask anything of events, so whoever tries one must be allowed to read them."""
    if not caller.may(Scope.EVENTS_READ):
        raise AccessDenied(
            "expected a token that may also read events (events:read), found one without",
            known=True,
            remedy="Ask with a token that has events:read beside workflows:read.",
        )


async def _work(request: Request, work: Callable[[], _Answer]) -> _Answer:
    state = request.app.state
    if not hasattr(state, "backtesting"):
        state.backtesting = CapacityLimiter(_AT_ONCE)
    return await anyio.to_thread.run_sync(work, limiter=state.backtesting)


def _recorded(house: House, caller: Caller, wanted: Backtesting) -> JsonObject:
    after, until = 0, None
    if wanted.begins is not None:
        after = _position(house, "from", wanted.begins)
    if wanted.ends is not None:
        place = _place(house, "to", wanted.ends)
        until = house.history.locate(place).at or _BEFORE if isinstance(place, int) else place
    key = cast("str", wanted.trigger_id)
    found = house.trigger_record.backtest(caller.tenant_id, key, after=after, until=until)
    stretch: JsonObject = {
        "after": str(after), "until": None if until is None else format_instant(until),
    }  # fmt: skip
    return _record_wire(found, shows_events=caller.may(Scope.EVENTS_READ)) | stretch


def _record_wire(found: RecordedBacktest, *, shows_events: bool) -> JsonObject:
    figures = cast("JsonObject", covered(found.found.wire()))
    said: JsonObject = {name: figures[name] for name in figures if name not in _NOT_RECORDED}
    if not shows_events:
        said |= {"samples": None, "failureSamples": None}
    return said | {
        "mode": "recorded",
        "equalsRecord": found.equals_record,
        "passes": found.passes,
        "deliveries": found.deliveries,
        "differences": len(found.differences),
        "differenceSamples": [_difference(d) for d in found.differences[:_DIFFERENCES_SHOWN]],
    }


def _difference(difference: Difference) -> JsonObject:
    recorded, replayed = difference.recorded, difference.replayed
    return {
        "deliveryId": difference.delivery_id,
        "recorded": None if recorded is None else str(recorded.status),
        "replayed": None if replayed is None else str(replayed.status),
    }


def _hypothetical(house: House, caller: Caller, wanted: Backtesting) -> JsonObject:
    if wanted.trigger_id is not None:
        trigger = house.trigger_book.get(caller.tenant_id, wanted.trigger_id)
    else:
        spec = check_spec(cast("JsonObject", wanted.trigger))
        trigger = draft_of(spec, caller, wanted.workflow or "draft", house.clock.now())
    typical = house.workflow_book.runs.typical_ms(caller.tenant_id, trigger.workflow_slug)
    run_ms = wanted.run_ms if wanted.run_ms is not None else round(typical or RUN_MS_DEFAULT)
    after, upto = _stretch(house, wanted)
    events = _Events(house, caller.tenant_id, after, upto, wanted.events_max)
    found = simulate([trigger], events, house.limits, run_ms)[0]
    said = cast("JsonObject", covered(found.wire())) | {
        "mode": "hypothetical",
        "runMs": run_ms,
        "complete": events.complete,
    }
    return said | {"triggerId": wanted.trigger_id} | warnings(house, trigger)


def _stretch(house: House, wanted: Backtesting) -> tuple[int, int]:
    """The positions after which, and up to which, events are read."""
    since = format_instant(house.clock.now() - timedelta(days=DAYS_DEFAULT))
    after = _position(house, "from", since if wanted.begins is None else wanted.begins)
    if wanted.ends is None:
        return after, house.history.head().position
    upto = _position(house, "to", wanted.ends)
    if after > upto:
        raise QueryInvalid("expected from to be before to", parameter="from")
    return after, upto


def _position(house: House, name: str, said: _Place) -> int:
    """The last position by a place in the log."""
    place = _place(house, name, said)
    return place if isinstance(place, int) else house.history.locate(place).position


def _place(house: House, name: str, said: _Place) -> int | datetime:
    """The position or instant that was named; it must have come."""
    place = read_as_of(str(said), name)
    refuse_future(place, head=house.history.head(), now=house.clock.now(), parameter=name)
    return place


class _Events:
    """The events of a tenant in a stretch of the log, read as they are needed."""

    def __init__(self, house: House, tenant_id: str, after: int, upto: int, most: int) -> None:
        self._house, self._tenant_id = house, tenant_id
        self._after, self._upto, self._left = after, upto, most
        self.complete = True

    def __iter__(self) -> Iterator[Stored]:
        while self._after < self._upto:
            found = self._house.reader.after(self._after, _STRETCH, tenant_id=self._tenant_id)
            for stored in found:
                if stored.position > self._upto:
                    return
                if self._left == 0:
                    self.complete = False
                    return
                self._left -= 1
                yield stored
            if len(found) < _STRETCH:
                return
            self._after = found[-1].position
