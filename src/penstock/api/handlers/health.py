"""Say how the house is: alive, ready, balanced, and in figures.

/healthz and /readyz answer anybody, in words that tell a stranger nothing. Figures about the whole
platform are for its own tenant; of sources, a caller sees those of their tenant, the operator all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.auth import require_platform
from penstock.api.context import house_of, metrics_of
from penstock.api.reply import reply
from penstock.base.clock import format_instant
from penstock.base.errors import StoreUnavailable
from penstock.envelope.envelope import DEFAULT_TENANT, JsonObject, JsonValue
from penstock.health import prometheus
from penstock.health.activity.on_postgres import ActivityReader
from penstock.health.pages import event_health, queue_health
from penstock.health.snapshot import Facts
from penstock.store.ledger.account import LedgerReport, SourceLine


async def alive(_request: Request) -> Response:
    """The process lives and its loop turns."""
    return reply({"status": "ok"})


async def ready(request: Request) -> Response:
    """Whether every part that requests need answers."""
    house = house_of(request)
    found = await run_in_threadpool(house.health.readiness, house.settings.events_mode)
    parts: JsonObject = dict(found.parts)
    return reply({"ready": found.ready, "parts": parts}, 200 if found.ready else 503)


async def ledger(request: Request, caller: Caller) -> Response:
    """The account: accepted = stored + duplicates + dead-lettered + in flight."""
    require_platform(caller)
    report = await run_in_threadpool(house_of(request).ledger.read)
    sources: list[JsonValue] = [_line(line) for line in _visible(report.sources, caller)]
    data: JsonObject = {
        "accepted": report.accepted,
        "stored": report.stored,
        "duplicates": report.duplicates,
        "deadLettered": report.dead_lettered,
        "inFlight": report.in_flight,
        "refused": report.refused,
        "unexplained": report.unexplained,
        "sources": sources,
    }
    return reply({"data": data})


async def events(request: Request, caller: Caller) -> Response:
    """Queue depth, lag per source, counters per trigger, what is paused and what is retried."""
    tenant_id = None if caller.is_operator else caller.tenant_id
    facts = await run_in_threadpool(_facts, request, tenant_id)
    sources = _visible(facts.ledger.sources, caller)
    whole = caller.tenant_id == DEFAULT_TENANT
    return reply({"data": event_health(facts, sources, whole=whole)})


async def queues(request: Request, caller: Caller) -> Response:
    """Every queue with its depth and latency."""
    require_platform(caller)
    facts = await run_in_threadpool(_facts, request)
    return reply({"data": queue_health(facts, house_of(request).settings.queue_name)})


async def metrics(request: Request, caller: Caller) -> Response:
    """Figures for Prometheus; while PostgreSQL is away, those of this process alone."""
    require_platform(caller)
    text = await run_in_threadpool(_text, request, caller)
    return Response(text, media_type=prometheus.CONTENT_TYPE)


def _text(request: Request, caller: Caller) -> bytes:
    counted = metrics_of(request)
    try:
        facts = replace(_facts(request), totals=_activity(request).totals())
    except StoreUnavailable:
        return prometheus.write(counted, None, ())
    return prometheus.write(counted, facts, _visible(facts.ledger.sources, caller))


def _facts(request: Request, tenant_id: str | None = None) -> Facts:
    """The facts, with what the triggers and workflows of a tenant do; of all when none is named."""
    house = house_of(request)
    account: LedgerReport = house.ledger.read()
    facts = house.health.facts(account, mode=house.settings.events_mode, at=house.clock.now())
    activity = _activity(request).read(tenant_id)
    return replace(facts, activity=activity, limits=house.limits.sources)


def _activity(request: Request) -> ActivityReader:
    return house_of(request).activity


def _visible(sources: Sequence[SourceLine], caller: Caller) -> list[SourceLine]:
    return [line for line in sources if caller.is_operator or line.tenant_id == caller.tenant_id]


def _line(line: SourceLine) -> JsonObject:
    last = None if line.last_event_at is None else format_instant(line.last_event_at)
    return {
        "tenantId": line.tenant_id,
        "source": line.source,
        "stored": line.stored,
        "duplicates": line.duplicates,
        "deadLettered": line.dead,
        "averageLagMs": line.lag_average_ms,
        "lastLagMs": line.lag_last_ms,
        "maxLagMs": line.lag_max_ms,
        "lastEventAt": last,
    }
