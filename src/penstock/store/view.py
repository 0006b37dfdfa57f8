"""Show one event as readers see it: what was published, and what we know about it.

    Stored ── view ──▶ { …the wire form…, position, receivedAt, severity, links, derived, … }

Links and the derived reading are worked out on reading, so that they follow what the type declares
today; severity was decided once, when the event was stored, because readers filter by it.

A payload of an older version is shown upcasted: `schemaVersion` says what is stored, `upcastTo`
what is shown. An upcaster that fails shows the original, and `upcastFailed` says why. Personal data
is masked unless it was revealed before (`privacy.show`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from penstock.base.clock import SystemClock, format_instant
from penstock.base.errors import QueryInvalid
from penstock.envelope.check import write
from penstock.envelope.envelope import Envelope, JsonObject, Stored
from penstock.registry.fields import infer_fields
from penstock.registry.insight import derived_of, links_of
from penstock.registry.registry import Registry
from penstock.registry.upcast import Upcasted
from penstock.store.privacy.show import mask


def view(
    stored: Stored, registry: Registry, *, now: datetime | None = None, upcast: bool = True
) -> JsonObject:
    """An event as the API and the stream show it.

    `now` decides whether a time to live has passed; left out, it is the machine's own time. Without
    `upcast` the payload is the one that was stored, whatever has become of its type.
    """
    stored = mask(stored, registry)
    event = stored.envelope
    payload, version, said = event.payload, event.schema_version, JsonObject()
    brought = registry.upcast(event.type, version, payload) if upcast else None
    if isinstance(brought, Upcasted):
        payload, version = brought.payload, brought.version
        said = {"payload": payload, "upcastTo": version}
    elif brought is not None:
        said = {"upcastFailed": {"to": brought.version, "detail": brought.detail}}
    schema = registry.find(event.type, version)
    return envelope_wire(stored) | {
        "position": str(stored.position),
        "receivedAt": format_instant(stored.received_at),
        "ttlMs": event.ttl_ms,
        "expired": is_expired(event, now or SystemClock().now()),
        "severity": stored.severity.value,
        "severityRule": stored.severity_rule,
        "links": links_of(schema, payload, event.metadata),
        "derived": derived_of(schema, event.type, payload),
        "schemaHash": stored.schema_hash,
        **said,
    }


def read_upcast(text: str | None) -> bool:
    """What the parameter `upcast` says: true unless it is false; else QueryInvalid."""
    if text not in (None, "true", "false"):
        raise QueryInvalid(f"expected true or false, found {text[:40]!r}", parameter="upcast")
    return text != "false"


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
