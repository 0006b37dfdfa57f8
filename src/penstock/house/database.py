"""Reach the database of the settings: the embedded server or the given one, migrated."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

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
    if settings.database_url is not None:
        database = Database(settings.database_url.get_secret_value())
    else:
        embedded = EmbeddedPostgres(settings.data_dir / "postgres")
        server = embedded.join()
        ensure_database(server, _DATABASE)
        database = Database(embedded.url(_DATABASE), embedded)
    for name in migrate(database.dsn):
        _log.info("migrated", migration=name)
    return database
