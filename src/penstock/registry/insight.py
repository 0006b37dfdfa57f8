"""Say what an event means beside what it says: how loud it is, what it is about, its typed reading.

    severity   declared by the type ─▶ explicit in metadata or payload root ─▶ suffix ─▶ info
    links      declared by the type ─▶ the key rules of `links`
    derived    {type, payload} when the payload has every field the typed reading needs

Severity never comes from `priority`, `status` or `state`, nor from anything nested: a report about
a failure is not a failure. tests/registry/test_severity.py holds it to this.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.envelope.envelope import JsonObject, JsonValue, Severity
from penstock.registry.links import KINDS, Links
from penstock.registry.schema import SchemaVersion
from penstock.registry.severity import read_level, read_suffix

_DECLARED: dict[object, tuple[Severity, str]] = {
    severity.value: (severity, "declared") for severity in Severity
}
_DEFAULT = (Severity.INFO, "default")


def severity_of(
    schema: SchemaVersion | None,
    event_type: str,
    payload: JsonValue,
    metadata: Mapping[str, JsonValue],
) -> tuple[Severity, str]:
    """How loud the event is, and which rule decided: declared, explicit, suffix or default."""
    if schema is not None:
        word = schema.metadata.get("severity")
        if isinstance(word, str) and word in _DECLARED:
            return _DECLARED[word]
    said = _explicit(metadata) if metadata else None
    if said is None and isinstance(payload, dict):
        said = _explicit(payload)
    if said is not None:
        return said, "explicit"
    suffix = read_suffix(event_type)
    return _DEFAULT if suffix is None else (suffix, "suffix")


def links_of(
    schema: SchemaVersion | None, payload: JsonValue, metadata: Mapping[str, JsonValue]
) -> JsonObject:
    """What the event is about; only the kinds that have something."""
    links = Links()
    declared = schema.metadata.get("links") if schema is not None else None
    if isinstance(declared, dict):
        for kind, pointer in declared.items():
            if kind in KINDS and isinstance(pointer, str):
                links.add(kind, at(payload, pointer))
    links.walk(dict(metadata))
    links.walk(payload)
    return links.found()


def derived_of(
    schema: SchemaVersion | None, event_type: str, payload: JsonValue
) -> JsonObject | None:
    """The typed reading of the event, or None when the payload does not carry it."""
    required = schema.metadata.get("derivedRequires") if schema is not None else None
    if not isinstance(required, list):
        # Filestore's events are read as they are, declared or not.
        required = [] if event_type.startswith("filestore.") else None
    if required is None or not isinstance(payload, dict):
        return None
    if any(payload.get(str(name)) is None for name in required):
        return None
    return {"type": event_type, "payload": payload}


def at(value: JsonValue, pointer: str) -> JsonValue:
    """What a JSON Pointer leads to; None when it leads nowhere."""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def _explicit(said: Mapping[str, JsonValue]) -> Severity | None:
    for key in ("severity", "level"):
        if key in said:
            level = read_level(said[key])
            if level is not None:
                return level
    return None
