"""Build a real server for tests: a house on real PostgreSQL, behind uvicorn on a free port."""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import uvicorn
from psycopg import sql
from pydantic import SecretStr

from penstock.access.token import Scope
from penstock.api.app import build_app
from penstock.base.on_postgres import EmbeddedPostgres
from penstock.base.settings import Settings
from penstock.house import House, open_house

ADMIN = "an-admin-token-for-tests-only"
_counter = itertools.count()


class Server:
    """A running house and a client for each token."""

    def __init__(self, house: House, port: int, database: str) -> None:
        self.house = house
        self.port = port
        self.database = database
        self.url = f"http://127.0.0.1:{port}"
        self.admin = self.client(ADMIN)
        self.stranger = self.client(None)

    def client(self, token: str | None, **headers: str) -> httpx.Client:
        """A client that sends this token."""
        bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(
            base_url=self.url, headers={**bearer, **headers}, timeout=20, trust_env=False
        )

    def token(self, *scopes: Scope, tenant_id: str = "default", name: str = "test") -> str:
        """The secret of a new token."""
        return self.house.tokens.create(name, tenant_id, scopes, by="test")[1]

    def as_scopes(self, *scopes: Scope, tenant_id: str = "default") -> httpx.Client:
        """A client with a new token of these scopes."""
        return self.client(self.token(*scopes, tenant_id=tenant_id))

    def raw(self, request: bytes) -> bytes:
        """What comes back on a bare socket, until the server closes it or says no more."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as bare:
            bare.sendall(request)
            bare.settimeout(3)
            heard = b""
            try:
                while piece := bare.recv(65536):
                    heard += piece
            except TimeoutError:
                pass
            return heard


def event(**fields: Any) -> dict[str, Any]:
    """A good event of a declared type."""
    return {
        "type": "metastore.record.updated",
        "source": "metastore.api",
        "payload": {"namespace": "feature-flags", "key": "frontend-search", "version": 12},
        **fields,
    }


@contextmanager
def running(house: House, database: str) -> Iterator[Server]:
    """Serve the house on a free port, in a thread."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        build_app(house), log_config=None, access_log=False, server_header=False,
        ws_per_message_deflate=False, timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield Server(house, listener.getsockname()[1], database)
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


def wait_until(condition: Callable[[], bool], *, within_s: float = 10) -> None:
    """Return as soon as the condition holds."""
    until = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > until:
            raise AssertionError("the condition did not come to hold in time")
        time.sleep(0.01)


def settings_for(database: str, folder: Path, **changes: Any) -> Settings:
    """Settings of a house that commits in the request, so that a 202 can be read back at once."""
    given = {
        "data_dir": folder,
        "database_url": SecretStr(database),
        "admin_token": SecretStr(ADMIN),
        "events_mode": "inline",
        "demo": False,
        **changes,
    }
    return Settings.model_validate(given)


@contextmanager
def opened(settings: Settings) -> Iterator[House]:
    house = open_house(settings)
    try:
        yield house
    finally:
        house.close()


@contextmanager
def database_of(server: EmbeddedPostgres, template: str) -> Iterator[str]:
    name = f"api_{os.getpid()}_{next(_counter)}"
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        yield server.url(name)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def status_line(response: bytes) -> int:
    """The status of a response read from a bare socket."""
    return int(response.split(b" ", 2)[1])
