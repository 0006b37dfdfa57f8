"""Show what was stored: pages of events, one event, and how a selection is made up."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.asking import Asked
from penstock.api.context import house_of
from penstock.api.reply import next_link, page_of, reply
from penstock.api.sight import seen_by
from penstock.base.errors import NotFound
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.explorer.facets import facets_wire, read_facets
from penstock.explorer.histogram import histogram_wire, read_histogram
from penstock.store.query import EventQuery, matches, read_query
from penstock.store.view import page_schema, read_upcast, view


async def list_events(request: Request, caller: Caller) -> Response:
    """Events that match every filter, newest first."""
    query, limit, cursor = read_query(
        request.query_params.multi_items(), tenant_id=caller.tenant_id, also=("upcast",)
    )
    upcast = read_upcast(request.query_params.get("upcast"))
    body, following = await run_in_threadpool(_page, request, caller, query, limit, cursor, upcast)
    return reply(body, headers=next_link(request, following))


async def show_event(request: Request, caller: Caller) -> Response:
    """One event."""
    event_id = request.path_params["event_id"]
    house, asked = house_of(request), Asked(request, "upcast", "asOf")
    upcast, as_of = read_upcast(asked.one("upcast")), asked.one("asOf")
    then, _, _ = read_query([] if as_of is None else [("asOf", as_of)], tenant_id=caller.tenant_id)
    stored = await run_in_threadpool(house.reader.by_id, caller.tenant_id, event_id)
    if stored is None or not matches(then, stored):
        when = "" if as_of is None else f" as of {as_of[:40]}"
        raise NotFound(f"expected an event, found none with id {event_id[:128]!r}{when}")
    (stored,) = await run_in_threadpool(seen_by, caller, house, [stored])
    shown = view(stored, house.book.current(), now=house.clock.now(), upcast=upcast)
    return reply({"data": {"event": shown}})


async def facets(request: Request, caller: Caller) -> Response:
    """How often each value occurs among the newest matching events."""
    query, keys, limit = read_facets(request.query_params.multi_items(), tenant_id=caller.tenant_id)
    explorer = house_of(request).explorer
    found = await run_in_threadpool(explorer.facets, query, keys=keys, limit=limit)
    return reply({"data": facets_wire(found)})


async def histogram(request: Request, caller: Caller) -> Response:
    """How many matching events occurred when, by severity; by default in the last hour."""
    query, buckets = read_histogram(request.query_params.multi_items(), tenant_id=caller.tenant_id)
    explorer = house_of(request).explorer
    found = await run_in_threadpool(explorer.histogram, query, buckets=buckets)
    return reply({"data": histogram_wire(found)})


def _page(
    request: Request,
    caller: Caller,
    query: EventQuery,
    limit: int,
    cursor: str | None,
    upcast: bool,
) -> tuple[JsonObject, str | None]:
    house = house_of(request)
    page = house.reader.page(query, limit=limit, cursor=cursor)
    registry, now = house.book.current(), house.clock.now()
    events = seen_by(caller, house, page.events)
    shown: list[JsonValue] = [view(stored, registry, now=now, upcast=upcast) for stored in events]
    data: JsonObject = {
        "events": shown,
        "page": page_of(page.next_cursor, page.has_more, page.limit),
    }
    return {"data": data, "schema": page_schema(events)}, page.next_cursor
