"""Sum up the runs of one workflow: how they went, when, and what happened around them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.asking import Asked, named
from penstock.api.context import house_of
from penstock.api.reply import reply
from penstock.base.clock import format_instant
from penstock.envelope.envelope import JsonObject
from penstock.triggers.delivery import Status
from penstock.workflows.book.figures import Bucket
from penstock.workflows.book.runs.on_postgres import LIMIT_MAX
from penstock.workflows.definition import Workflow
from penstock.workflows.run import RunStatus

SPAN = ("range", "from", "to")
KINDS = ("run", "trigger", "scheduler")
BUCKETS_DEFAULT, BUCKETS_MAX = 24, 200
_CATEGORIES = ("trigger_failure", "trigger_paused", "source_paused")
_INSTANT = timedelta(microseconds=1)
STATUSES = tuple(dict.fromkeys([*map(str, RunStatus), *map(str, Status), *_CATEGORIES]))


async def show_stats(request: Request, caller: Caller) -> Response:
    """How the runs of a workflow went: counts, rates, durations, reasons of failure."""
    since, until = Asked(request, *SPAN).span(house_of(request).clock.now())
    workflow = await _workflow(request, caller)
    runs = house_of(request).workflow_book.runs
    slug = workflow.definition.slug
    stats = await run_in_threadpool(runs.stats, caller.tenant_id, slug, since, until)
    return reply({"data": {"workflow": _named(workflow), **stats.wire()}})


async def show_run_metrics(request: Request, caller: Caller) -> Response:
    """The same per stretch of equal length, silent ones included."""
    asked = Asked(request, *SPAN, "buckets")
    since, until = asked.span(house_of(request).clock.now())
    most = asked.number("buckets", BUCKETS_DEFAULT, most=BUCKETS_MAX)
    workflow = await _workflow(request, caller)
    # Whole seconds, so that PostgreSQL and we cut at the same instants.
    bucket_s = max(1, math.ceil((until - since).total_seconds() / most))
    found = await run_in_threadpool(
        house_of(request).workflow_book.runs.run_metrics,
        caller.tenant_id, workflow.definition.slug, since, until - _INSTANT, bucket_s,
    )  # fmt: skip
    buckets = with_silent(found, since, until, bucket_s)
    data: JsonObject = {
        "workflow": _named(workflow),
        "range": _range(since, until),
        "bucketSeconds": bucket_s,
        "buckets": [each.wire() for each in buckets],
    }
    return reply({"data": data})


async def show_timeline(request: Request, caller: Caller) -> Response:
    """Runs, deliveries, and pauses and failures of triggers in one line, newest first."""
    asked = Asked(request, *SPAN, "status", "limit")
    since, until = asked.span(house_of(request).clock.now())
    statuses, limit = asked.among("status", *STATUSES), asked.number("limit", LIMIT_MAX)
    workflow = await _workflow(request, caller)
    entries = await run_in_threadpool(
        house_of(request).workflow_book.runs.timeline,
        caller.tenant_id, workflow.definition.slug, since, until, statuses=statuses, limit=limit,
    )  # fmt: skip
    counts = Counter[str](each.kind for each in entries)
    data: JsonObject = {
        "workflow": _named(workflow),
        "entries": [each.wire() for each in entries],
    }
    meta: JsonObject = {
        "counts": {kind: counts[kind] for kind in KINDS},
        "range": _range(since, until),
        "limit": limit,
        "hasMore": len(entries) == limit,
    }
    return reply({"data": data, "meta": meta})


def with_silent(
    found: Sequence[Bucket], since: datetime, until: datetime, bucket_s: int
) -> list[Bucket]:
    """Every bucket of a chart in order; those in which nothing began have zeros."""
    known = {each.at: each for each in found}
    count = math.ceil((until - since).total_seconds() / bucket_s)
    starts = [since + timedelta(seconds=bucket_s * place) for place in range(count)]
    return [known.get(at, Bucket(at, 0, 0, 0, 0, None)) for at in starts]


async def _workflow(request: Request, caller: Caller) -> Workflow:
    slug = named(request, "slug", "workflow")
    book = house_of(request).workflow_book.definitions
    return await run_in_threadpool(book.get, caller.tenant_id, slug)


def _named(workflow: Workflow) -> JsonObject:
    return {
        "id": workflow.id,
        "slug": workflow.definition.slug,
        "name": workflow.definition.name,
    }


def _range(since: datetime, until: datetime) -> JsonObject:
    return {"from": format_instant(since), "to": format_instant(until)}
