"""Describe the routes of triggers for OpenAPI: parameters, bodies and answers."""

from __future__ import annotations

from typing import Any

from penstock.api.handlers.backtest import Backtesting, Previewing
from penstock.api.handlers.pauses import Pausing, Resuming, Retrying
from penstock.api.versions import MERGE_PATCH
from penstock.triggers.trigger import TriggerSpec

_JSON = "application/json"
_FILTERS = {
    "status": "active, shadow, disabled; by comma or repeated",
    "eventType": "exactly this type, or this glob",
    "eventSource": "exactly this source",
    "asOf": "a position or an instant: the triggers as they were defined then",
}
_ONE = "/workflows/{slug}/triggers/{trigger_id}"

PARAMETERS: dict[str, dict[str, str]] = {
    "GET /workflows/{slug}/triggers": _FILTERS,
    "GET /v1/triggers": {"workflow": "the slug of one workflow", **_FILTERS},
    f"GET {_ONE}/deliveries": {
        "limit": "how many, 1 to 200, default 50",
        "status": "pending, matched, throttled, skipped, launched, failed or dead",
        "eventId": "of this event",
        "dedupeKey": "with this idempotency key",
        "before": "of events before this position, to turn pages",
    },
    "GET /v1/triggers/{trigger_id}/explain": {
        "event": "the id of the event",
        "recompute": "true runs the recorded passes again instead of reading what they left",
    },
}


def _trigger(*, partly: bool) -> dict[str, Any]:
    """The shape of a trigger in a body, with the sample beside it."""
    shape: dict[str, Any] = TriggerSpec.model_json_schema(by_alias=True)
    shape["properties"] = {
        **shape["properties"],
        "sampleEvent": {"type": "object", "description": "tried strictly, and not kept"},
    }
    if partly:
        shape.pop("required", None)
    return inlined(shape)


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without definitions of its own: a trigger's clauses nest, and are cut there."""
    kinds = schema.pop("$defs", {})

    def walk(node: Any, inside: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [walk(each, inside) for each in node]
        if not isinstance(node, dict):
            return node
        name = str(node.get("$ref", "")).rpartition("/")[2]
        if name:
            return {"type": "object"} if name in inside else walk(kinds[name], (*inside, name))
        return {key: walk(value, inside) for key, value in node.items() if key != "discriminator"}

    plain: dict[str, Any] = walk(schema, ())
    return plain


_PAUSE, _RESUME, _RETRY = (
    {_JSON: model.model_json_schema()} for model in (Pausing, Resuming, Retrying)
)
BODIES: dict[str, dict[str, Any]] = {
    "POST /workflows/{slug}/triggers": {_JSON: _trigger(partly=False)},
    f"PATCH {_ONE}": {_JSON: _trigger(partly=True), MERGE_PATCH: _trigger(partly=True)},
    "POST /v1/triggers/backtest": {_JSON: inlined(Backtesting.model_json_schema())},
    "POST /v1/triggers/preview": {_JSON: inlined(Previewing.model_json_schema())},
    "POST /admin/triggers/{trigger_id}/pause": _PAUSE,
    "POST /admin/triggers/{trigger_id}/resume": _RESUME,
    "POST /admin/sources/{source}/pause": _PAUSE,
    "POST /admin/sources/{source}/resume": _RESUME,
    "POST /admin/retries/events/{event_id}/cancel": _RETRY,
    "POST /admin/retries/events/{event_id}/force": _RETRY,
    "POST /admin/retries/deliveries/{delivery_id}/cancel": _RETRY,
    "POST /admin/retries/deliveries/{delivery_id}/force": _RETRY,
}
ANSWERS: dict[str, dict[int, str]] = {
    "POST /workflows/{slug}/triggers": {201: "made; ETag is its version"},
    f"PATCH {_ONE}": {200: "what it says now", 412: "If-Match names a version that is past"},
    f"DELETE {_ONE}": {204: "gone", 412: "If-Match names a version that is past"},
    "POST /admin/retries/events/{event_id}/force": {202: "judged by the next pass"},
    "POST /admin/retries/deliveries/{delivery_id}/force": {202: "attempted by the next pass"},
}
