"""Show one event as readers see it: what was published, and what we know about it.

    Stored ── view ──▶ { …the wire form…, position, receivedAt, severity, links, derived, … }

Links and the derived reading are worked out on reading, so that they follow what the type declares
today; severity was decided once, when the event was stored, because readers filter by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from penstock.base.clock import SystemClock, format_instant
from penstock.envelope.check import write
from penstock.envelope.envelope import Envelope, JsonObject, Stored
from penstock.registry.fields import infer_fields
from penstock.registry.insight import derived_of, links_of
from penstock.registry.registry import Registry


def view(stored: Stored, registry: Registry, *, now: datetime | None = None) -> JsonObject:
    """An event as the API and the stream show it.

    `now` decides whether a time to live has passed; left out, it is the machine's own time.
    """
    event = stored.envelope
    schema = registry.find(event.type, event.schema_version)
    return envelope_wire(stored) | {
        "position": str(stored.position),
        "receivedAt": format_instant(stored.received_at),
        "ttlMs": event.ttl_ms,
        "expired": is_expired(event, now or SystemClock().now()),
        "severity": stored.severity.value,
        "severityRule": stored.severity_rule,
        "links": links_of(schema, event.payload, event.metadata),
        "derived": derived_of(schema, event.type, event.payload),
        "schemaHash": stored.schema_hash,
    }


def envelope_wire(stored: Stored) -> JsonObject:
    """The event as it could be published again."""
    return write(stored.envelope)


def page_schema(events: Sequence[Stored]) -> JsonObject:
    """Which fields the events of a page have, for the reader who is about to filter by them."""
    return infer_fields([envelope_wire(stored) for stored in events])


def is_expired(event: Envelope, now: datetime) -> bool:
    """Whether the event's time to live has passed; one that names none lives for ever."""
    if event.ttl_ms is None:
        return False
    # Counted from now backwards: a huge ttl would lead past the last year a date can have.
    return event.ttl_ms < (now - event.occurred_at) / timedelta(milliseconds=1)
