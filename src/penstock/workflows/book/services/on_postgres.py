"""Keep the services that steps may call, by tenant and slug."""

from __future__ import annotations

import builtins
from typing import Any

from psycopg.rows import TupleRow

from penstock.base.errors import NotFound
from penstock.base.on_postgres import Pool, answering
from penstock.envelope.codec import encode, load_stored
from penstock.sql import query
from penstock.workflows.port import Service

_ROOM = "workflows_book"


class ServiceBook:
    """The services of all tenants; executors look them up here."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def put(self, service: Service, *, by: str) -> Service:
        """Register a service, or change the one of that name."""
        values = {
            "tenant": service.tenant_id, "slug": service.slug, "base_url": service.base_url,
            "display_name": service.display_name, "kind": service.kind, "status": service.status,
            "health_path": service.health_path, "headers": encode(service.headers).decode(),
            "metadata": encode(service.metadata).decode(), "by": by,
        }  # fmt: skip
        with answering(), self._pool.connection() as connection:
            connection.execute(query(_ROOM, "put_service"), values)
        return self.get(service.tenant_id, service.slug)

    def get(self, tenant_id: str, slug: str) -> Service:
        """The service by that name; NotFound when there is none."""
        found = self.service(tenant_id, slug)
        if found is None:
            raise NotFound(f"expected a service {slug!r}, found none")
        return found

    def service(self, tenant_id: str, slug: str) -> Service | None:
        """The service by that name, or None."""
        found = self._read(tenant_id, slug)
        return found[0] if found else None

    def list(self, tenant_id: str) -> builtins.list[Service]:
        """Every service of a tenant, by slug."""
        return self._read(tenant_id, None)

    def mark(self, tenant_id: str, slug: str, status: str) -> None:
        """Note how it answered last: unknown, healthy, degraded or unreachable."""
        with answering(), self._pool.connection() as connection:
            connection.execute(
                query(_ROOM, "mark_service"), {"tenant": tenant_id, "slug": slug, "status": status}
            )

    def delete(self, tenant_id: str, slug: str) -> None:
        """Forget a service; NotFound when there is none."""
        with answering(), self._pool.connection() as connection:
            found = connection.execute(
                query(_ROOM, "delete_service"), {"tenant": tenant_id, "slug": slug}
            ).fetchone()
        if found is None:
            raise NotFound(f"expected a service {slug!r}, found none")

    def _read(self, tenant_id: str, slug: str | None) -> builtins.list[Service]:
        with answering(), self._pool.connection() as connection:
            rows = connection.execute(
                query(_ROOM, "services"), {"tenant": tenant_id, "slug": slug}
            ).fetchall()
        return [_service(row) for row in rows]


def _service(row: TupleRow) -> Service:
    found: builtins.list[Any] = builtins.list(row)
    found[7], found[8] = load_stored(found[7]), load_stored(found[8])
    return Service(*found)
