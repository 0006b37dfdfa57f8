"""Prepare an event for sending: what the program said, with everything it may leave out filled in.

    name | EventType | event ── claim ──▶ wire form ── fill ──▶ with id, time, context and cause

Pure: the clock, the id, the workflow context and the cause are arguments. What the program says
itself always wins. Once filled, an event is sent as it is, however often it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, TypedDict

from pydantic import BaseModel

from penstock.base.clock import format_instant
from penstock.base.errors import EventRefused, Fault
from penstock.envelope.check import write
from penstock.envelope.context import WorkflowContext, inject
from penstock.envelope.envelope import Envelope, JsonObject
from penstock.publish.cause import Cause
from penstock.publish.plain import plain_object
from penstock.registry.declare import EventType, Payload
from penstock.registry.typed import fit

Publishable: TypeAlias = str | EventType | Envelope | Mapping[str, object]


class Fields(TypedDict, total=False):
    """What can be said beside the type; docs/events.md explains each."""

    id: str | None
    source: str | None
    payload: object
    tags: Mapping[str, str] | None
    metadata: Mapping[str, object] | None
    occurred_at: datetime | str | None
    correlation_id: str | None
    causation_id: str | None
    traceparent: str | None
    ttl_ms: int | None
    schema_version: int | None
    tenant_id: str | None


_WIRE_NAMES = {
    "id": "id",
    "source": "source",
    "payload": "payload",
    "tags": "tags",
    "metadata": "metadata",
    "occurred_at": "occurredAt",
    "correlation_id": "correlationId",
    "causation_id": "causationId",
    "traceparent": "traceparent",
    "ttl_ms": "ttl",
    "schema_version": "schemaVersion",
    "tenant_id": "tenantId",
}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything an event takes over from where and when it is published."""

    now: datetime
    new_id: str
    context: WorkflowContext | None = None
    cause: Cause | None = None


def claim(event: Publishable, fields: Fields, *, source: str | None = None) -> JsonObject:
    """The event in wire form, as said; EventRefused when it cannot be written as JSON.

    Who says no source has the publisher's, `source`, or else the only one its type declares.
    """
    said = _typed(event, fields) if isinstance(event, EventType) else _said(fields)
    if isinstance(event, str):
        said["type"] = event
    elif isinstance(event, Envelope):
        said = {**write(event), **said}
    elif not isinstance(event, EventType):
        said = {**event, **said}
    source = source or _declared_source(event)
    if source is not None:
        said.setdefault("source", source)
    return plain_object(said)


def fill(event: JsonObject, around: Surroundings) -> JsonObject:
    """The event with its id, time, workflow context and cause."""
    filled: JsonObject = dict(event)
    if "id" not in filled:
        filled["id"] = around.new_id
        # Under an id of the caller's own the time stays open: a program that publishes the same
        # id again says the same thing again, and becomes a duplicate instead of a conflict.
        filled.setdefault("occurredAt", format_instant(around.now))
    if around.cause is not None:
        filled.setdefault("causationId", around.cause.id)
        filled.setdefault("correlationId", around.cause.correlation_id)
    metadata = filled.get("metadata", {})
    if around.context is not None and isinstance(metadata, dict):
        filled["metadata"] = inject(metadata, around.context)
    return filled


def _said(fields: Fields) -> dict[str, object]:
    """Keyword arguments under their wire names; None means not said, but for a payload."""
    unknown = fields.keys() - _WIRE_NAMES.keys()
    if unknown:
        known = ", ".join(_WIRE_NAMES)
        raise TypeError(f"expected some of {known}, found {', '.join(sorted(unknown))}")
    return {
        _WIRE_NAMES[name]: value
        for name, value in fields.items()
        if value is not None or name == "payload"
    }


def _typed(event_type: EventType, fields: Fields) -> dict[str, object]:
    said = _said(fields)
    said["type"] = event_type.name
    said["payload"] = _model(event_type, said.get("payload", {}))
    said.setdefault("schemaVersion", event_type.version)
    return said


def _declared_source(event: Publishable) -> str | None:
    declared = event.sources if isinstance(event, EventType) else ()
    return declared[0] if len(declared) == 1 else None


def _model(event_type: EventType, payload: object) -> Payload:
    """The payload as the type's own model; a mapping is read into it."""
    model: type[Payload] = event_type.payload
    if isinstance(payload, model):
        return payload
    if isinstance(payload, BaseModel):
        detail = f"expected {model.__name__}, found {type(payload).__name__}"
        raise EventRefused(detail, reason="payload_invalid", faults=(Fault("/payload", detail),))
    return fit(model, payload, event_type.name)
