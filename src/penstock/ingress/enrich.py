"""Add what the event type promises: its version, its severity, its tags."""

from __future__ import annotations

from penstock.envelope.check import content_hash
from penstock.envelope.envelope import Envelope, JsonObject, JsonValue
from penstock.ingress.verdict import Accepted
from penstock.registry.insight import severity_of
from penstock.registry.schema import SchemaVersion

_TAG_VALUE_MAX = 256


def enrich(
    envelope: Envelope, claimed: JsonObject, payload_form: bytes, schema: SchemaVersion | None
) -> Accepted:
    """The event as it will be stored."""
    severity, rule = severity_of(schema, envelope.type, envelope.payload, envelope.metadata)
    if schema is not None:
        tags = promised_tags(schema, envelope)
        if tags or envelope.schema_version is None:
            envelope = envelope._replace(
                schema_version=schema.version, tags={**tags, **envelope.tags}
            )
    return Accepted(
        envelope,
        severity,
        rule,
        None if schema is None else schema.schema_hash,
        content_hash(claimed, payload_form),
        payload_form,
        claimed,
    )


def promised_tags(schema: SchemaVersion, envelope: Envelope) -> dict[str, str]:
    """Tags that the type declares as pointers into its payload, where the payload has them."""
    declared = schema.metadata.get("tags")
    if not isinstance(declared, dict):
        return {}
    found: dict[str, str] = {}
    for key, pointer in declared.items():
        value = _at(envelope.payload, pointer) if isinstance(pointer, str) else None
        if isinstance(value, str | int) and not isinstance(value, bool):
            text = str(value)
            if 0 < len(text) <= _TAG_VALUE_MAX:
                found[key] = text
    return found


def _at(value: JsonValue, pointer: str) -> JsonValue:
    for part in pointer.split("/")[1:]:
        if not isinstance(value, dict):
            return None
        value = value.get(part.replace("~1", "/").replace("~0", "~"))
    return value
