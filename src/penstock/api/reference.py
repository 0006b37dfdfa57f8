"""Describe every route for OpenAPI 3.1: parameters, bodies, answers, and what each needs.

Handlers check their own input with the one strict decoder, so what they take is written down here;
tests/api/test_reference.py compares this page with the routes and with real answers.
"""

from __future__ import annotations

import re
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from penstock.access.token import Scope
from penstock.api import trigger_reference, workflow_reference
from penstock.api.handlers import registry
from penstock.api.handlers.dead_letters import Redrive
from penstock.api.handlers.erasures import NewErasure
from penstock.api.handlers.schemas import NewSchema, ProposedSchema
from penstock.api.handlers.tokens import NewToken
from penstock.store.query import LIMIT_DEFAULT, LIMIT_MAX

ABOUT = "Publish, trust, query, replay and act on every change. Every route but / needs a token."
_PROBLEM = "#/components/schemas/Problem"
_LIMIT = f"page size, 1 to {LIMIT_MAX}, default {LIMIT_DEFAULT}"
_CURSOR = "page.nextCursor of the page before"
_UPCAST = "false shows payloads as they were stored, whatever became of their type"
_FILTERS = {
    "type": "exact type or glob (metastore.record.*, metastore.**); comma or repeat for several",
    "source": "exact source; comma or repeat for several",
    "severity": "critical, error, warning, info, debug; comma or repeat for several",
    "correlationId": "exact correlation id",
    "tag.{key}": "exact value of a tag; repeat with other keys to narrow down",
    "from": "earliest occurredAt, RFC 3339, inclusive",
    "to": "latest occurredAt, RFC 3339, inclusive",
}
_EVENTS = {
    **_FILTERS,
    "jsonPath": "SQL/JSON path on the payload",
    "asOf": "position or RFC 3339 instant: the log as it was then",
}
_LETTERS = {
    "reason": "rejection reason", "source": "what it says is its source", "type": "or its type",
    "via": "http, sdk, queue, import, redrive or system", "redriven": "true, false (default), any",
}  # fmt: skip

_PAST = {
    "tags": "key:value; by comma or repeated: events that carry them all",
    "tag.{key}": "the same for one key, for a value with a comma in it",
    "type": _FILTERS["type"], "correlationId": "instead of tags, or beside them",
    "reducer": "how events fold into a state; default last-write-wins",
}  # fmt: skip
_THEN = {"asOf": "a position or an instant: the registry as it was then"}
_SPAN = {
    "from": "position or RFC 3339 instant it starts after; default the beginning",
    "to": "position or instant, inclusive; default now",
}

PARAMETERS: dict[str, dict[str, str]] = {
    "GET /v1/state": {**_PAST, "asOf": "position or RFC 3339 instant; default now"},
    "GET /v1/state/diff": {**_PAST, **_SPAN},
    "GET /v1/replay": {
        **_PAST, **_SPAN, "eventId": "instead of tags: the history this event is part of",
        "limit": _LIMIT, "cursor": _CURSOR,
    },
    "GET /v1/events/stream": {
        **_FILTERS, "after": "position to resume after; 0 for everything", "upcast": _UPCAST,
    },
    "GET /admin/events": {**_EVENTS, "upcast": _UPCAST, "limit": _LIMIT, "cursor": _CURSOR},
    "GET /admin/events/facets": {
        **_EVENTS, "keys": "type, source, severity, tag, tag.<key>; comma or repeat for several",
        "limit": "how many values of each, default 20",
    },
    "GET /admin/events/histogram": {**_EVENTS, "buckets": "how many, 1 to 200, default 60"},
    "GET /admin/event-schemas": {
        "eventType": "one type", "status": "draft, active, deprecated; comma for several",
        "limit": _LIMIT, "offset": "how many to pass over",
        **_THEN,
    },
    "GET /admin/event-schemas/{event_type}": _THEN,
    "GET /admin/event-schemas/{event_type}/latest": _THEN,
    "GET /admin/event-schemas/{event_type}/{version}": _THEN,
    "GET /admin/events/{event_id}": {"upcast": _UPCAST, "asOf": _EVENTS["asOf"]},
    "GET /v1/audit/checkpoint": {"since": "size of an older checkpoint: proves it became this one"},
    "GET /subjects": {"subjectPrefix": "only subjects that begin so"},
    "POST /compatibility/subjects/{subject}/versions/{version}": {"verbose": "true says why not"},
    "GET /admin/dead-letters": {**_LETTERS, "limit": _LIMIT, "cursor": _CURSOR},
    "GET /admin/dead-letters/groups": _LETTERS,
    **workflow_reference.PARAMETERS,
    **trigger_reference.PARAMETERS,
}  # fmt: skip

