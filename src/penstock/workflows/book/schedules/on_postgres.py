"""Keep schedules of workflows: what they say, and when they fire next.

A change keeps what is settled: slots that were fired, or passed over, are not fired again under the
new words.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from datetime import datetime
from typing import cast

import psycopg
from psycopg.rows import TupleRow

from penstock.base.clock import format_instant
from penstock.base.errors import NotFound
from penstock.base.ids import uuid7
from penstock.base.on_postgres import Pool, answering
from penstock.envelope.codec import encode, load_stored
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.sql import query
from penstock.workflows.book.conflict import require_version
from penstock.workflows.book.schedules.kept import KeptSchedule
from penstock.workflows.schedule import Schedule, ScheduleSpec, next_fire_at, read_schedule

Connection = psycopg.Connection[TupleRow]
_ROOM = "workflows_book"


class ScheduleBook:
    """The schedules of all tenants; every question names one."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def create(
        self, tenant_id: str, slug: str, document: JsonValue, *, by: str, key: str | None = None
    ) -> KeptSchedule:
        """Add a schedule to a workflow; it fires what is due from now on."""
        spec, key = read_schedule(document), key or uuid7()
        values = _columns(spec) | {"id": key, "tenant": tenant_id, "slug": slug, "by": by}
        with answering(), self._pool.connection() as connection, connection.transaction():
            row = connection.execute(query(_ROOM, "create_schedule"), values).fetchone()
            if row is None:
                raise NotFound(f"expected a workflow {slug!r}, found none")
            _plan(connection, Schedule(key, tenant_id, slug, spec, row[0]))
        return self.get(tenant_id, key)

    def change(
        self,
        tenant_id: str,
        key: str,
        document: JsonValue,
        *,
        by: str,
        expected_version: int | None = None,
    ) -> KeptSchedule:
        """Make a document what the schedule says; saying the same again is no new version."""
        spec = read_schedule(document)
        values = _columns(spec) | {"id": key, "tenant": tenant_id, "by": by}
        with answering(), self._pool.connection() as connection, connection.transaction():
            row = connection.execute(query(_ROOM, "lock_schedule"), values).fetchone()
            if row is None:
                raise _unknown(key)
            version, cursor, created_at, slug = row
            require_version("schedule", expected_version, version)
            if _said_now(connection, tenant_id, key) != spec.wire():
                connection.execute(query(_ROOM, "change_schedule"), values)
                _plan(connection, Schedule(key, tenant_id, slug, spec, created_at, cursor))
        return self.get(tenant_id, key)

    def get(self, tenant_id: str, key: str) -> KeptSchedule:
        """One schedule; NotFound when this tenant has none by that id."""
        found = self._read({"tenant": tenant_id, "id": key, "slug": None})
        if not found:
            raise _unknown(key)
        return found[0]

    def list(self, tenant_id: str, *, slug: str | None = None) -> builtins.list[KeptSchedule]:
        """Every schedule of a tenant, or of one workflow."""
        return self._read({"tenant": tenant_id, "id": None, "slug": slug})

    def delete(self, tenant_id: str, key: str, *, expected_version: int | None = None) -> None:
        """Forget a schedule; its runs stay."""
        values = {"tenant": tenant_id, "id": key}
        with answering(), self._pool.connection() as connection, connection.transaction():
            row = connection.execute(query(_ROOM, "lock_schedule"), values).fetchone()
            if row is None:
                raise _unknown(key)
            require_version("schedule", expected_version, row[0])
            connection.execute(query(_ROOM, "delete_schedule"), values)

    def _read(self, values: Mapping[str, object]) -> builtins.list[KeptSchedule]:
        with answering(), self._pool.connection() as connection:
            rows = connection.execute(query(_ROOM, "schedule_columns"), values).fetchall()
        return [kept_schedule(row) for row in rows]


def _said_now(connection: Connection, tenant_id: str, key: str) -> JsonObject:
    values = {"tenant": tenant_id, "id": key, "slug": None}
    (row,) = connection.execute(query(_ROOM, "schedule_columns"), values).fetchall()
    return kept_schedule(row).schedule.spec.wire()


def kept_schedule(row: TupleRow) -> KeptSchedule:
    """The columns of a schedule, in their order, as a value."""
    (
        key, tenant_id, slug, name, description, cron, timezone, parameters, start, end, catch_up,
        is_active, cursor, next_run_at, window, error, version, created_at, created_by, updated_at,
        updated_by,
    ) = row  # fmt: skip
    spec = ScheduleSpec(
        name=name, description=description, cron=cron, timezone=timezone,
        parameters=cast("JsonObject", load_stored(parameters)), start_window=_said(start),
        end_window=_said(end), catch_up=catch_up, is_active=is_active,
    )  # fmt: skip
    return KeptSchedule(
        Schedule(key, tenant_id, slug, spec, created_at, cursor), version, next_run_at,
        None if window is None else load_stored(window), error, created_by, updated_at, updated_by,
    )  # fmt: skip


def _plan(connection: Connection, schedule: Schedule) -> None:
    connection.execute(
        query(_ROOM, "plan_schedule"), {"id": schedule.id, "next": next_fire_at(schedule)}
    )


def _columns(spec: ScheduleSpec) -> dict[str, object]:
    return {
        "name": spec.name,
        "description": spec.description,
        "cron": spec.cron,
        "timezone": spec.timezone,
        "parameters": encode(spec.parameters).decode(),
        "start": spec.start_window,
        "end": spec.end_window,
        "catch_up": spec.catch_up,
        "active": spec.is_active,
    }


def _said(at: datetime | None) -> str | None:
    return None if at is None else format_instant(at)


def _unknown(key: str) -> NotFound:
    return NotFound(f"expected a schedule {key}, found none")
