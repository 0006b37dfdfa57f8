"""Versions registered before there were numbers and history have both after the migration."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from penstock.base.on_postgres import EmbeddedPostgres, ensure_database, open_pool
from penstock.registry.on_postgres import PostgresRegistryStore
from penstock.registry.proposal import Proposal
from penstock.sql import migrations

AT = datetime(2026, 3, 1, tzinfo=UTC)
_OLD = """
INSERT INTO event_schema_registry (event_type, version, status, schema, schema_hash, created_at,
                                   created_by, updated_at, updated_by)
VALUES ('shop.order', %s, %s, '{}', 'ff', %s, 'ana', %s, 'bea')
"""


@pytest.fixture
def upgraded(server: EmbeddedPostgres) -> Iterator[str]:
    """A database that held two versions when the migration came."""
    ensure_database(server.url("postgres"), "upgraded")
    url = server.url("upgraded")
    with psycopg.connect(url, autocommit=True) as connection:
        for number, _, text in migrations():
            if number == 4:
                for version, status in ((1, "deprecated"), (2, "active")):
                    at = AT + timedelta(days=version)
                    connection.execute(_OLD, (version, status, at, at + timedelta(hours=1)))
            connection.execute(text.encode())
    yield url
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute("DROP DATABASE upgraded WITH (FORCE)")


def test_old_versions_get_numbers_and_count_as_they_are_since_their_creation(upgraded: str) -> None:
    with open_pool(upgraded, "owner", size_max=1) as pool:
        store = PostgresRegistryStore(pool)
        found = store.load()[1]
        first_day = store.as_of(AT + timedelta(days=1))
        today = store.as_of(AT + timedelta(days=2))

    assert sorted(each.id for each in found) == [1, 2]
    assert [(each.version, each.status) for each in first_day] == [(1, "deprecated")]
    assert [(each.version, each.status) for each in today] == [(1, "deprecated"), (2, "active")]


def test_a_new_version_goes_on_counting(upgraded: str) -> None:
    with open_pool(upgraded, "owner", size_max=1) as pool:
        version, _ = PostgresRegistryStore(pool).register(Proposal("shop.paid", {}), by="ana")

    assert version.id == 3


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event_schema_history SET status = 'active'",
        "DELETE FROM event_schema_history",
        "TRUNCATE event_schema_history",
    ],
)
def test_history_never_changes(database: str, statement: str) -> None:
    with open_pool(database, "owner", size_max=1) as pool:
        PostgresRegistryStore(pool).register(Proposal("shop.paid", {}), by="ana")

        with pool.connection() as connection, pytest.raises(psycopg.Error, match="append-only"):
            connection.execute(statement.encode())
