"""Speak the `DomainEvent` of seed 002 beside our own envelope.

    {id, type, timestamp, tags, metadata, data} ── to_native ──▶ native wire form
    Stored ── from_stored ──▶ DomainEvent, which to_native reads back to the same event

Its six fields are all required. `metadata` carries `workflowVersion`, `eventSource`, and the
`correlationId` and `causationId` that are fields of ours. It has no source: `eventSource`, `system`
or `plugin`, is it. Our other fields may stand beside the six, and win over `metadata`, null
included; that is how an event of any publisher can be written as a DomainEvent without loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from penstock.base.errors import Fault
from penstock.envelope.check import write
from penstock.envelope.envelope import JsonObject, JsonValue, Stored
from penstock.envelope.fields import kind

REQUIRED: Final = ("id", "type", "timestamp", "tags", "metadata", "data")
EVENT_SOURCES: Final = ("system", "plugin")
# Field of ours, and where it stands in theirs.
PLACES: Final = {
    "occurredAt": "timestamp",
    "payload": "data",
    "correlationId": "metadata/correlationId",
    "causationId": "metadata/causationId",
}
_OURS: Final = frozenset(("occurredAt", "payload"))
_IN_METADATA: Final = ("correlationId", "causationId")
_BESIDE: Final = ("traceparent", "ttl", "schemaVersion", "tenantId")


def recognises(tree: JsonObject) -> bool:
    """Whether `tree` has the two words of a DomainEvent, and not ours for the same."""
    return "timestamp" in tree and "data" in tree and _OURS.isdisjoint(tree)


def to_native(tree: JsonObject) -> JsonObject | tuple[Fault, ...]:
    """The native wire form of a DomainEvent, or what it lacks."""
    faults = tuple(_faults(tree))
    metadata = tree.get("metadata")
    if faults or not isinstance(metadata, dict):
        return faults
    native: JsonObject = {"source": _implied_source(metadata), **tree}
    native["occurredAt"] = native.pop("timestamp")
    native["payload"] = native.pop("data")
    kept = dict(metadata)
    for name in _IN_METADATA:
        if name not in tree:
            native[name] = kept.pop(name, None)
        if native[name] is None:
            del native[name]
    native["metadata"] = kept
    return native


def from_stored(stored: Stored) -> JsonObject:
    """A stored event as a DomainEvent."""
    wire = write(stored.envelope)
    metadata = dict(stored.envelope.metadata)
    event: JsonObject = {
        "id": wire["id"],
        "type": wire["type"],
        "timestamp": wire["occurredAt"],
        "tags": wire["tags"],
        "metadata": metadata,
        "data": wire["payload"],
    }
    if wire["source"] != _implied_source(metadata):
        event["source"] = wire["source"]
    for name in _IN_METADATA:
        if name in metadata:
            event[name] = wire.get(name)  # the publisher has a word of its own in its place
        elif name in wire:
            metadata[name] = wire[name]
    return event | {name: wire[name] for name in _BESIDE if name in wire}


def metadata_faults(metadata: Mapping[str, JsonValue]) -> tuple[Fault, ...]:
    """What is wrong with the metadata of a type that tracks where its events come from."""
    faults = []
    if "eventSource" in metadata and metadata["eventSource"] not in EVENT_SOURCES:
        detail = "expected 'system' or 'plugin', found something else"
        faults.append(Fault("/metadata/eventSource", detail))
    version = metadata.get("workflowVersion", "")
    if not isinstance(version, str):
        detail = f"expected a string, found {kind(version)}"
        faults.append(Fault("/metadata/workflowVersion", detail))
    return tuple(faults)


def _faults(tree: JsonObject) -> Iterator[Fault]:
    for name in REQUIRED:
        if name not in tree:
            yield Fault(f"/{name}", f"expected the `{name}` of a DomainEvent, found nothing")
    if "metadata" in tree and not isinstance(tree["metadata"], dict):
        yield Fault("/metadata", f"expected an object, found {kind(tree['metadata'])}")


def _implied_source(metadata: Mapping[str, JsonValue]) -> str:
    said = metadata.get("eventSource")
    return said if isinstance(said, str) and said in EVENT_SOURCES else EVENT_SOURCES[0]
