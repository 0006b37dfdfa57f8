"""Every route, method and scope answers exactly as the map says, without exception.

The routes are taken from the application itself: one that is added and forgotten here fails.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, WebSocketRoute
from tests.api.support import Server, database_of, opened, running, settings_for, status_line

from penstock.access.token import GRANTED_BY, Scope
from penstock.api.routes import OPEN, ROWS
from penstock.base.on_postgres import EmbeddedPostgres

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
CANARY = "canary-7f3a9c1e-never-shown"
# What each route needs, written out once more by hand: the map must not drift by accident.
EXPECTED: dict[tuple[str, str], str | None] = {
    ("POST", "/v1/events"): "events:publish",
    ("GET", "/v1/events/stream"): "events:read",
    ("POST", "/v1/append"): "events:publish",
    ("POST", "/v1/decide/read"): "events:read",
    ("GET", "/v1/state"): "events:read",
    ("GET", "/v1/state/diff"): "events:read",
    ("GET", "/v1/replay"): "events:read",
    ("POST", "/v1/ws-tickets"): "events:read",
    ("GET", "/admin/events"): "events:read",
    ("GET", "/admin/events/facets"): "events:read",
    ("GET", "/admin/events/histogram"): "events:read",
    ("GET", "/admin/events/{event_id}"): "events:read",
    ("GET", "/admin/event-schemas"): "events:read",
    ("POST", "/admin/event-schemas"): "schemas:write",
    ("POST", "/admin/event-schemas/check"): "events:read",
    ("GET", "/admin/event-schemas/{event_type}"): "events:read",
    ("GET", "/admin/event-schemas/{event_type}/latest"): "events:read",
    ("GET", "/admin/event-schemas/{event_type}/{version}"): "events:read",
    ("GET", "/admin/dead-letters"): "events:read",
    ("GET", "/admin/dead-letters/groups"): "events:read",
    ("POST", "/admin/dead-letters/redrive"): "dead-letters:redrive",
    ("GET", "/admin/dead-letters/{letter_id}"): "events:read",
    ("GET", "/admin/ledger"): "events:read",
    ("GET", "/admin/event-health"): "events:read",
    ("GET", "/admin/queue-health"): "events:read",
    ("GET", "/admin/tokens"): "tokens:manage",
    ("POST", "/admin/tokens"): "tokens:manage",
    ("DELETE", "/admin/tokens/{token_id}"): "tokens:manage",
    ("POST", "/admin/erasures"): "admin",
    ("GET", "/v1/audit/checkpoint"): "events:read",
    ("GET", "/v1/audit/proof/{event_id}"): "events:read",
    ("GET", "/v1/traces"): "events:read",
    ("GET", "/v1/traces/{correlation_id}"): "events:read",
    ("POST", "/v1/workflow-callbacks/{message_id}"): "workflows:run",
    ("GET", "/workflows"): "workflows:read",
    ("POST", "/workflows"): "workflows:write",
    ("GET", "/workflows/{slug}"): "workflows:read",
    ("PATCH", "/workflows/{slug}"): "workflows:write",
    ("DELETE", "/workflows/{slug}"): "workflows:write",
    ("POST", "/workflows/{slug}/run"): "workflows:run",
    ("GET", "/workflows/{slug}/stats"): "workflows:read",
    ("GET", "/workflows/{slug}/run-metrics"): "workflows:read",
    ("GET", "/workflows/{slug}/timeline"): "workflows:read",
    ("GET", "/workflows/{slug}/schedules"): "workflows:read",
    ("POST", "/workflows/{slug}/schedules"): "workflows:write",
    ("GET", "/workflow-schedules"): "workflows:read",
    ("GET", "/workflow-schedules/{schedule_id}"): "workflows:read",
    ("PATCH", "/workflow-schedules/{schedule_id}"): "workflows:write",
    ("DELETE", "/workflow-schedules/{schedule_id}"): "workflows:write",
    ("GET", "/workflow-services"): "workflows:read",
    ("GET", "/workflow-services/{slug}"): "workflows:read",
    ("PUT", "/workflow-services/{slug}"): "workflows:write",
    ("DELETE", "/workflow-services/{slug}"): "workflows:write",
    ("GET", "/workflow-runs"): "workflows:read",
    ("GET", "/workflow-runs/{run_id}"): "workflows:read",
    ("GET", "/workflow-runs/{run_id}/steps"): "workflows:read",
    ("GET", "/workflow-runs/{run_id}/history"): "workflows:read",
    ("GET", "/workflow-runs/{run_id}/diff"): "workflows:read",
    ("POST", "/workflow-runs/{run_id}/cancel"): "workflows:run",
    ("POST", "/workflow-runs/{run_id}/replay"): "workflows:run",
    ("POST", "/admin/retries/workflow-steps/{step_id}/cancel"): "workflows:run",
    ("POST", "/admin/retries/workflow-steps/{step_id}/force"): "workflows:run",
    ("GET", "/workflows/{slug}/triggers"): "workflows:read",
    ("POST", "/workflows/{slug}/triggers"): "workflows:write",
    ("GET", "/workflows/{slug}/triggers/{trigger_id}"): "workflows:read",
    ("PATCH", "/workflows/{slug}/triggers/{trigger_id}"): "workflows:write",
    ("DELETE", "/workflows/{slug}/triggers/{trigger_id}"): "workflows:write",
    ("GET", "/workflows/{slug}/triggers/{trigger_id}/versions"): "workflows:read",
    ("GET", "/workflows/{slug}/triggers/{trigger_id}/deliveries"): "workflows:read",
    ("GET", "/v1/triggers"): "workflows:read",
    ("GET", "/v1/triggers/{trigger_id}/explain"): "workflows:read",
    ("POST", "/v1/triggers/backtest"): "workflows:read",
    ("POST", "/v1/triggers/preview"): "workflows:read",
    ("POST", "/admin/triggers/{trigger_id}/pause"): "workflows:run",
    ("POST", "/admin/triggers/{trigger_id}/resume"): "workflows:run",
    ("POST", "/admin/sources/{source}/pause"): "workflows:run",
    ("POST", "/admin/sources/{source}/resume"): "workflows:run",
    ("POST", "/admin/retries/events/{event_id}/cancel"): "workflows:run",
    ("POST", "/admin/retries/events/{event_id}/force"): "workflows:run",
    ("POST", "/admin/retries/deliveries/{delivery_id}/cancel"): "workflows:run",
    ("POST", "/admin/retries/deliveries/{delivery_id}/force"): "workflows:run",
    ("GET", "/metrics"): "events:read",
    ("GET", "/metrics/prometheus"): "events:read",
    ("GET", "/openapi.json"): None,
    ("GET", "/subjects"): "events:read",
    ("POST", "/subjects/{subject}"): "events:read",
    ("GET", "/subjects/{subject}/versions"): "events:read",
    ("GET", "/subjects/{subject}/versions/{version}"): "events:read",
    ("GET", "/subjects/{subject}/versions/{version}/schema"): "events:read",
    ("GET", "/schemas/types"): "events:read",
    ("GET", "/schemas/ids/{id}"): "events:read",
    ("GET", "/schemas/ids/{id}/versions"): "events:read",
    ("GET", "/config"): "events:read",
    ("GET", "/config/{subject}"): "events:read",
    ("POST", "/compatibility/subjects/{subject}/versions/{version}"): "events:read",
}
GUARDED = sorted(EXPECTED, key=str)
# Read as a letter or a type by that name, which needs the same token as any other.
ALSO = {("GET", "/admin/dead-letters/redrive"), ("GET", "/admin/event-schemas/check")}
# These speak like a Confluent schema registry, failures included.
THEIRS = ("/subjects", "/schemas/", "/config", "/compatibility/")
PATHS = sorted({path for _, path in EXPECTED})


@pytest.fixture(scope="module")
def api(
    server: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server with a secret in its environment that nobody may ever see."""
    with pytest.MonkeyPatch.context() as patch, database_of(server, template) as database:
        patch.setenv("CANARY_SECRET", CANARY)
        folder = tmp_path_factory.mktemp("matrix")
        with opened(settings_for(database, folder)) as house, running(house, database) as found:
            yield found


