"""Check one event field by field, and read the wire form into an Envelope and back.

    {"type": …, "source": …, …} ── read ──▶ Envelope with every default, or all its faults
                                ◀── write ──

One table of rules (`fields.RULES`) serves good and bad events alike, so they cannot be judged by
different standards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from penstock.base.clock import format_instant
from penstock.base.errors import Fault
from penstock.envelope.codec import sorted_form
from penstock.envelope.envelope import (
    DEFAULT_TENANT,
    PAYLOAD_BYTES_MAX,
    Envelope,
    JsonObject,
    JsonValue,
)
from penstock.envelope.fields import REQUIRED, RULES, is_tenant, kind, read_instant, unknown_field
from penstock.envelope.form import json_form

__all__ = ["content_hash", "is_tenant", "payload_bytes_fault", "read", "write"]

FAULTS_MAX: Final = 20
# The key of an event, and the version that the door pins: docs/decisions/0004 says why.
_NOT_CONTENT: Final = ("id", "tenantId", "schemaVersion")
_NO_PAYLOAD: Final[JsonValue] = {}


def read(
    tree: JsonValue, *, accepted_at: datetime, fallback_id: str, tenant_id: str | None
) -> Envelope | tuple[Fault, ...]:
    """The event that `tree` says, with every default filled in, or everything wrong with it.

    `tenant_id` is the one the caller is bound to; None lets the event name its own.
    """
    if not isinstance(tree, dict):
        return (Fault("", f"expected a JSON object, found {kind(tree)}"),)
    at = read_instant(tree["occurredAt"]) if "occurredAt" in tree else accepted_at
    faults = _faults(tree, tenant_id)
    if isinstance(at, Fault):
        faults.insert(0, at)
        at = accepted_at
    if faults:
        return tuple(faults[:FAULTS_MAX])
    said: Callable[..., Any] = tree.get  # the rules have seen to the types
    return Envelope(
        said("id", fallback_id),
        said("type"),
        said("source"),
        at,
        said("payload", {}),
        said("tags", {}),
        said("correlationId"),
        said("causationId"),
        said("traceparent"),
        said("ttl"),
        said("metadata", {}),
        said("schemaVersion"),
        tenant_id or said("tenantId", DEFAULT_TENANT),
    )


def write(envelope: Envelope) -> JsonObject:
    """The wire form, without what the event does not have and without the default tenant."""
    e = envelope
    wire: JsonObject = {
        "id": e.id,
        "type": e.type,
        "source": e.source,
        "occurredAt": format_instant(e.occurred_at),
        "payload": e.payload,
        "tags": dict(e.tags),
        "metadata": dict(e.metadata),
    }
    optional: dict[str, str | int | None] = {
        "correlationId": e.correlation_id,
        "causationId": e.causation_id,
        "traceparent": e.traceparent,
        "ttl": e.ttl_ms,
        "schemaVersion": e.schema_version,
        # A default said aloud would contradict the token of a publisher in another tenant.
        "tenantId": None if e.tenant_id == DEFAULT_TENANT else e.tenant_id,
    }
    return wire | {name: value for name, value in optional.items() if value is not None}


def content_hash(claimed: JsonObject, payload_form: bytes | None = None) -> bytes:
    """SHA-256 of what an event claims beside its identity: equal means the same event again.

    `payload_form` spares spelling the payload again when the caller has its `json_form`.
    """
    rest = claimed.copy()
    for key in _NOT_CONTENT:
        rest.pop(key, None)
    payload = rest.pop("payload", _NO_PAYLOAD)
    if payload_form is None:
        payload_form = json_form(payload)
    return hashlib.sha256(b"%b\x1f%b" % (sorted_form(rest), payload_form)).digest()


def payload_bytes_fault(payload_bytes: int) -> str | None:
    """Why a payload of that size, written compactly, is refused, or None."""
    if payload_bytes <= PAYLOAD_BYTES_MAX:
        return None
    return f"expected a payload of at most {PAYLOAD_BYTES_MAX} bytes, found {payload_bytes}"


def _faults(tree: JsonObject, tenant_id: str | None) -> list[Fault]:
    faults: list[Fault] = []
    for key, value in tree.items():
        if key in RULES:
            if found := RULES[key](value):
                faults += found
        elif len(faults) < FAULTS_MAX:
            faults.append(unknown_field(key))
    for key in REQUIRED:
        if key not in tree:
            faults.append(Fault(f"/{key}", "expected a string, found nothing"))
    if tenant_id is not None and _names_another(tree.get("tenantId"), tenant_id):
        detail = f"expected tenant {tenant_id!r}, to which the token is bound, found another"
        faults.append(Fault("/tenantId", detail))
    return faults


def _names_another(said: JsonValue, tenant_id: str) -> bool:
    return isinstance(said, str) and said != tenant_id and is_tenant(said)
