"""Migrations apply once, and an edited one is refused."""

from __future__ import annotations

import psycopg
import pytest

from penstock.base.errors import SetupIncomplete
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
