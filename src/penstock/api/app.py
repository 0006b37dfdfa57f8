"""Build the HTTP application of one house.

    Edge (Host, Origin, size, headers) ──▶ routes ──▶ Needs (token, scope) ──▶ handler ──▶ response
                                              └ problems: every failure is problem+json

The live stream starts and ends with the application; the house belongs to whoever opened it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import ANYONE
from penstock.api import reference
from penstock.api.edge import Edge
from penstock.api.origin import listed
from penstock.api.problems import INTERNAL, Problem, RequestRefused, answer, problem_of
from penstock.api.routes import mount
from penstock.base.errors import PenstockError
from penstock.health.prometheus import Metrics
from penstock.stream.hub import Hub
from penstock.stream.opening import OpenableLog

if TYPE_CHECKING:
    from penstock.house import House

_NO_ROUTE = Problem(
    404, "not_found", "expected a path of this API, found another one",
    "GET /openapi.json lists every path.",
)  # fmt: skip


def build_app(house: House) -> FastAPI:
    """The application that answers for this house."""
    registry = house.book.current
    hub = Hub(
        OpenableLog(house.reader, registry=registry, vault=house.vault),
        registry=registry,
        still_valid=lambda token_id: token_id == ANYONE.token_id or house.tokens.is_alive(token_id),
        wake=house.wake,
        notices=house.notices,
        clock=house.clock,
        events_max=house.settings.stream_buffer_events,
    )
    metrics = Metrics()
    metrics.watch_clients(lambda: hub.stats().clients)
    app = FastAPI(
        title="Penstock", version=version("penstock"), description=reference.ABOUT,
        openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False,
        lifespan=_lifespan,
        # What happened is told by our own metrics and logs, which never quote a request.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )  # fmt: skip
    app.state.house, app.state.hub, app.state.metrics = house, hub, metrics
    mount(app)
    reference.complete(app)
    _answer_with_problems(app)
    app.add_middleware(
        Edge,
        metrics=metrics,
        body_bytes_max=house.settings.body_bytes_max,
        hosts=listed(house.settings.hosts_answered),
        origins=listed(house.settings.allowed_origins),
    )
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    await app.state.hub.start()
    try:
        yield
    finally:
        await app.state.hub.stop()


def _answer_with_problems(app: FastAPI) -> None:
    app.add_exception_handler(PenstockError, _ours)
    app.add_exception_handler(RequestRefused, _refused)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _unforeseen)


async def _ours(request: Request, error: Exception) -> Response:
    problem = problem_of(error) if isinstance(error, PenstockError) else INTERNAL
    return answer(problem, request.state.instance)


async def _refused(request: Request, error: Exception) -> Response:
    problem = error.problem if isinstance(error, RequestRefused) else INTERNAL
    return answer(problem, request.state.instance)


async def _http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    problem = _NO_ROUTE
    if status == 405:
        headers = dict(getattr(error, "headers", None) or {})
        detail = f"expected {headers.get('Allow', 'another method')}, found {request.method[:20]}"
        problem = Problem(
            405, "method_not_allowed", detail, "GET /openapi.json lists every path and method.",
            headers=headers,
        )  # fmt: skip
    elif status != 404:
        problem = Problem(status, "request_refused", "the request was refused", _NO_ROUTE.remedy)
    return answer(problem, request.state.instance)


async def _unforeseen(request: Request, _error: Exception) -> Response:
    """Handlers read and check their own parameters, so this is a fault of ours."""
    return answer(INTERNAL, request.state.instance)