@pytest.fixture(scope="module")
def powerless(api: Server) -> dict[str, httpx.Client]:
    """For each scope, a client that has every other one but those that imply it."""
    others = {scope: [s for s in Scope if s not in GRANTED_BY[scope]] for scope in Scope}
    return {scope: api.as_scopes(*held) for scope, held in others.items()}


def routes(api: Server) -> Iterator[BaseRoute]:
    from penstock.api.app import build_app

    yield from build_app(api.house).routes


def concrete(path: str) -> str:
    return re.sub(r"{\w+}", "x", path)


def ask(client: httpx.Client, method: str, path: str) -> httpx.Response:
    """The response's head and up to a little of its body; a stream has no end to wait for."""
    body: dict[str, Any] = {}
    if method in ("POST", "PUT", "PATCH"):
        body = {"content": b"{}", "headers": {"Content-Type": "application/json"}}
    with client.stream(method, concrete(path), **body) as response:
        if "event-stream" not in response.headers.get("content-type", ""):
            response.read()
        assert CANARY not in str(response.headers)
        return response


def test_the_map_holds_exactly_these_routes_with_exactly_these_scopes() -> None:
    assert {(row.method, row.path): row.needs for row in ROWS} == EXPECTED


def test_only_three_paths_answer_without_a_token() -> None:
    assert [path for path, _ in OPEN] == ["/", "/healthz", "/readyz"]


