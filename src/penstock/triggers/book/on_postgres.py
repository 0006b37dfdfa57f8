"""Keep definitions of triggers: every version for ever, and which one counted at an instant.

    create ──▶ 1 ── change ──▶ 2 ── delete ──▶ 3 (deleted)      versions are only ever added

A change that changes nothing adds no version. Two people who change one trigger take turns; whoever
names the version that was read is refused when it is no longer the newest.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from datetime import datetime
from typing import TypeAlias

from psycopg.rows import TupleRow

from penstock.base.errors import NotFound
from penstock.base.ids import uuid7
from penstock.base.on_postgres import Pool, answering
from penstock.envelope.codec import encode, load_stored
from penstock.envelope.envelope import DEFAULT_TENANT
from penstock.sql import query
from penstock.store.walk.on_postgres import Connection
from penstock.triggers.book.conflict import TriggerConflict
from penstock.triggers.trigger import Trigger, TriggerSpec, is_material_change

_Values: TypeAlias = Mapping[str, str | datetime | None]


class TriggerBook:
    """The definitions of all tenants; every question names one."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def create(
        self, spec: TriggerSpec, *, workflow_slug: str, by: str, tenant_id: str = DEFAULT_TENANT
    ) -> Trigger:
        """Add a trigger; it judges what is stored from the next pass on."""
        key = uuid7()
        values = _columns(spec) | {
            "id": key, "tenant": tenant_id, "workflow": workflow_slug, "by": by,
        }  # fmt: skip
        with answering(), self._pool.connection() as connection:
            connection.execute(query("triggers", "create"), values)
        return self.get(tenant_id, key)

    def change(
        self,
        tenant_id: str,
        trigger_id: str,
        spec: TriggerSpec,
        *,
        by: str,
        expected_version: int | None = None,
    ) -> Trigger:
        """Make `spec` the newest version, unless it says what the newest says already."""
        values = _columns(spec) | {"id": trigger_id, "tenant": tenant_id, "by": by}
        with answering(), self._pool.connection() as connection, connection.transaction():
            now = _lock(connection, tenant_id, trigger_id, expected_version)
            if not is_material_change(now.spec, spec):
                return now
            connection.execute(query("triggers", "change"), values)
        return self.get(tenant_id, trigger_id)

    def delete(
        self, tenant_id: str, trigger_id: str, *, by: str, expected_version: int | None = None
    ) -> None:
        """Let the trigger judge nothing more; its versions and deliveries stay."""
        values = {"id": trigger_id, "tenant": tenant_id, "by": by}
        with answering(), self._pool.connection() as connection, connection.transaction():
            _lock(connection, tenant_id, trigger_id, expected_version)
            connection.execute(query("triggers", "delete"), values)

    def get(self, tenant_id: str, trigger_id: str, *, workflow_slug: str | None = None) -> Trigger:
        """The newest version; NotFound when there is none, or it was deleted."""
        values = {"tenant": tenant_id, "id": trigger_id, "workflow": workflow_slug}
        found = self._read("get", values)
        if not found:
            raise _unknown(trigger_id)
        return found[0]

    def list(
        self,
        tenant_id: str | None,
        *,
        workflow_slug: str | None = None,
        status: str | None = None,
        event_type: str | None = None,
        event_source: str | None = None,
    ) -> builtins.list[Trigger]:
        """The triggers of a tenant or a workflow, oldest first; of all tenants if none is named."""
        return self._read(
            "list",
            {
                "tenant": tenant_id, "workflow": workflow_slug, "status": status,
                "event_type": event_type, "event_source": event_source,
            },
        )  # fmt: skip

    def versions(self, tenant_id: str, trigger_id: str) -> builtins.list[Trigger]:
        """Every version, oldest first; that it was deleted is not one of them."""
        values = {"tenant": tenant_id, "id": trigger_id}
        with answering(), self._pool.connection() as connection:
            rows = connection.execute(query("triggers", "versions"), values).fetchall()
        if not rows:
            raise _unknown(trigger_id)
        return [trigger_of(row) for row in rows if row[9] != "deleted"]

    def as_of(
        self,
        tenant_id: str,
        instant: datetime,
        *,
        workflow_slug: str | None = None,
        trigger_id: str | None = None,
    ) -> builtins.list[Trigger]:
        """The triggers as they were defined at an instant, oldest first."""
        return self._read(
            "as_of",
            {
                "tenant": tenant_id, "instant": instant, "workflow": workflow_slug,
                "id": trigger_id,
            },
        )  # fmt: skip

    def _read(
        self, name: str, values: Mapping[str, str | datetime | None]
    ) -> builtins.list[Trigger]:
        with answering(), self._pool.connection() as connection:
            return [trigger_of(row) for row in connection.execute(query("triggers", name), values)]


def trigger_of(row: TupleRow) -> Trigger:
    """A definition from the columns that every query of definitions begins with."""
    key, tenant_id, workflow_slug, version, spec, made_at, made_by, changed_at, changed_by = row[:9]
    return Trigger(
        id=key,
        tenant_id=tenant_id,
        workflow_slug=workflow_slug,
        version=version,
        spec=TriggerSpec.model_validate(load_stored(spec)),
        created_at=made_at,
        created_by=made_by,
        updated_at=changed_at,
        updated_by=changed_by,
    )


def _columns(spec: TriggerSpec) -> dict[str, str | None]:
    return {
        "spec": encode(spec.wire()).decode(),
        "status": str(spec.status),
        "name": spec.name,
        "event_type": spec.event_type,
        "event_source": spec.event_source,
    }


def _lock(
    connection: Connection, tenant_id: str, trigger_id: str, expected_version: int | None
) -> Trigger:
    values = {"tenant": tenant_id, "id": trigger_id}
    row = connection.execute(query("triggers", "lock"), values).fetchone()
    if row is None:
        raise _unknown(trigger_id)
    now = trigger_of(row)
    if expected_version not in (None, now.version):
        raise TriggerConflict(expected=expected_version, found=now.version)
    return now


def _unknown(trigger_id: str) -> NotFound:
    return NotFound(f"expected a trigger by the id {trigger_id[:60]!r}, found none")
