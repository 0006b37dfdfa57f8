"""Describe every event type as one AsyncAPI 3.0 document, for the tools that read such.

    publish   POST /v1/events    one message per type: the event as it is sent
    live      /ws                workflow.event.received: the event as it is read back

Schemas stand under components; a reference inside one is rewritten to where it stands there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from penstock.base.pointers import pointer as pointer_of
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.entry import TypeEntry

VERSION = "3.0.0"
HOST = "127.0.0.1:8700"  # where a server answers that nobody told otherwise
_SCHEMAS = "#/components/schemas/"
_MESSAGES = "#/components/messages/"
_LIVE = "workflow.event.received"
_DROPPED = ("$schema", "$id")  # the document says which dialect, and where everything stands
_BY_NAME = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_SAID = ("const", "enum", "default", "examples")  # values, whatever they look like
_TEXT: JsonObject = {"type": "string"}
_INSTANT: JsonObject = {"type": "string", "format": "date-time"}
_EVENT: JsonObject = {
    "type": "object",
    "required": ["type", "source"],
    "properties": {
        "id": {**_TEXT, "description": "assigned as UUIDv7 when left out"},
        "type": _TEXT,
        "source": {**_TEXT, "description": "logical publisher, dotted"},
        "occurredAt": _INSTANT,
        "payload": {"description": "what happened, as the type's schema says"},
        "tags": {"type": "object", "additionalProperties": _TEXT},
        "correlationId": _TEXT,
        "causationId": _TEXT,
        "traceparent": _TEXT,
        "ttl": {"type": "integer", "minimum": 1, "description": "milliseconds"},
        "metadata": {"type": "object"},
        "schemaVersion": {"type": "integer", "minimum": 1},
        "tenantId": _TEXT,
    },
}
_STORED: JsonObject = {
    "allOf": [
        {"$ref": f"{_SCHEMAS}Event"},
        {
            "type": "object",
            "required": ["position", "receivedAt", "severity"],
            "properties": {
                "position": {**_TEXT, "description": "gapless commit order, in decimal digits"},
                "receivedAt": _INSTANT,
                "severity": {"enum": ["critical", "error", "warning", "info", "debug"]},
                "links": {"type": "object"},
                "derived": {},
                "upcastTo": {"type": "integer", "description": "the version that is shown"},
            },
        },
    ]
}
_FRAME: JsonObject = {
    "type": "object",
    "required": ["type", "data", "emittedAt"],
    "properties": {
        "type": {"const": _LIVE},
        "data": {"type": "object", "properties": {"event": {"$ref": f"{_SCHEMAS}StoredEvent"}}},
        "emittedAt": _INSTANT,
    },
}


def asyncapi(entries: Iterable[TypeEntry], *, release: str, host: str) -> JsonObject:
    """The whole document; `release` is the product's version, `host` where a server answers."""
    known = list(entries)
    messages = [entry.event_type for entry in known]
    return {
        "asyncapi": VERSION,
        "info": {
            "title": "Penstock events",
            "version": release,
            "description": "Every event type of this registry, to publish and to listen to.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {"http": _server(host, "http"), "live": _server(host, "ws")},
        "channels": {
            "publish": _channel("/v1/events", "http", "Publish events.", messages),
            "live": _channel("/ws", "live", "Listen to what is stored.", [_LIVE]),
        },
        "operations": {
            "publish": _operation("receive", "publish", "Penstock takes events.", messages),
            "listen": _operation("send", "live", "Penstock sends what it stored.", [_LIVE]),
        },
        "components": {
            "messages": {
                **{entry.event_type: _message(entry) for entry in known},
                _LIVE: {"name": _LIVE, "title": _LIVE, "payload": _FRAME},
            },
            "schemas": {
                "Event": _EVENT,
                "StoredEvent": _STORED,
                **{_key(entry): _standing(entry) for entry in known},
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _server(host: str, protocol: str) -> JsonObject:
    security: JsonValue = [{"$ref": "#/components/securitySchemes/token"}]
    return {"host": host, "protocol": protocol, "security": security}


def _channel(address: str, server: str, about: str, messages: Sequence[str]) -> JsonObject:
    return {
        "address": address,
        "description": about,
        "servers": [{"$ref": f"#/servers/{server}"}],
        "messages": {name: {"$ref": _MESSAGES + name} for name in messages},
    }


def _operation(action: str, channel: str, about: str, messages: Sequence[str]) -> JsonObject:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "summary": about,
        "messages": [{"$ref": f"#/channels/{channel}/messages/{name}"} for name in messages],
    }


def _message(entry: TypeEntry) -> JsonObject:
    narrowed: JsonObject = {
        "type": "object",
        "properties": {
            "type": {"const": entry.event_type},
            "payload": {"$ref": _SCHEMAS + _key(entry)},
        },
    }
    message: JsonObject = {
        "name": entry.event_type,
        "title": entry.event_type,
        "summary": entry.purpose,
        "payload": {"allOf": [{"$ref": f"{_SCHEMAS}Event"}, narrowed]},
        "correlationId": {"location": "$message.payload#/correlationId"},
        "x-penstock": {
            "severity": entry.severity,
            "sources": [*entry.sources],
            "consumers": [*entry.consumers],
            "versions": [each.version for each in entry.versions],
        },
    }
    if entry.vocabulary:
        message["tags"] = [{"name": entry.vocabulary}]
    if entry.example is not None:
        source = entry.sources[0] if entry.sources else "example.source"
        event: JsonObject = {"type": entry.event_type, "source": source, "payload": entry.example}
        message["examples"] = [{"name": "example", "payload": event}]
    return message


def _key(entry: TypeEntry) -> str:
    return f"{entry.event_type}.{entry.version}"


def _standing(entry: TypeEntry) -> JsonObject:
    """The schema as it can stand inside the document."""
    here = _SCHEMAS + _key(entry)
    schema = cast("JsonObject", entry.document)
    anchors = _anchors(schema, here)
    return cast("JsonObject", _moved(schema, here, anchors))


def _moved(node: JsonValue, here: str, anchors: dict[str, str]) -> JsonValue:
    if isinstance(node, list):
        return [_moved(item, here, anchors) for item in node]
    if not isinstance(node, dict):
        return node
    kept: JsonObject = {}
    for word, inner in node.items():
        if word in _BY_NAME and isinstance(inner, dict):
            kept[word] = {name: _moved(each, here, anchors) for name, each in inner.items()}
        elif word == "$ref" and isinstance(inner, str):
            kept[word] = anchors.get(inner, here + inner[1:])
        elif word not in _DROPPED:
            kept[word] = inner if word in _SAID else _moved(inner, here, anchors)
    return kept


def _anchors(node: JsonValue, here: str) -> dict[str, str]:
    """Where the named places of a schema stand."""
    found: dict[str, str] = {}
    waiting: list[tuple[str, JsonValue]] = [(here, node)]
    while waiting:
        place, inner = waiting.pop()
        if isinstance(inner, list):
            waiting += [(f"{place}/{n}", item) for n, item in enumerate(inner)]
        if not isinstance(inner, dict):
            continue
        for word, before in (("$anchor", "#"), ("$id", "")):
            if isinstance(name := inner.get(word), str):
                found[before + name] = place
        for word, below in inner.items():
            at = place + pointer_of([word])
            if word in _BY_NAME and isinstance(below, dict):
                waiting += [(at + pointer_of([name]), each) for name, each in below.items()]
            elif word not in _SAID:
                waiting.append((at, below))
    return found
