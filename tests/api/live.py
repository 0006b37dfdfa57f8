"""Run the live stream for tests: a real server on a real port, over a real log in PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

import psycopg
import uvicorn
from psycopg import sql
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from penstock.access.on_postgres import TokenStore
from penstock.access.token import Scope
from penstock.api.problems import answer, problem_of
from penstock.api.sse import serve_events
from penstock.api.websocket import UVICORN_OPTIONS, serve_websocket
from penstock.base.errors import AccessDenied, PenstockError
from penstock.base.on_postgres import EmbeddedPostgres, Pool, open_pool
from penstock.registry.registry import Registry
from penstock.store.on_postgres import EventReader
from penstock.stream.hub import Hub
from penstock.stream.on_postgres import Wake

HEARTBEAT_S = 0.2
_COMMIT = """
WITH moved AS (UPDATE head SET position = position + %(count)s RETURNING position),
kept AS (
  INSERT INTO workflow_events (position, tenant_id, id, type, source, occurred_at, payload, tags,
                               correlation_id, severity, severity_rule, content_hash, hash)
  SELECT position - %(count)s + n, %(tenant)s, gen_random_uuid()::text, %(type)s, %(source)s, now(),
         %(payload)s::jsonb, %(tags)s::jsonb, %(correlation_id)s, %(severity)s, 'default',
         ''::bytea, ''::bytea
    FROM moved, generate_series(1, %(count)s) AS n
)
SELECT position, pg_notify('penstock_events', position::text) FROM moved
"""


@dataclass
class Live:
    """The running server, and hands to reach into its world."""

    port: int
    dsn: str
    pool: Pool
    tokens: TokenStore
    hub: Hub
    loop: asyncio.AbstractEventLoop

    def token(self, tenant: str, *scopes: Scope) -> str:
        """A token of a tenant that may read, unless told otherwise."""
        return self.tokens.create("t", tenant, scopes or (Scope.EVENTS_READ,), by="test")[1]

    def commit(
        self, tenant: str, count: int = 1, *, type: str = "order.placed",  # noqa: A002
        source: str = "shop.api", payload: str = "{}", tags: str = "{}",
        correlation_id: str | None = None, severity: str = "info",
    ) -> int:  # fmt: skip
        """Store events as the ingress does, in one transaction; the last position."""
        values = {
            "tenant": tenant, "count": count, "type": type, "source": source, "payload": payload,
            "tags": tags, "correlation_id": correlation_id, "severity": severity,
        }  # fmt: skip
        with self.pool.connection() as connection:
            row = connection.execute(_COMMIT, values).fetchone()
        assert row is not None
        return int(row[0])

    def positions(self, tenant: str) -> list[int]:
        """Where the events of a tenant are, as the table says."""
        with self.pool.connection() as connection:
            rows = connection.execute(
                "SELECT position FROM workflow_events WHERE tenant_id = %s ORDER BY position",
                (tenant,),
            ).fetchall()
        return [position for (position,) in rows]

    def wait(self, condition: Callable[[], bool], within_s: float = 10) -> None:
        """Wait until something holds."""
        until = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < until, "it never came to hold"
            time.sleep(0.005)


@contextlib.contextmanager
def open_live(server: EmbeddedPostgres, template: str) -> Iterator[Live]:
    """A server over a fresh database, until the block ends."""
    name = f"live_{os.getpid()}_{time.monotonic_ns()}"
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        try:
            with _serving(server.url(name)) as live:
                yield live
        finally:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


@contextlib.contextmanager
def _serving(dsn: str) -> Iterator[Live]:
    pools = [open_pool(dsn, role) for role in ("owner", "penstock_reader", "penstock_ingest")]
    owner, reader, ingest = pools
    tokens = TokenStore(owner)
    registry = Registry([], mode="open")
    started: list[tuple[Hub, asyncio.AbstractEventLoop]] = []
    port = 0

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        hub = Hub(
            EventReader(reader, ingest, cursor_key=b"k" * 32), registry=lambda: registry,
            still_valid=tokens.is_alive, wake=Wake(dsn), recheck_s=0.1,
        )  # fmt: skip
        await hub.start()
        started.append((hub, asyncio.get_running_loop()))
        yield
        await hub.stop()

    async def ws(websocket: WebSocket) -> None:
        await serve_websocket(
            websocket, hub=started[0][0], authenticate=tokens.find, redeem=tokens.redeem,
            port=port, hosts={"penstock.example"}, origins={"https://console.example"},
            heartbeat_s=HEARTBEAT_S,
        )  # fmt: skip

    async def sse(request: Request) -> Response:
        secret = request.headers.get("authorization", "").removeprefix("Bearer ")
        caller = await asyncio.to_thread(tokens.find, secret)
        if caller is None:
            raise AccessDenied("expected a token")
        return await serve_events(request, caller, hub=started[0][0], heartbeat_s=HEARTBEAT_S)

    async def refuse(_request: Request, error: Exception) -> Response:
        assert isinstance(error, PenstockError)
        return answer(problem_of(error))

    app = Starlette(
        routes=[WebSocketRoute("/ws", ws), Route("/v1/events/stream", sse)],
        lifespan=lifespan,
        exception_handlers={PenstockError: refuse},
    )
    listening = socket.create_server(("127.0.0.1", 0))
    # Little room in the kernel, so that a client that does not read is noticed soon.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * 1024)
    port = listening.getsockname()[1]
    config = uvicorn.Config(
        app, log_level="critical", timeout_graceful_shutdown=2, **UVICORN_OPTIONS
    )
    web = uvicorn.Server(config)
    thread = threading.Thread(target=web.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + 10
        while not web.started:
            assert time.monotonic() < until, "the server did not start"
            time.sleep(0.005)
        hub, loop = started[0]
        yield Live(port, dsn, owner, tokens, hub, loop)
    finally:
        if started and thread.is_alive():
            started[0][1].call_soon_threadsafe(started[0][0].end_all)
        web.should_exit = True
        thread.join(10)
        for pool in pools:
            pool.close()
    assert not thread.is_alive(), "the server did not stop"
