"""Say why an event may not be published, before it is sent.

    wire form ── strict JSON profile ──▶ envelope ──▶ type and version ──▶ payload ──▶ None
                         └──────────────────┴───────────────┴───────────────┴──▶ EventRefused

The server judges again and has the last word. Asking here first costs microseconds and gives the
program its answer at the line that made the mistake. Without a registry only the server knows the
types.
"""

from __future__ import annotations

from datetime import datetime

from penstock.base.errors import EventRefused, Fault, NotInProfile
from penstock.base.ids import is_uuid7
from penstock.envelope import check, codec
from penstock.envelope.envelope import (
    PAYLOAD_BYTES_MAX,
    Envelope,
    JsonObject,
    JsonValue,
)
from penstock.registry.registry import Registry
from penstock.registry.schema import check_payload


def refusal(event: JsonObject, *, now: datetime, registry: Registry | None) -> EventRefused | None:
    """Why `event` may not be published, or None."""
    try:
        raw = codec.encode(event)
        tree = codec.decode(raw)
    except NotInProfile as found:
        return EventRefused(
            found.detail, reason=found.reason, remedy=found.remedy, faults=found.faults
        )
    envelope = check.read(tree, accepted_at=now, fallback_id=_id_of(event), tenant_id=None)
    if not isinstance(envelope, Envelope):
        return _refused("envelope_invalid", envelope)
    # The payload is never larger than the event around it, so most are not measured.
    if len(raw) > PAYLOAD_BYTES_MAX:
        fault = check.payload_bytes_fault(len(codec.encode(envelope.payload)))
        if fault is not None:
            return _refused("payload_too_large", (Fault("/payload", fault),))
    return None if registry is None else _unfit(envelope, registry)


def _unfit(envelope: Envelope, registry: Registry) -> EventRefused | None:
    """What the registered types have against the event."""
    schema = registry.find(envelope.type, envelope.schema_version)
    if schema is None:
        return _unknown(envelope, registry)
    if schema.metadata.get("needsUuid7") and not is_uuid7(envelope.id):
        detail = f"expected a UUIDv7 for {envelope.type}, found {envelope.id[:80]!r}"
        return _refused("envelope_invalid", (Fault("/id", detail),))
    faults = check_payload(schema, envelope.payload)
    if not faults:
        return None
    return _refused(
        "payload_invalid",
        tuple(Fault(f"/payload{fault.pointer}", fault.detail) for fault in faults),
    )


def _unknown(envelope: Envelope, registry: Registry) -> EventRefused | None:
    if registry.knows(envelope.type) and envelope.schema_version is not None:
        detail = f"{envelope.type} has no version {envelope.schema_version}"
        return _refused("version_unknown", (Fault("/schemaVersion", detail),))
    if registry.mode == "open":
        return None
    near = registry.nearest(envelope.type)
    hint = f"; the nearest known type is {near}" if near else ""
    detail = f"expected a registered type, found {envelope.type!r}{hint}"
    return _refused("type_unknown", (Fault("/type", detail),))


def _refused(reason: str, faults: tuple[Fault, ...]) -> EventRefused:
    detail = "; ".join(f"{fault.pointer or '/'}: {fault.detail}" for fault in faults[:5])
    return EventRefused(detail, reason=reason, faults=faults)


def _id_of(event: JsonObject) -> str:
    found: JsonValue = event.get("id")
    return found if isinstance(found, str) else ""
