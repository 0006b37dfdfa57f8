"""Reach the database of the settings: the embedded server or the given one, migrated."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from penstock.base.errors import SetupIncomplete
from penstock.base.on_postgres import EmbeddedPostgres, ensure_database
from penstock.base.settings import Settings
from penstock.sql.on_postgres import migrate

_DATABASE = "penstock"
_log = structlog.get_logger("house")


@dataclass(slots=True)
class Database:
    """A migrated PostgreSQL, ours or somebody's."""

    dsn: str
    embedded: EmbeddedPostgres | None = None

    def revive(self) -> bool:
        """Start the embedded server again if it died; whether it had."""
        return self.embedded is not None and self.embedded.revive()

    def leave(self) -> None:
        if self.embedded is not None:
            self.embedded.leave()


def prepare_database(settings: Settings) -> Database:
    """Reach the database of these settings and bring it to the newest schema."""
    database = _reach(settings)
    for name in migrate(database.dsn):
        _log.info("migrated", migration=name)
    return database


def reach_database(settings: Settings) -> Database:
    """Reach a database that is there already, and change nothing about it."""
    folder = settings.data_dir / "postgres"
    if settings.database_url is None and not (folder / "data" / "PG_VERSION").exists():
        raise SetupIncomplete(
            f"expected a database in {folder}, found none",
            remedy="Name one in PENSTOCK_DATABASE_URL, or the folder in PENSTOCK_DATA_DIR.",
        )
    return _reach(settings)


def _reach(settings: Settings) -> Database:
    if settings.database_url is not None:
        return Database(settings.database_url.get_secret_value())
    embedded = EmbeddedPostgres(settings.data_dir / "postgres")
    server = embedded.join()
    ensure_database(server, _DATABASE)
    return Database(embedded.url(_DATABASE), embedded)
