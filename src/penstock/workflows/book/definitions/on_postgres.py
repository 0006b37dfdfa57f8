"""Keep definitions of workflows: every version for ever, and which one is the newest.

    create ──▶ 1 ── change ──▶ 2 ── … ── delete      versions are only ever added

A change that changes nothing adds no version. Whoever names the version that was read is refused
when it is no longer the newest. Every change tells of itself with an event.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import cast

import psycopg
from psycopg.rows import TupleRow

from penstock.base.errors import Fault, NotFound
from penstock.base.ids import uuid7
from penstock.base.on_postgres import Pool, answering
from penstock.envelope.codec import encode, load_stored
from penstock.envelope.envelope import JsonValue
from penstock.sql import query
from penstock.workflows.book.conflict import WorkflowConflict, require_version
from penstock.workflows.definition import (
    Status,
    Workflow,
    WorkflowDefinition,
    is_material_change,
    read_definition,
)
from penstock.workflows.errors import WorkflowInvalid
from penstock.workflows.outbox.on_postgres import put

Connection = psycopg.Connection[TupleRow]
_ROOM = "workflows_book"


class DefinitionBook:
    """The definitions of all tenants; every question names one."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def create(
        self, tenant_id: str, document: JsonValue, *, by: str, status: Status = "active"
    ) -> Workflow:
        """Add a workflow; WorkflowInvalid or WorkflowConflict when it cannot be."""
        definition = read_definition(document)
        values = {
            "id": uuid7(), "tenant": tenant_id, "slug": definition.slug, "name": definition.name,
            "active": status == "active", "by": by, "definition": _text(definition),
        }  # fmt: skip
        with answering(), self._pool.connection() as connection, connection.transaction():
            made = connection.execute(query(_ROOM, "create_definition"), values).fetchone()
            if made is None:
                raise WorkflowConflict(f"expected a new slug, found {definition.slug!r} taken")
            _tell(connection, tenant_id, str(values["id"]), definition, 1, by)
        return self.get(tenant_id, definition.slug)

    def change(
        self,
        tenant_id: str,
        slug: str,
        document: JsonValue | None = None,
        *,
        by: str,
        status: Status | None = None,
        expected_version: int | None = None,
    ) -> Workflow:
        """Make a document the newest version, or switch the workflow on or off, or both."""
        definition = None if document is None else read_definition(document)
        if definition is not None and definition.slug != slug:
            fault = Fault("/slug", f"expected {slug!r}, found another")
            raise WorkflowInvalid([fault])
        with answering(), self._pool.connection() as connection, connection.transaction():
            key, version, is_active = self._lock(connection, tenant_id, slug, expected_version)
            if definition is not None and _is_new(connection, key, version, definition):
                values = {
                    "id": key, "name": definition.name, "by": by, "definition": _text(definition),
                }  # fmt: skip
                connection.execute(query(_ROOM, "change_definition"), values)
                _tell(connection, tenant_id, key, definition, version + 1, by)
            if status is not None and is_active != (status == "active"):
                wanted = {"id": key, "active": status == "active", "by": by}
                connection.execute(query(_ROOM, "switch_definition"), wanted)
        return self.get(tenant_id, slug)

    def delete(
        self, tenant_id: str, slug: str, *, by: str, expected_version: int | None = None
    ) -> None:
        """Let the workflow launch nothing more; its versions and runs stay."""
        values = {"tenant": tenant_id, "slug": slug, "by": by}
        with answering(), self._pool.connection() as connection, connection.transaction():
            self._lock(connection, tenant_id, slug, expected_version)
            connection.execute(query(_ROOM, "delete_definition"), values)

    def get(self, tenant_id: str, slug: str, *, version: int | None = None) -> Workflow:
        """The newest version, or the one that is named; NotFound when there is none."""
        if version is None:
            found = self._read("definitions", {"tenant": tenant_id, "slug": slug, "active": None})
        else:
            values = {"tenant": tenant_id, "slug": slug, "version": version, "at": None}
            found = self._read("definition_versions", values)
        if not found:
            raise _unknown(slug)
        return found[0]

    def list(self, tenant_id: str, *, status: Status | None = None) -> builtins.list[Workflow]:
        """Every workflow of a tenant by its slug, in its newest version."""
        active = None if status is None else status == "active"
        return self._read("definitions", {"tenant": tenant_id, "slug": None, "active": active})

    def ids(self, tenant_id: str, slugs: Iterable[str]) -> dict[str, str]:
        """The ids of workflows by their slugs; what does not exist is left out."""
        values = {"tenant": tenant_id, "slugs": list(slugs)}
        with answering(), self._pool.connection() as connection:
            return dict(connection.execute(query(_ROOM, "definition_ids"), values).fetchall())

    def versions(
        self, tenant_id: str, slug: str, *, at: datetime | None = None
    ) -> builtins.list[Workflow]:
        """Every version, newest first; with `at`, those that were there at that instant."""
        values = {"tenant": tenant_id, "slug": slug, "version": None, "at": at}
        found = self._read("definition_versions", values)
        if not found:
            raise _unknown(slug)
        return found

    def _lock(
        self, connection: Connection, tenant_id: str, slug: str, expected: int | None
    ) -> TupleRow:
        row = connection.execute(
            query(_ROOM, "lock_definition"), {"tenant": tenant_id, "slug": slug}
        ).fetchone()
        if row is None:
            raise _unknown(slug)
        require_version("workflow", expected, row[1])
        return row

    def _read(self, name: str, values: Mapping[str, object]) -> builtins.list[Workflow]:
        with answering(), self._pool.connection() as connection:
            return [_workflow(row) for row in connection.execute(query(_ROOM, name), values)]


def _is_new(connection: Connection, key: str, version: int, definition: WorkflowDefinition) -> bool:
    """Whether it says something else than a version does."""
    row = connection.execute(
        query(_ROOM, "locked_definition"), {"id": key, "version": version}
    ).fetchone()
    return row is None or is_material_change(_definition(row[0]), definition)


def _workflow(row: TupleRow) -> Workflow:
    key, tenant_id, version, text, created_at, created_by, updated_at, updated_by, active = row
    return Workflow(
        key, tenant_id, version, _definition(text), created_at, created_by, updated_at, updated_by,
        "active" if active else "disabled",
    )  # fmt: skip


def _definition(text: str) -> WorkflowDefinition:
    return WorkflowDefinition.model_validate(load_stored(text), by_alias=True, by_name=False)


def _text(definition: WorkflowDefinition) -> str:
    return encode(definition.wire()).decode()


def _tell(
    connection: Connection,
    tenant_id: str,
    key: str,
    definition: WorkflowDefinition,
    version: int,
    by: str,
) -> None:
    """The event that a definition changed, committed with the change."""
    payload: dict[str, JsonValue] = {
        "workflowDefinitionId": key,
        "workflowSlug": definition.slug,
        "name": definition.name,
        "version": version,
        "actor": by,
    }
    event: dict[str, JsonValue] = {
        "id": f"workflow-{key}-v{version}",
        "type": "workflow.definition.updated",
        "source": "core.workflows",
        "tenantId": tenant_id,
        "payload": cast("JsonValue", payload),
    }
    put(connection, [event])


def _unknown(slug: str) -> NotFound:
    return NotFound(f"expected a workflow {slug!r}, found none")
