"""Make registries with marked types, events of them, and vaults to hide them with."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson

from penstock.envelope.envelope import JsonObject, Stored
from penstock.ingress.lot import Judged
from penstock.ingress.pipeline import judge
from penstock.ingress.verdict import Accepted, Arrival
from penstock.registry.registry import Registry
from penstock.registry.schema import SchemaVersion, schema_hash
from penstock.store.privacy.cipher import RootKey
from penstock.store.privacy.in_memory import KeysInMemory
from penstock.store.privacy.keys import SubjectKeys
from penstock.store.privacy.vault import Vault

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ROOT = RootKey(b"r" * 32)
MARKED = "shop.customer.registered"
PLAIN = "shop.order.placed"

CUSTOMER: JsonObject = {
    "type": "object",
    "required": ["customerId"],
    "properties": {
        "customerId": {"type": "string"},
        "email": {"type": "string", "x-pii": {"subject": "/customerId"}},
        "age": {"type": "integer", "x-pii": {"subject": "/customerId"}},
        "address": {"$ref": "#/$defs/address", "x-pii": {"subject": "/customerId"}},
        "contacts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "phone": {"type": "string", "x-pii": {"subject": "1/id"}},
                },
            },
        },
    },
    "$defs": {"address": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


def version(event_type: str, schema: JsonObject, **metadata: Any) -> SchemaVersion:
    return SchemaVersion(
        event_type, 1, "active", schema, schema_hash(schema), metadata, NOON, "test", NOON, "test"
    )


REGISTRY = Registry(
    [
        version(MARKED, CUSTOMER, tags={"customer": "/customerId", "email": "/email"}),
        version(PLAIN, {"type": "object"}),
    ],
    mode="strict",
)

PAYLOAD: JsonObject = {
    "customerId": "cust-17",
    "email": "alice@example.org",
    "age": 41,
    "address": {"city": "Utrecht", "lines": ["Oudegracht 1"]},
    "contacts": [{"id": "bob", "phone": "+31 6 1234"}, {"id": "carol", "phone": "+31 6 9999"}],
    "note": "kept as it is",
}
PLAINTEXTS = (
    b"alice@example.org", b"Utrecht", b"Oudegracht", b"+31 6 1234", b"+31 6 9999", b": 41,",
)  # fmt: skip


def judged(event_id: str = "evt-1", event_type: str = MARKED, **said: Any) -> Judged:
    event = {
        "id": event_id,
        "type": event_type,
        "source": "shop.web",
        "occurredAt": "2026-03-01T11:00:00.000Z",
        "payload": PAYLOAD,
        **said,
    }
    raw = orjson.dumps(event)
    verdict = judge(raw, Arrival(NOON, "none"), REGISTRY)
    assert isinstance(verdict, Accepted), verdict
    return Judged(raw, verdict)


def accepted(item: Judged) -> Accepted:
    assert isinstance(item.verdict, Accepted)
    return item.verdict


def stored(verdict: Accepted, position: int = 1) -> Stored:
    """The event as it would be read back."""
    return Stored(
        position, verdict.envelope, NOON, verdict.severity, verdict.severity_rule,
        verdict.schema_hash, verdict.content_hash,
    )  # fmt: skip


def vault(keys: SubjectKeys | None = None, root: RootKey = ROOT) -> Vault:
    return Vault(root, keys if keys is not None else KeysInMemory())
