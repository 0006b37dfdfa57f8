"""Describe the routes of workflows for OpenAPI: parameters, bodies and answers.

`reference` joins this page with its own; tests/api/test_reference.py compares both with the routes.
"""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from penstock.api.asking import RANGE_DEFAULT, RANGES
from penstock.api.handlers import run_figures, runs, traces
from penstock.api.handlers.callbacks import Said
from penstock.api.handlers.services import NewService
from penstock.api.handlers.workflows import NewRun
from penstock.api.versions import MERGE_PATCH
from penstock.workflows.definition import WorkflowDefinition
from penstock.workflows.forms import Form
from penstock.workflows.schedule import ScheduleSpec

_JSON = "application/json"
_SPAN = {
    "range": f"{', '.join(RANGES)}; default {RANGE_DEFAULT}, counted back from `to`",
    "from": "RFC 3339, instead of range", "to": "RFC 3339; default now",
}  # fmt: skip
_PAST = "If-Match names a version that is past"
_STATUS = "pending, running, succeeded, failed, canceled; comma or repeat for several"

_EVENTS = f"events at most, default {traces.EVENTS_DEFAULT}, up to {traces.EVENTS_MAX}"

PARAMETERS: dict[str, dict[str, str]] = {
    "GET /v1/traces": {"correlationId": "required", "limit": _EVENTS},
    "GET /v1/traces/{correlation_id}": {"limit": _EVENTS},
    "GET /workflows": {"status": "active or disabled; default both"},
    "GET /workflows/{slug}": {"version": "show this one; default the newest"},
    "GET /workflows/{slug}/stats": _SPAN,
    "GET /workflows/{slug}/run-metrics": {
        **_SPAN, "buckets": f"at most so many, default {run_figures.BUCKETS_DEFAULT}, up to 200",
    },
    "GET /workflows/{slug}/timeline": {
        **_SPAN, "status": "of a run, a delivery, or a category of the scheduler; several",
        "limit": "1 to 200, default 200",
    },
    "GET /workflow-schedules": {"workflow": "only of this workflow"},
    "GET /workflow-runs": {
        "workflow": "only of this workflow", "status": _STATUS, "from": "earliest createdAt",
        "to": "latest createdAt", "limit": f"1 to 200, default {runs.LIMIT_DEFAULT}",
        "cursor": "page.nextCursor of the page before",
    },
    "GET /workflow-runs/{run_id}/history": {
        "limit": f"1 to {runs.HISTORY_MAX}, default {runs.HISTORY_DEFAULT}",
        "cursor": "page.nextCursor of the page before",
    },
    "GET /workflow-runs/{run_id}/diff": {"compareTo": "the id of another run"},
}  # fmt: skip


def _partly(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a change: every field may be left out, and null takes one away."""
    properties = {
        name: {"anyOf": [each, {"type": "null"}]} for name, each in schema["properties"].items()
    }
    rest = {name: value for name, value in schema.items() if name != "required"}
    rest["$id"] = f"{schema['$id']}:change"
    return {**rest, "properties": properties, "minProperties": 1}


def _with_status(schema: dict[str, Any]) -> dict[str, Any]:
    status = {"enum": ["active", "disabled"]}
    return {**schema, "properties": {**schema["properties"], "status": status}}


class _Schemas(GenerateJsonSchema):
    """Schemas of forms; a field that takes any JSON has a check instead of a type."""

    def function_plain_schema(
        self,
        schema: core_schema.PlainValidatorFunctionSchema,  # noqa: ARG002  pydantic gives it
    ) -> JsonSchemaValue:
        return {}


def _schema(form: type[Form]) -> dict[str, Any]:
    """The schema of a form, a resource of its own so that its references stay within it."""
    described = form.model_json_schema(schema_generator=_Schemas)
    return {"$id": f"urn:penstock:form:{form.__name__}", **described}


_WORKFLOW = _with_status(_schema(WorkflowDefinition))
_SCHEDULE = _schema(ScheduleSpec)

BODIES: dict[str, dict[str, Any]] = {
    "POST /v1/workflow-callbacks/{message_id}": {_JSON: _schema(Said)},
    "POST /workflows": {_JSON: _WORKFLOW},
    "PATCH /workflows/{slug}": dict.fromkeys((_JSON, MERGE_PATCH), _partly(_WORKFLOW)),
    "POST /workflows/{slug}/run": {_JSON: _schema(NewRun)},
    "POST /workflows/{slug}/schedules": {_JSON: _SCHEDULE},
    "PATCH /workflow-schedules/{schedule_id}": dict.fromkeys(
        (_JSON, MERGE_PATCH), _partly(_SCHEDULE)
    ),
    "PUT /workflow-services/{slug}": {_JSON: _schema(NewService)},
}
ANSWERS: dict[str, dict[int, str]] = {
    "POST /v1/workflow-callbacks/{message_id}": {202: "heard; the step goes on within seconds"},
    "POST /workflows": {201: "made; ETag is its version"},
    "PATCH /workflows/{slug}": {200: "what it says now", 412: _PAST},
    "DELETE /workflows/{slug}": {204: "gone; its versions and runs stay", 412: _PAST},
    "POST /workflows/{slug}/run": {202: "started; follow it under /workflow-runs/{id}"},
    "POST /workflows/{slug}/schedules": {201: "made; ETag is its version"},
    "PATCH /workflow-schedules/{schedule_id}": {200: "what it says now", 412: _PAST},
    "DELETE /workflow-schedules/{schedule_id}": {204: "gone", 412: _PAST},
    "PUT /workflow-services/{slug}": {200: "changed", 201: "registered"},
    "DELETE /workflow-services/{slug}": {204: "gone"},
    "POST /workflow-runs/{run_id}/replay": {202: "a new run was started"},
    "POST /admin/retries/workflow-steps/{step_id}/force": {202: "it is tried now"},
}
