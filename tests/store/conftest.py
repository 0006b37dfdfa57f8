"""Lend readers of a database: a fresh one per test, or one per module for tests that only look."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from tests.store.support import KEY

from penstock.base.on_postgres import EmbeddedPostgres, Pool, open_pool
from penstock.store.on_postgres import EventReader

_counter = itertools.count()


@pytest.fixture
def reader_pool(database: str) -> Iterator[Pool]:
    """Connections that play the reader, with the time limit that production has."""
    with open_pool(database, "penstock_reader", size_max=2, timeout_ms=2_000) as pool:
        yield pool


@pytest.fixture
def all_pool(database: str) -> Iterator[Pool]:
    """Connections that see all tenants."""
    with open_pool(database, "penstock_ingest", size_max=2) as pool:
        yield pool


@pytest.fixture
def reader(reader_pool: Pool, all_pool: Pool) -> EventReader:
    return EventReader(reader_pool, all_pool, cursor_key=KEY)


@pytest.fixture(scope="module")
def shared_database(server: EmbeddedPostgres, template: str) -> Iterator[str]:
    """A migrated database for all tests of a module, which leave it as they found it."""
    name = f"shared_{os.getpid()}_{next(_counter)}"
    words = {"name": sql.Identifier(name), "template": sql.Identifier(template)}
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {name} TEMPLATE {template}").format(**words))
        yield server.url(name)
        connection.execute(sql.SQL("DROP DATABASE {name} WITH (FORCE)").format(**words))


@pytest.fixture(scope="module")
def shared_pool(shared_database: str) -> Iterator[Pool]:
    with open_pool(shared_database, "penstock_reader", size_max=2, timeout_ms=2_000) as pool:
        # The thread that connects calls `random`, which hypothesis refuses while it draws.
        pool.wait()
        yield pool


@pytest.fixture(scope="module")
def shared_reader(shared_database: str, shared_pool: Pool) -> Iterator[EventReader]:
    with open_pool(shared_database, "penstock_ingest", size_max=2) as all_pool:
        all_pool.wait()
        yield EventReader(shared_pool, all_pool, cursor_key=KEY)
