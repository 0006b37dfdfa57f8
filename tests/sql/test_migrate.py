"""Migrations apply once, and an edited one is refused."""

from __future__ import annotations

import psycopg
import pytest

from penstock.base.errors import SetupIncomplete
from penstock.base.on_postgres import EmbeddedPostgres, ensure_database
from penstock.sql import migrations
from penstock.sql import on_postgres as migrating
from penstock.sql.on_postgres import migrate


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
    older = [each for each in migrations() if each[0] < 9]
    ensure_database(server.url("postgres"), "before_append_rows")
    url = server.url("before_append_rows")
    with monkeypatch.context() as patched:
        patched.setattr(migrating, "migrations", lambda: older)
        migrate(url)
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
