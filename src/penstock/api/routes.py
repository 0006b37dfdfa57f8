"""Map every URL: what it does, and who may.

`mount` puts each handler behind its guard, which hands it the caller; a handler that wants one
cannot be reached without a token. OPEN handlers take none; there are three, and a test counts them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import WebSocketRoute
from starlette.types import Receive, Send
from starlette.types import Scope as ASGIScope

from penstock.access.token import Caller, Scope
from penstock.api.auth import Needs
from penstock.api.handlers import (
    append,
    audit,
    backtest,
    callbacks,
    dead_letters,
    deliveries,
    erasures,
    events,
    health,
    pages,
    pauses,
    publish,
    registry,
    run_figures,
    runs,
    schedules,
    schemas,
    services,
    state,
    stream,
    tokens,
    traces,
    triggers,
    workflows,
)
from penstock.api.reference import operation

Open: TypeAlias = Callable[[Request], Awaitable[Response]]
Guarded: TypeAlias = Callable[[Request, Caller], Awaitable[Response]]

READ, PUBLISH, REDRIVE = Scope.EVENTS_READ, Scope.EVENTS_PUBLISH, Scope.DEAD_LETTERS_REDRIVE
SCHEMAS, TOKENS, ADMIN = Scope.SCHEMAS_WRITE, Scope.TOKENS_MANAGE, Scope.ADMIN
LOOK, WRITE, RUN = Scope.WORKFLOWS_READ, Scope.WORKFLOWS_WRITE, Scope.WORKFLOWS_RUN
ANY_TOKEN = None
THEIRS = registry.spoken


@dataclass(frozen=True, slots=True)
class Row:
    """One method of one path, for callers with one scope."""

    method: str
    path: str
    handler: Guarded
    needs: Scope | None
    speaks: Callable[[Open], Open] | None = None  # how failures are said; None: problem+json


OPEN: tuple[tuple[str, Open], ...] = (
    ("/",        pages.home),
    ("/healthz", health.alive),
    ("/readyz",  health.ready),
)  # fmt: skip

ROWS = (
    Row("POST",   "/v1/events",                               publish.publish,           PUBLISH),
    Row("GET",    "/v1/events/stream",                        stream.server_sent,        READ),
    Row("POST",   "/v1/append",                               append.append,             PUBLISH),
    Row("POST",   "/v1/decide/read",                          append.read,               READ),
    Row("GET",    "/v1/state",                                state.show_state,          READ),
    Row("GET",    "/v1/state/diff",                           state.show_diff,           READ),
    Row("GET",    "/v1/replay",                               state.show_replay,         READ),
    Row("GET",    "/v1/audit/checkpoint",                     audit.show_checkpoint,     READ),
    Row("GET",    "/v1/audit/proof/{event_id}",               audit.show_proof,          READ),
    Row("POST",   "/v1/ws-tickets",                           tokens.create_ticket,      READ),
    Row("GET",    "/admin/events",                            events.list_events,        READ),
    Row("GET",    "/admin/events/facets",                     events.facets,             READ),
    Row("GET",    "/admin/events/histogram",                  events.histogram,          READ),
    Row("GET",    "/admin/events/{event_id}",                 events.show_event,         READ),
    Row("GET",    "/admin/event-schemas",                     schemas.list_schemas,      READ),
    Row("POST",   "/admin/event-schemas",                     schemas.register,          SCHEMAS),
    Row("POST",   "/admin/event-schemas/check",               schemas.check,             READ),
    Row("GET",    "/admin/event-schemas/{event_type}",        schemas.show_type,         READ),
    Row("GET",    "/admin/event-schemas/{event_type}/latest", schemas.show_latest,       READ),
    Row("GET",    "/admin/event-schemas/{event_type}/{version}", schemas.show_version,   READ),
    Row("GET",    "/admin/dead-letters",                      dead_letters.list_letters, READ),
    Row("GET",    "/admin/dead-letters/groups",               dead_letters.list_groups,  READ),
    Row("POST",   "/admin/dead-letters/redrive",              dead_letters.redrive,      REDRIVE),
    Row("GET",    "/admin/dead-letters/{letter_id}",          dead_letters.show_letter,  READ),
    Row("GET",    "/admin/ledger",                            health.ledger,             READ),
    Row("GET",    "/admin/event-health",                      health.events,             READ),
    Row("GET",    "/admin/queue-health",                      health.queues,             READ),
    Row("GET",    "/admin/tokens",                            tokens.list_tokens,        TOKENS),
    Row("POST",   "/admin/tokens",                            tokens.create_token,       TOKENS),
    Row("DELETE", "/admin/tokens/{token_id}",                 tokens.revoke_token,       TOKENS),
    Row("POST",   "/admin/erasures",                          erasures.create,           ADMIN),
    Row("GET",    "/metrics",                                 health.metrics,            READ),
    Row("GET",    "/metrics/prometheus",                      health.metrics,            READ),
    Row("GET",    "/openapi.json",                            pages.openapi,             ANY_TOKEN),
    # Workflows, their runs, schedules and services; the trace that joins them with events.
    Row("GET",    "/v1/traces",                               traces.find_trace,         READ),
    Row("GET",    "/v1/traces/{correlation_id}",              traces.show_trace,         READ),
    Row("POST",   "/v1/workflow-callbacks/{message_id}",      callbacks.call_back,       RUN),
    Row("GET",    "/workflows",                               workflows.list_workflows,  LOOK),
    Row("POST",   "/workflows",                               workflows.create_workflow, WRITE),
    Row("GET",    "/workflows/{slug}",                        workflows.show_workflow,   LOOK),
    Row("PATCH",  "/workflows/{slug}",                        workflows.change_workflow, WRITE),
    Row("DELETE", "/workflows/{slug}",                        workflows.delete_workflow, WRITE),
    Row("POST",   "/workflows/{slug}/run",                    workflows.run_workflow,    RUN),
    Row("GET",    "/workflows/{slug}/stats",                  run_figures.show_stats,    LOOK),
    Row("GET",    "/workflows/{slug}/run-metrics",         run_figures.show_run_metrics, LOOK),
    Row("GET",    "/workflows/{slug}/timeline",               run_figures.show_timeline, LOOK),
    Row("GET",    "/workflows/{slug}/schedules",              schedules.list_of_workflow, LOOK),
    Row("POST",   "/workflows/{slug}/schedules",              schedules.create_schedule, WRITE),
    Row("GET",    "/workflow-schedules",                      schedules.list_schedules,  LOOK),
    Row("GET",    "/workflow-schedules/{schedule_id}",        schedules.show_schedule,   LOOK),
    Row("PATCH",  "/workflow-schedules/{schedule_id}",        schedules.change_schedule, WRITE),
    Row("DELETE", "/workflow-schedules/{schedule_id}",        schedules.delete_schedule, WRITE),
    Row("GET",    "/workflow-services",                       services.list_services,    LOOK),
    Row("GET",    "/workflow-services/{slug}",                services.show_service,     LOOK),
    Row("PUT",    "/workflow-services/{slug}",                services.put_service,      WRITE),
    Row("DELETE", "/workflow-services/{slug}",                services.delete_service,   WRITE),
    Row("GET",    "/workflow-runs",                           runs.list_runs,            LOOK),
    Row("GET",    "/workflow-runs/{run_id}",                  runs.show_run,             LOOK),
    Row("GET",    "/workflow-runs/{run_id}/steps",            runs.list_steps,           LOOK),
    Row("GET",    "/workflow-runs/{run_id}/history",          runs.show_history,         LOOK),
    Row("GET",    "/workflow-runs/{run_id}/diff",             runs.show_diff,            LOOK),
    Row("POST",   "/workflow-runs/{run_id}/cancel",           runs.cancel_run,           RUN),
    Row("POST",   "/workflow-runs/{run_id}/replay",           runs.replay_run,           RUN),
    Row("POST",   "/admin/retries/workflow-steps/{step_id}/cancel", runs.cancel_retry,   RUN),
    Row("POST",   "/admin/retries/workflow-steps/{step_id}/force",  runs.force_retry,    RUN),
    # Triggers: definitions, what became of events, back-tests, and what operators hold back.
    Row("GET",    "/workflows/{slug}/triggers",               triggers.list_of_workflow, LOOK),
    Row("POST",   "/workflows/{slug}/triggers",               triggers.create,           WRITE),
    Row("GET",    "/workflows/{slug}/triggers/{trigger_id}",  triggers.show,             LOOK),
    Row("PATCH",  "/workflows/{slug}/triggers/{trigger_id}",  triggers.change,           WRITE),
    Row("DELETE", "/workflows/{slug}/triggers/{trigger_id}",  triggers.remove,           WRITE),
    Row("GET",    "/workflows/{slug}/triggers/{trigger_id}/versions",
        triggers.list_versions, LOOK),
    Row("GET",    "/workflows/{slug}/triggers/{trigger_id}/deliveries",
        deliveries.list_deliveries, LOOK),
    Row("GET",    "/v1/triggers",                             triggers.list_all,         LOOK),
    Row("GET",    "/v1/triggers/{trigger_id}/explain",        deliveries.explain,        LOOK),
    Row("POST",   "/v1/triggers/backtest",                    backtest.run,              LOOK),
    Row("POST",   "/v1/triggers/preview",                     backtest.preview,          LOOK),
    Row("POST",   "/admin/triggers/{trigger_id}/pause",       pauses.pause_trigger,      RUN),
    Row("POST",   "/admin/triggers/{trigger_id}/resume",      pauses.resume_trigger,     RUN),
    Row("POST",   "/admin/sources/{source}/pause",            pauses.pause_source,       RUN),
    Row("POST",   "/admin/sources/{source}/resume",           pauses.resume_source,      RUN),
    Row("POST",   "/admin/retries/events/{event_id}/cancel",  pauses.cancel_event,       RUN),
    Row("POST",   "/admin/retries/events/{event_id}/force",   pauses.force_event,        RUN),
    Row("POST",   "/admin/retries/deliveries/{delivery_id}/cancel",
        pauses.cancel_delivery, RUN),
    Row("POST",   "/admin/retries/deliveries/{delivery_id}/force", pauses.force_delivery, RUN),
    # The subset of a Confluent schema registry.
    Row("GET",    "/subjects",                             registry.list_subjects,    READ, THEIRS),
    Row("POST",   "/subjects/{subject}",                   registry.look_up,          READ, THEIRS),
    Row("GET",    "/subjects/{subject}/versions",          registry.list_versions,    READ, THEIRS),
    Row("GET",    "/subjects/{subject}/versions/{version}",
        registry.show_version, READ, THEIRS),
    Row("GET",    "/subjects/{subject}/versions/{version}/schema",
        registry.show_schema, READ, THEIRS),
    Row("GET",    "/schemas/types",                        registry.list_kinds,       READ, THEIRS),
    Row("GET",    "/schemas/ids/{id}",                     registry.show_id,          READ, THEIRS),
    Row("GET",    "/schemas/ids/{id}/versions",            registry.show_id_versions, READ, THEIRS),
    Row("GET",    "/config",                               registry.show_level,       READ, THEIRS),
    Row("GET",    "/config/{subject}",                     registry.show_config,      READ, THEIRS),
    Row("POST",   "/compatibility/subjects/{subject}/versions/{version}",
        registry.check, READ, THEIRS),
)  # fmt: skip

WEBSOCKET = ("/ws", stream.websocket)


class Lean(APIRoute):
    """A route whose handler reads the request itself: nothing is parsed or solved before it."""

    def __init__(self, path: str, endpoint: Open, **options: Any) -> None:
        super().__init__(path, endpoint, **options)

        async def app(scope: ASGIScope, receive: Receive, send: Send) -> None:
            response = await endpoint(Request(scope, receive, send))
            await response(scope, receive, send)

        self.app = app


def mount(app: FastAPI) -> None:
    """Put every route into the application."""
    app.router.route_class = Lean
    for row in ROWS:
        endpoint = guarded(row.handler, Needs(row.needs))
        app.add_api_route(
            row.path,
            endpoint if row.speaks is None else row.speaks(endpoint),
            methods=[row.method],
            response_model=None,
            **operation(row.method, row.path, row.handler.__doc__, row.needs),
        )
    for path, handler in OPEN:
        app.add_api_route(path, handler, methods=["GET", "HEAD"], include_in_schema=False)
    app.router.routes.append(WebSocketRoute(*WEBSOCKET))


def guarded(handler: Guarded, guard: Needs) -> Open:
    """The handler behind its guard."""

    async def endpoint(request: Request) -> Response:
        return await handler(request, await guard(request))

    return endpoint