_EVENT = {"$ref": "#/components/schemas/Event"}
_JSON = "application/json"
_PLACE = {"type": "string", "pattern": "^[0-9]{1,18}$"}
_QUERY = {
    "type": "object",
    "required": ["items"],
    "properties": {
        "items": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "types": {"type": "array", "items": {"type": "string"}},
                    "tags": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            },
        }
    },
}
BODIES: dict[str, dict[str, Any]] = {
    "POST /v1/events": {
        _JSON: {
            "oneOf": [
                _EVENT,
                {"type": "array", "items": _EVENT, "minItems": 1},
                {"type": "object", "properties": {"events": {"type": "array", "items": _EVENT}}},
            ]
        },
        "application/cloudevents+json": {"type": "object"},
        "application/cloudevents-batch+json": {"type": "array", "items": {"type": "object"}},
    },
    "POST /v1/append": {
        _JSON: {
            "type": "object",
            "required": ["events"],
            "properties": {
                "events": {"type": "array", "items": _EVENT, "minItems": 1, "maxItems": 1000},
                "condition": {
                    "type": "object",
                    "properties": {"query": _QUERY, "after": _PLACE, "failIfExists": _QUERY},
                },
            },
        }
    },
    "POST /v1/decide/read": {
        _JSON: {
            "type": "object",
            "required": ["query"],
            "properties": {"query": _QUERY, "limit": {"type": "integer"}, "from": _PLACE},
        }
    },
    "POST /admin/event-schemas": {_JSON: NewSchema.model_json_schema()},
    "POST /admin/event-schemas/check": {_JSON: ProposedSchema.model_json_schema()},
    "POST /subjects/{subject}": {registry.MEDIA: registry.GivenSchema.model_json_schema()},
    "POST /compatibility/subjects/{subject}/versions/{version}": {
        registry.MEDIA: registry.GivenSchema.model_json_schema()
    },
    "POST /admin/dead-letters/redrive": {_JSON: Redrive.model_json_schema()},
    "POST /admin/tokens": {_JSON: NewToken.model_json_schema()},
    "POST /admin/erasures": {_JSON: NewErasure.model_json_schema()},
    **workflow_reference.BODIES,
    **trigger_reference.BODIES,
}
ANSWERS: dict[str, dict[int, str]] = {
    "POST /v1/events": {202: "durable", 207: "some of the batch were refused: see each result"},
    "POST /v1/ws-tickets": {201: "a ticket for one WebSocket, good for 30 seconds"},
    "POST /admin/event-schemas": {201: "registered, now or before"},
    "POST /admin/tokens": {201: "made; the secret is shown this once"},
    "POST /admin/erasures": {201: "erased"},
    **workflow_reference.ANSWERS,
    **trigger_reference.ANSWERS,
}

_TOKEN = {"type": "http", "scheme": "bearer", "description": "`penstock token create` makes one."}
_TEXT = {"type": "string"}
COMPONENTS: dict[str, Any] = {
    "Problem": {
        "type": "object",
        "description": "RFC 9457. `code` never changes its meaning; `remedy` says what to do.",
        "required": ["type", "title", "status", "code", "detail", "remedy", "errors"],
        "properties": {
            "type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "code": _TEXT,
            "detail": _TEXT, "remedy": _TEXT, "instance": _TEXT, "deadLetterId": _TEXT,
            "errors": {
                "type": "array",
                "items": {"type": "object", "properties": {"pointer": _TEXT, "detail": _TEXT}},
            },
        },
    },
    "Event": {
        "type": "object",
        "required": ["type", "source"],
        "additionalProperties": False,
        "properties": {
            "id": {**_TEXT, "pattern": "^[A-Za-z0-9._:-]{1,128}$"}, "type": _TEXT, "source": _TEXT,
            "occurredAt": {**_TEXT, "format": "date-time"}, "payload": {},
            "tags": {"type": "object", "additionalProperties": _TEXT, "maxProperties": 64},
            "correlationId": _TEXT, "causationId": _TEXT, "traceparent": _TEXT,
            "ttl": {"type": "integer", "minimum": 1}, "metadata": {"type": "object"},
            "schemaVersion": {"type": "integer", "minimum": 1}, "tenantId": _TEXT,
        },
    },
}  # fmt: skip


def operation(method: str, path: str, about: str | None, needs: Scope | None) -> dict[str, Any]:
    """What FastAPI is told about one route."""
    key = f"{method} {path}"
    answers = ANSWERS.get(key, {200: "the answer"})
    first, *others = answers
    needed = f"the scope `{needs}`" if needs is not None else "any token"
    extra: dict[str, Any] = {
        "parameters": [*_path_parameters(path), *_query(key)],
        "security": [{"token": []}],
    }
    if key in ("POST /v1/events", "POST /v1/append"):
        extra["parameters"].append(_header("Idempotency-Key", "makes a repeat a duplicate"))
    if key in BODIES:
        content = {kind: {"schema": schema} for kind, schema in BODIES[key].items()}
        extra["requestBody"] = {"required": True, "content": content}
    problem = {"application/problem+json": {"schema": {"$ref": _PROBLEM}}}
    return {
        "summary": (about or "").partition("\n")[0],
        "description": f"Needs {needed}.",
        "status_code": first,
        "response_description": answers[first],
        "responses": {
            **{status: {"description": answers[status]} for status in others},
            "4XX": {"description": "refused", "content": problem},
            "5XX": {"description": "not stored, try again", "content": problem},
        },
        "openapi_extra": extra,
        "operation_id": re.sub(r"[^a-z]+", "_", f"{method.lower()} {path}").strip("_"),
    }


def complete(app: FastAPI) -> None:
    """Make the application describe itself with our components; worked out once."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes
            )
            schema["components"] = {"schemas": COMPONENTS, "securitySchemes": {"token": _TOKEN}}
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _TEXT}
        for name in re.findall(r"{(\w+)}", path)
    ]


def _query(key: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "description": about, "schema": _TEXT}
        for name, about in PARAMETERS.get(key, {}).items()
    ]


def _header(name: str, about: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": about, "schema": _TEXT}
