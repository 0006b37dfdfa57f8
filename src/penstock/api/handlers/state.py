"""Answer questions about the past: a state as of a moment, what changed since, and a replay.

Folding is work, so it has a few threads of its own: however many ask at once, publishing and
reading do not wait for them. Nothing here can publish or append. Personal data in a state is shown
to those who see it in events, and masked for all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.context import house_of
from penstock.api.reply import next_link, page_of, reply
from penstock.api.sight import changes_seen_by, seen_by, state_seen_by
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.store.timetravel.asking import ReplayAsked, read_diff, read_replay, read_state
from penstock.store.timetravel.boundary import Boundary, around
from penstock.store.timetravel.travel import Replay
from penstock.store.view import view

_FOLDING_AT_ONCE = 4
_Answer = TypeVar("_Answer")


async def show_state(request: Request, caller: Caller) -> Response:
    """The state that a boundary's events up to a moment come to."""
    asked = read_state(request.query_params.multi_items(), tenant_id=caller.tenant_id)
    house = house_of(request)

    def stated() -> JsonObject:
        travel = house.time_travel
        found = travel.state(asked.boundary, reducer=asked.reducer, as_of=asked.as_of)
        return {
            "state": state_seen_by(caller, house, found.state.value),
            "asOf": found.moment.to_json(),
            "events": found.state.events,
        }

    return reply({"data": await _fold(request, stated)})


async def show_diff(request: Request, caller: Caller) -> Response:
    """What changed between two moments, each change with the event behind it."""
    asked = read_diff(request.query_params.multi_items(), tenant_id=caller.tenant_id)
    house = house_of(request)

    def differing() -> JsonObject:
        found = house.time_travel.diff(
            asked.boundary, reducer=asked.reducer, begins=asked.begins, ends=asked.ends
        )
        seen = changes_seen_by(caller, house, [each.change for each in found.changes])
        pairs = zip(seen, found.changes, strict=True)
        changes: list[JsonValue] = [
            replace(each, change=change).to_json() for change, each in pairs if change is not None
        ]
        return {"changes": changes, "from": found.begins.to_json(), "to": found.ends.to_json()}

    return reply({"data": await _fold(request, differing)})


async def show_replay(request: Request, caller: Caller) -> Response:
    """The events of a history, oldest first, each with what it changed."""
    asked = read_replay(request.query_params.multi_items(), tenant_id=caller.tenant_id)
    body, following = await _fold(request, lambda: _replayed(request, caller, asked))
    return reply(body, headers=next_link(request, following))


async def _fold(request: Request, work: Callable[[], _Answer]) -> _Answer:
    state = request.app.state
    if not hasattr(state, "folding"):
        state.folding = CapacityLimiter(_FOLDING_AT_ONCE)
    return await anyio.to_thread.run_sync(work, limiter=state.folding)


def _replayed(
    request: Request, caller: Caller, asked: ReplayAsked
) -> tuple[JsonObject, str | None]:
    travel, focus = house_of(request).time_travel, None
    boundary = asked.boundary
    if boundary is None:
        event = travel.find(caller.tenant_id, asked.event_id or "")
        boundary, focus = around(event), str(event.position)
    found = travel.replay(
        boundary,
        reducer=asked.reducer,
        begins=asked.begins,
        ends=asked.ends,
        limit=asked.limit,
        cursor=asked.cursor,
    )
    following = found.next_cursor
    data = _shown(request, caller, boundary, found) | {
        "focus": focus,
        "page": page_of(following, following is not None, asked.limit),
    }
    return {"data": data}, following


def _shown(request: Request, caller: Caller, boundary: Boundary, found: Replay) -> JsonObject:
    house = house_of(request)
    registry, now = house.book.current(), house.clock.now()
    events = seen_by(caller, house, [step.event for step in found.steps])
    seen = iter(changes_seen_by(caller, house, [c for step in found.steps for c in step.changes]))
    steps: list[JsonValue] = []
    for step, event in zip(found.steps, events, strict=True):
        changes = [change for change in islice(seen, len(step.changes)) if change is not None]
        steps.append(
            {
                "event": view(event, registry, now=now),
                "changes": [change.to_json() for change in changes],
            }
        )
    return {
        "boundary": boundary.definition,
        "reducer": {"name": found.reducer.name, "version": found.reducer.version},
        "from": found.begins.to_json(),
        "to": found.ends.to_json(),
        "state": state_seen_by(caller, house, found.base.value),
        "events": found.base.events,
        "steps": steps,
    }