def test_the_application_has_no_route_beside_the_map(api: Server) -> None:
    found: set[tuple[str, str]] = set()
    sockets: set[str] = set()
    for route in routes(api):
        if isinstance(route, APIRoute):
            found |= {(method, route.path) for method in route.methods}
        else:
            assert isinstance(route, WebSocketRoute), f"unexpected kind of route: {route}"
            sockets.add(route.path)

    opened_paths = {(method, path) for path, _ in OPEN for method in ("GET", "HEAD")}
    assert found == set(EXPECTED) | opened_paths
    assert sockets == {"/ws"}


@pytest.mark.parametrize(("method", "path"), GUARDED)
def test_without_a_token_every_guarded_route_is_401(api: Server, method: str, path: str) -> None:
    answered = ask(api.stranger, method, path)

    assert answered.status_code == 401
    assert answered.headers["www-authenticate"].startswith("Bearer")
    if path.startswith(THEIRS):
        assert answered.json()["error_code"] == 401
    else:
        assert answered.json()["code"] == "access_denied"


@pytest.mark.parametrize(
    "credential",
    [
        "Bearer pst_" + "A" * 43,
        "Bearer",
        "Basic YWRtaW46YWRtaW4=",
        "bearer null",
        "Bearer an-admin-token-for-tests-onl",
        "Bearer an-admin-token-for-tests-only2",
        "an-admin-token-for-tests-only",
        "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiIsInNjb3BlcyI6WyJhZG1pbiJdfQ.",
        "Bearer " + "x" * 5_000,
        "Bearer ' OR '1'='1' -- aaaaaaaaaaaaaaaa",
    ],
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/admin/events"), ("POST", "/v1/events")])
def test_a_credential_that_is_none_is_401(
    api: Server, method: str, path: str, credential: str
) -> None:
    with httpx.Client(base_url=api.url, headers={"Authorization": credential}) as client:
        assert ask(client, method, path).status_code == 401


@pytest.mark.parametrize(("method", "path"), [key for key in GUARDED if EXPECTED[key]])
def test_a_token_with_every_scope_but_the_one_needed_is_403(
    api: Server, powerless: dict[str, httpx.Client], method: str, path: str
) -> None:
    needed = EXPECTED[method, path]
    assert needed is not None

    answered = ask(powerless[needed], method, path)

    assert answered.status_code == 403
    assert needed in answered.json()["message" if path.startswith(THEIRS) else "detail"]
    assert "insufficient_scope" in answered.headers["www-authenticate"]


@pytest.mark.parametrize(("method", "path"), GUARDED)
def test_an_admin_is_let_into_every_route(api: Server, method: str, path: str) -> None:
    assert ask(api.admin, method, path).status_code not in (401, 403, 405, 500)


@pytest.mark.parametrize(("method", "path"), GUARDED)
def test_the_one_scope_needed_is_enough(api: Server, method: str, path: str) -> None:
    needed = EXPECTED[method, path]
    scopes = [Scope(needed)] if needed else [Scope.EVENTS_PUBLISH]
    with api.as_scopes(*scopes) as client:
        assert ask(client, method, path).status_code not in (401, 403, 500)


@pytest.mark.parametrize(
    ("path", "method"),
    [
        (path, method)
        for path, method in itertools.product([*PATHS, *(p for p, _ in OPEN)], METHODS)
        if (method, path) not in {*EXPECTED, *ALSO}
        and not (path in dict(OPEN) and method in ("GET", "HEAD"))
    ],
)
def test_any_other_method_is_405_for_everybody_and_tells_nothing(
    api: Server, path: str, method: str
) -> None:
    for client in (api.stranger, api.admin):
        answered = ask(client, method, path)

        assert answered.status_code == 405
        assert "allow" in answered.headers
        assert CANARY not in answered.text
        if method != "HEAD":
            assert answered.json()["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    "path",
    [
        "/docs", "/redoc", "/admin", "/admin/", "/admin/events/", "/v1", "/v1/events/", "/ws",
        "/static/index.html", "/index.html", "/.env", "/..%2f..%2fetc/passwd", "//admin/events",
        "/admin/../admin/events/..", "/metrics/", "/healthz/", "/%00",
    ],
)  # fmt: skip
def test_any_other_path_is_404_for_everybody(api: Server, path: str) -> None:
    for token in (b"", b"Authorization: Bearer an-admin-token-for-tests-only\r\n"):
        request = b"GET %b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%bConnection: close\r\n\r\n"
        heard = api.raw(request % (path.encode(), api.port, token))

        assert status_line(heard) == 404
        assert b'"code":"not_found"' in heard
        assert CANARY.encode() not in heard


@pytest.mark.parametrize(
    "path", ["/admin%2fevents", "/%61dmin/events", "/admin/dead-letters/redrive"]
)
def test_a_path_written_another_way_is_guarded_like_the_plain_one(api: Server, path: str) -> None:
    assert api.stranger.get(path).status_code == 401


@pytest.mark.parametrize("path", [path for path, _ in OPEN])
def test_an_open_path_answers_anybody(api: Server, path: str) -> None:
    for method in ("GET", "HEAD"):
        assert api.stranger.request(method, path).status_code == 200


def test_no_answer_to_anybody_holds_what_is_in_the_environment(api: Server) -> None:
    for client, (method, path) in itertools.product((api.stranger, api.admin), GUARDED):
        answered = ask(client, method, path)
        if answered.is_stream_consumed and not answered.is_error:
            assert CANARY not in answered.text


def test_a_revoked_token_is_refused_at_once_on_this_server(api: Server) -> None:
    info, secret = api.house.tokens.create("gone", "default", [Scope.ADMIN], by="test")
    with api.client(secret) as client:
        assert client.get("/admin/events").status_code == 200

        assert api.admin.delete(f"/admin/tokens/{info.id}").status_code == 200

        assert client.get("/admin/events").status_code == 401


def test_the_description_of_the_api_names_every_route(api: Server) -> None:
    described = api.admin.get("/openapi.json").json()

    assert described["openapi"].startswith("3.1")
    found = {(method.upper(), path) for path, item in described["paths"].items() for method in item}
    assert found == set(EXPECTED)
    assert json.dumps(described)
