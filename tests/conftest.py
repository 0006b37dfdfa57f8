"""Lend real servers to tests: one embedded PostgreSQL, a migrated template, a copy per test."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from penstock.base.on_postgres import EmbeddedPostgres, ensure_database
from penstock.sql.on_postgres import migrate

_counter = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedPostgres]:
    """One embedded PostgreSQL for the whole run, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="penstock-pg-") as folder:
        embedded = EmbeddedPostgres(Path(folder))
        embedded.join()
        yield embedded
        embedded.leave()


@pytest.fixture(scope="session")
def template(server: EmbeddedPostgres) -> str:
    """The name of a migrated database that tests copy."""
    ensure_database(server.url("postgres"), "template_penstock")
    migrate(server.url("template_penstock"))
    return "template_penstock"


@pytest.fixture
def database(server: EmbeddedPostgres, template: str) -> Iterator[str]:
    """The address of a fresh migrated database."""
    name = f"t_{os.getpid()}_{next(_counter)}"
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        yield server.url(name)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
