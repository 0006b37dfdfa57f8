"""Lend real servers to tests: one embedded PostgreSQL, a migrated template, a copy per test."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from penstock.base.on_postgres import EmbeddedPostgres, ensure_database
from penstock.base.settings import Settings
from penstock.sql.on_postgres import migrate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_counter = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file together, and all that need Spark in one process: it starts once."""
    for item in items:
        group = "spark" if item.get_closest_marker("spark") else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))


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


@contextmanager
def _copied(server: EmbeddedPostgres, template: str) -> Iterator[str]:
    name = f"t_{os.getpid()}_{next(_counter)}"
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        yield server.url(name)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def database(server: EmbeddedPostgres, template: str) -> Iterator[str]:
    """The address of a fresh migrated database."""
    with _copied(server, template) as url:
        yield url


@pytest.fixture
def other_database(server: EmbeddedPostgres, template: str) -> Iterator[str]:
    """The address of a second one, to compare with."""
    with _copied(server, template) as url:
        yield url


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of the run; starting it costs seconds."""
    from penstock.base.on_spark import open_session

    folder = tmp_path_factory.mktemp("spark")
    session = open_session(Settings(data_dir=folder, ingress_concurrency=2), name="tests")
    yield session
    session.stop()
