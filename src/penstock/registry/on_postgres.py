"""Keep schema versions in PostgreSQL, in the table event_schema_registry.

Registering locks the one row of registry_revision, so two who register at once come one after the
other, and each sees what the first one did. `load` is one statement: the versions and the revision
are of the same instant. Every state a version was in stays in event_schema_history.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

import psycopg
from psycopg.rows import TupleRow

from penstock.base.errors import StoreUnavailable
from penstock.base.on_postgres import Pool
from penstock.envelope.codec import encode, load_stored
from penstock.envelope.envelope import JsonObject
from penstock.registry.proposal import Proposal, check, settle
from penstock.registry.schema import SchemaVersion
from penstock.sql import query

_REVISION_WAIT_S = 0.5  # publishers ask for it; better an old registry than a slow answer


class PostgresRegistryStore:
    """The registry store that every process shares. Registering needs the owner's pool."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def load(self) -> tuple[int, list[SchemaVersion]]:
        with self._connection() as connection:
            rows = connection.execute(query("registry", "load")).fetchall()
        return rows[0][0], [_version(row[1:]) for row in rows if row[1] is not None]

    def revision(self) -> int:
        with self._connection(_REVISION_WAIT_S) as connection:
            row = connection.execute(query("registry", "revision")).fetchone()
        return cast("int", row[0]) if row else 0

    def register(self, proposal: Proposal, *, by: str) -> tuple[SchemaVersion, bool]:
        check(proposal)
        with self._connection() as connection, connection.transaction():
            locked = connection.execute(query("registry", "lock")).fetchall()
            rows = connection.execute(
                query("registry", "versions_of"), {"event_type": proposal.event_type}
            ).fetchall()
            existing = [_version(row) for row in rows]
            version, changed = settle(existing, proposal, by=by, at=locked[0][1])
            if changed:
                kept = connection.execute(query("registry", "keep"), _row(version)).fetchall()
                version = replace(version, id=kept[0][0])
            return version, changed

    def as_of(self, at: datetime) -> list[SchemaVersion]:
        with self._connection() as connection:
            rows = connection.execute(query("registry", "as_of"), {"at": at}).fetchall()
        return [_version(row) for row in rows]

    @contextmanager
    def _connection(self, wait_s: float | None = None) -> Iterator[psycopg.Connection[TupleRow]]:
        try:
            with self._pool.connection(timeout=wait_s) as connection:
                yield connection
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise StoreUnavailable(f"the registry cannot be read: {error}") from error


def _version(row: TupleRow) -> SchemaVersion:
    event_type, version, status, schema, digest, metadata, *stamps = row
    created_at, created_by, updated_at, updated_by, number = stamps
    return SchemaVersion(
        event_type=event_type,
        version=version,
        status=status,
        schema=cast("JsonObject", load_stored(schema)),
        schema_hash=digest,
        metadata=cast("JsonObject", load_stored(metadata)),
        created_at=created_at,
        created_by=created_by,
        updated_at=updated_at,
        updated_by=updated_by,
        id=number,
    )


def _row(version: SchemaVersion) -> dict[str, Any]:
    return {
        "event_type": version.event_type,
        "version": version.version,
        "status": version.status,
        "schema": encode(version.schema).decode(),
        "schema_hash": version.schema_hash,
        "metadata": encode(version.metadata).decode(),
        "created_at": version.created_at,
        "created_by": version.created_by,
        "updated_at": version.updated_at,
        "updated_by": version.updated_by,
    }
