"""Show one trace: every event, delivery, run and step of a correlation, and what led to what.

Events come from the log, oldest first; an event that started a run without being part of the
correlation is fetched by its id, and so are its own causes. Payloads are not shown here.
"""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.asking import Asked, named
from penstock.api.context import house_of
from penstock.api.reply import reply
from penstock.api.trace import build_trace, walk
from penstock.base.clock import format_instant
from penstock.base.errors import NotFound, QueryInvalid
from penstock.envelope.envelope import JsonObject, Stored
from penstock.store.timetravel.boundary import boundary
from penstock.triggers.delivery import Delivery
from penstock.workflows.book.views import RunView, StepView

EVENTS_DEFAULT, EVENTS_MAX = 500, 1_000
RUNS_MAX = 200
CAUSES_MAX = 64  # events outside the correlation that are fetched because something names them


async def find_trace(request: Request, caller: Caller) -> Response:
    """The same for a correlation id that no path can hold."""
    asked = Asked(request, "correlationId", "limit")
    limit = asked.number("limit", EVENTS_DEFAULT, most=EVENTS_MAX)
    correlation_id = asked.one("correlationId")
    if correlation_id is None:
        raise QueryInvalid("expected a correlation id, found none", parameter="correlationId")
    return reply(await run_in_threadpool(_trace, request, caller, correlation_id, limit))


async def show_trace(request: Request, caller: Caller) -> Response:
    """Everything that one correlation led to, as a tree in order of time."""
    limit = Asked(request, "limit").number("limit", EVENTS_DEFAULT, most=EVENTS_MAX)
    correlation_id = named(request, "correlation_id", "trace")
    return reply(await run_in_threadpool(_trace, request, caller, correlation_id, limit))


def _trace(request: Request, caller: Caller, correlation_id: str, limit: int) -> JsonObject:
    runs, more_runs = _runs(request, caller, correlation_id)
    events, more_events = _events(request, caller, correlation_id, runs, limit)
    if not runs and not events:
        raise NotFound(f"expected a trace {correlation_id[:128]!r}, found nothing in it")
    deliveries, steps = _deliveries(request, caller, events), _steps(request, caller, runs)
    roots = build_trace(events, deliveries, runs, steps)
    nodes = [node for _, node in walk(roots)]
    data: JsonObject = {
        "correlationId": correlation_id,
        "startedAt": format_instant(min(node.at for node in nodes)),
        "endedAt": format_instant(max(node.at for node in nodes)),
        "counts": {
            "events": len(events),
            "deliveries": len(deliveries),
            "runs": len(runs),
            "steps": len(steps),
        },
        "complete": not (more_runs or more_events),
        "tree": [root.wire() for root in roots],
    }
    return {"data": data}


def _runs(request: Request, caller: Caller, correlation_id: str) -> tuple[list[RunView], bool]:
    reader = house_of(request).workflow_book.runs
    found = reader.correlated(caller.tenant_id, correlation_id, limit=RUNS_MAX + 1)
    return found[:RUNS_MAX], len(found) > RUNS_MAX


def _events(
    request: Request, caller: Caller, correlation_id: str, runs: list[RunView], limit: int
) -> tuple[list[Stored], bool]:
    """The first events of the correlation, and those that it names as causes."""
    history, found = house_of(request).history, list[Stored]()
    whose = boundary(caller.tenant_id, correlation_id=correlation_id)
    for stretch in history.walk(whose, after=0, upto=history.head().position):
        found += stretch.events
        if len(found) > limit:
            break
    kept = found[:limit]
    known = {each.envelope.id for each in kept}
    wanted = [each.causation_id for each in runs] + [e.envelope.causation_id for e in kept]
    for _ in range(CAUSES_MAX):
        missing = next((each for each in wanted if each is not None and each not in known), None)
        if missing is None:
            break
        known.add(missing)
        cause = house_of(request).reader.by_id(caller.tenant_id, missing)
        if cause is not None:
            kept.append(cause)
            wanted.append(cause.envelope.causation_id)
    return kept, len(found) > limit


def _deliveries(request: Request, caller: Caller, events: list[Stored]) -> list[Delivery]:
    desk = house_of(request).trigger_desk
    return [
        delivery
        for each in events
        for delivery in desk.of_event(caller.tenant_id, each.envelope.id)
    ]


def _steps(request: Request, caller: Caller, runs: list[RunView]) -> list[StepView]:
    reader = house_of(request).workflow_book.runs
    return [step for run in runs for step in reader.steps(caller.tenant_id, run.id)]
