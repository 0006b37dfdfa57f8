"""Lend a server that knows one type with personal data in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.api.support import Server, database_of, opened, running, settings_for

from penstock.base.on_postgres import EmbeddedPostgres

TYPE = "shop.customer.moved"
PERSONAL = {"x-pii": {"subject": "/customerId"}}
SCHEMA = {
    "type": "object",
    "required": ["customerId"],
    "properties": {
        "customerId": {"type": "string"},
        "email": {"type": "string", **PERSONAL},
        "person": {"type": "object", **PERSONAL},
        "rooms": {"type": "integer"},
    },
}


@contextmanager
def serving(
    server: EmbeddedPostgres, template: str, folder: Path, tags: dict[str, str]
) -> Iterator[Server]:
    """A server of its own, at which the type promises these tags."""
    with (
        database_of(server, template) as database,
        opened(settings_for(database, folder)) as house,
        running(house, database) as found,
    ):
        body = {"eventType": TYPE, "schema": SCHEMA, "metadata": {"tags": tags}}
        assert found.admin.post("/admin/event-schemas", json=body).status_code == 201
        yield found
