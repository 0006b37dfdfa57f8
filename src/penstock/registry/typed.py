"""Carry payload models to the wire and back: what `EventType.event` and `read` stand on.

    model ── model_wire ──▶ JSON by wire names           JSON ── fit ──▶ model, or EventRefused

A default is written out, because it is what the event means. A null that nobody said is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TypeAlias, TypedDict, TypeVar, cast

from pydantic import BaseModel, ValidationError

from penstock.base.clock import format_instant
from penstock.base.errors import EventRefused, Fault
from penstock.base.faults import form_faults
from penstock.envelope.envelope import Envelope, JsonObject, JsonValue, Stored

M = TypeVar("M", bound=BaseModel)

# An event however it was come by: read from the store, from a bus, or as JSON from the API.
Readable: TypeAlias = Stored | Envelope | Mapping[str, object]


class Beside(TypedDict, total=False):
    """What can be said of an event beside its type and payload; docs/events.md explains each."""

    id: str
    source: str
    tags: Mapping[str, str]
    metadata: Mapping[str, JsonValue]
    occurred_at: datetime
    correlation_id: str
    causation_id: str
    traceparent: str
    ttl_ms: int
    tenant_id: str


_WIRE_NAMES = {
    "id": "id",
    "source": "source",
    "tags": "tags",
    "metadata": "metadata",
    "occurred_at": "occurredAt",
    "correlation_id": "correlationId",
    "causation_id": "causationId",
    "traceparent": "traceparent",
    "ttl_ms": "ttl",
    "tenant_id": "tenantId",
}


def beside(said: Beside) -> JsonObject:
    """Keyword arguments under their wire names."""
    return {_WIRE_NAMES[name]: _plain(value) for name, value in said.items()}


def model_wire(model: BaseModel) -> JsonObject:
    """A model as JSON by its wire names, with its defaults, without a null that nobody said."""
    whole = model.model_dump(mode="json", by_alias=True)
    said = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return cast("JsonObject", _without_unsaid(whole, said))


def fit(model: type[M], payload: object, event_type: str) -> M:
    """The payload as its model; EventRefused says where it does not fit."""
    try:
        return model.model_validate(payload)
    except ValidationError as error:
        found = form_faults(error, payload)
        faults = tuple(Fault(f"/payload{fault.pointer}", fault.detail) for fault in found)
        detail = f"expected a payload of {event_type}, found {len(faults)} faults in it"
        raise EventRefused(detail, reason="payload_invalid", faults=faults) from None


def said_by(event: Readable) -> tuple[str, object]:
    """The type that an event names, and its payload."""
    if isinstance(event, Stored):
        event = event.envelope
    if isinstance(event, Envelope):
        return event.type, event.payload
    name = event.get("type")
    return name if isinstance(name, str) else "", event.get("payload", {})


def _plain(value: object) -> JsonValue:
    if isinstance(value, datetime):
        return format_instant(value)
    return cast("JsonValue", dict(value) if isinstance(value, Mapping) else value)


def _without_unsaid(whole: object, said: object) -> object:
    if isinstance(whole, dict) and isinstance(said, dict):
        return {
            key: _without_unsaid(value, said[key]) if key in said else value
            for key, value in whole.items()
            if key in said or value is not None
        }
    if isinstance(whole, list) and isinstance(said, list):
        return [_without_unsaid(*pair) for pair in zip(whole, said, strict=True)]
    return whole
