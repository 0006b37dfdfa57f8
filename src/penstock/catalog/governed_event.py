"""Speak the governed event of seed 004 beside our own envelope.

    {id, type, version, tenantId, source, createdAt, traceContext, payload} ── to_native ──▶ native
    Stored ── from_stored ──▶ governed event, which to_native reads back to the same event

`version` is a semantic version; its first number is our schema version. What more it says is kept
as `metadata.version`, and `traceContext` as `metadata.traceContext`, where the enrichment finds it.
`0.0.0` is written for an event whose type is not registered. Our other fields may stand beside.
"""

from __future__ import annotations

import re
from typing import Final

from penstock.base.errors import Fault
from penstock.catalog.trace import context_of
from penstock.envelope.check import write
from penstock.envelope.envelope import JsonObject, JsonValue, Stored

# Field of ours, and where it stands in theirs.
PLACES: Final = {"occurredAt": "createdAt", "schemaVersion": "version"}
_VERSION: Final = re.compile(r"(0|[1-9][0-9]{0,9})\.(0|[1-9][0-9]{0,9})\.(0|[1-9][0-9]{0,9})")
_UNREGISTERED: Final = "0.0.0"
_OWN: Final = frozenset(("version", "createdAt", "traceContext"))
_BESIDE: Final = ("correlationId", "causationId", "traceparent", "ttl", "tags", "metadata")


def recognises(tree: JsonObject) -> bool:
    """Whether `tree` has a version in words, and not the fields of ours that say the same."""
    return isinstance(tree.get("version"), str) and PLACES.keys().isdisjoint(tree)


def to_native(tree: JsonObject) -> JsonObject | tuple[Fault, ...]:
    """The native wire form of a governed event, or what is wrong with its own fields."""
    said = tree["version"]
    version = _VERSION.fullmatch(said) if isinstance(said, str) else None
    faults = []
    if version is None:
        detail = f"expected a semantic version such as 1.0.0, found {str(said)[:80]!r}"
        faults.append(Fault("/version", detail))
    if not _is_context(tree.get("traceContext", {})):
        detail = "expected an object of strings, traceId and spanId, found something else"
        faults.append(Fault("/traceContext", detail))
    if faults or version is None:
        return tuple(faults)
    native = {name: value for name, value in tree.items() if name not in _OWN}
    if "createdAt" in tree:
        native["occurredAt"] = tree["createdAt"]
    if version[0] != _UNREGISTERED:
        native["schemaVersion"] = int(version[1])
    return _with_metadata(native, tree, version)


def from_stored(stored: Stored) -> JsonObject:
    """A stored event as a governed event."""
    envelope = stored.envelope
    wire = write(envelope)
    event: JsonObject = {
        "id": wire["id"],
        "type": wire["type"],
        "version": _version_of(envelope.schema_version, envelope.metadata.get("version")),
        "tenantId": envelope.tenant_id,
        "source": wire["source"],
        "createdAt": wire["occurredAt"],
        "payload": wire["payload"],
    }
    event |= {name: wire[name] for name in _BESIDE if wire.get(name)}
    kept = envelope.metadata.get("traceContext")
    if envelope.traceparent is not None:
        event["traceContext"] = context_of(envelope.traceparent)
    elif kept is not None and _is_context(kept):
        event["traceContext"] = kept
    return event


def _with_metadata(native: JsonObject, tree: JsonObject, version: re.Match[str]) -> JsonObject:
    found: JsonObject = {}
    if version[0] not in (f"{version[1]}.0.0", _UNREGISTERED):
        found["version"] = version[0]
    # Beside a traceparent it only says the same again.
    if "traceContext" in tree and "traceparent" not in tree:
        found["traceContext"] = tree["traceContext"]
    metadata = native.get("metadata", {})
    if found and isinstance(metadata, dict):
        native["metadata"] = {**metadata, **found}
    return native


def _version_of(number: int | None, label: JsonValue) -> str:
    """The semantic version: the label that the publisher gave, where it has the same number."""
    if number is None:
        return _UNREGISTERED
    found = _VERSION.fullmatch(label) if isinstance(label, str) else None
    return found[0] if found is not None and found[1] == str(number) else f"{number}.0.0"


def _is_context(value: JsonValue) -> bool:
    # Strings alone: moved into metadata it stands one level deeper, and must still fit there.
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
