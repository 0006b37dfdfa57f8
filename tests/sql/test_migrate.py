"""Migrations apply once, and an edited one is refused."""

from __future__ import annotations

import psycopg
import pytest

from penstock.base.errors import SetupIncomplete
from penstock.base.on_postgres import EmbeddedPostgres, ensure_database
from penstock.sql import migrations
from penstock.sql import on_postgres as migrating
from penstock.sql.on_postgres import migrate


def before(number: int, server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database as the migrations before one left it."""
    older = [each for each in migrations() if each[0] < number]
    ensure_database(server.url("postgres"), f"before_{number}")
    url = server.url(f"before_{number}")
    with monkeypatch.context() as patched:
        patched.setattr(migrating, "migrations", lambda: older)
        migrate(url)
    return url


def test_migrating_twice_changes_nothing(database: str) -> None:
    assert migrate(database) == []


def test_a_migration_edited_after_it_was_applied_is_refused(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE schema_migrations SET checksum = 'other' WHERE number = 1")

    with pytest.raises(SetupIncomplete, match="was changed after it was applied"):
        migrate(database)


def test_events_cannot_be_changed_even_by_the_owner(database: str) -> None:
    with psycopg.connect(database) as connection, pytest.raises(psycopg.Error, match="append-only"):
        connection.execute("DELETE FROM workflow_events")


def test_appends_counted_by_the_last_version_stay_counted(
    server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = before(9, server, monkeypatch)
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO ledger_writers (writer, accepted, settled)"
            " VALUES ('append-a', 3, 3), ('append-b', 4, 4), ('w-1', 9, 9)"
        )

    assert "append_rows" in migrate(url)

    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT appended FROM head").fetchone() == (7,)
        left = connection.execute("SELECT writer, accepted FROM ledger_writers").fetchall()
    assert left == [("w-1", 9)]


def test_sources_counted_by_the_last_version_are_not_counted_again(
    server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = before(10, server, monkeypatch)
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO workflow_events (position, tenant_id, id, type, source, occurred_at,"
            " severity, severity_rule, content_hash, hash)"
            " SELECT n, 'acme', n, 'a.b', 'old', now(), 'info', 'default', '', ''"
            " FROM generate_series(1, 5) AS n"
        )
        connection.execute("UPDATE head SET position = 5, appended = 5")
        connection.execute(
            "INSERT INTO ledger_sources (tenant_id, source, stored) VALUES ('acme', 'old', 5)"
        )

    assert "counted_later" in migrate(url)

    with psycopg.connect(url) as connection:
        connection.execute("SELECT count_appended(position) FROM head")
        found = connection.execute("SELECT source, stored FROM ledger_sources").fetchall()
    assert found == [("old", 5)]
