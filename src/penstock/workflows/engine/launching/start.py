"""Say what a run starts with, whoever starts it; and that its key is taken.

person, schedule, replay ──▶ Start ──┐
trigger ── Launch ──▶ Start ─────────┴──▶ one row in workflow_runs
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.base.clock import format_instant
from penstock.base.errors import PenstockError
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue, Stored
from penstock.triggers.delivery import Launch
from penstock.workflows.runkey import RunKey, fit_run_key

EVENTS_BYTES_MAX = 256 * 1024  # of a batch's events with their payloads; beyond, without


class RunKeyConflict(PenstockError):
    """An active run has this key already; `run_id` is that one."""

    code = "run_key_conflict"
    remedy = "Follow the run that has the key, wait for its end, or start one under another key."

    def __init__(self, run_key: str, run_id: str) -> None:
        super().__init__(f"expected no active run with key {run_key!r}, found {run_id}")
        self.run_id = run_id


class WorkflowDisabled(PenstockError):
    """A workflow that launches nothing at present."""

    code = "workflow_disabled"
    remedy = "Set its status to active: PATCH /workflows/{slug}."


@dataclass(frozen=True, slots=True)
class Start:
    """A run to be made."""

    run_id: str
    tenant_id: str
    workflow_slug: str
    parameters: JsonObject
    triggered_by: str
    key: RunKey | None = None
    trigger: JsonObject | None = None
    trigger_id: str | None = None
    partition_key: str | None = None
    correlation_id: str | None = None  # the run's own id when it is left out
    causation_id: str | None = None
    depth: int = 0
    replay_of: str | None = None
    version: int | None = None  # the newest when it is left out


def start_of(launch: Launch) -> Start:
    """The start that a trigger decided; TypeError when its parameters are no object."""
    parameters = launch.parameters if launch.parameters is not None else {}
    if not isinstance(parameters, dict):
        raise TypeError(f"expected parameters that are an object, found {_kind(parameters)}")
    return Start(
        run_id=launch.run_id,
        tenant_id=launch.tenant_id,
        workflow_slug=launch.workflow_slug,
        parameters=parameters,
        triggered_by="event-trigger",
        key=fit_run_key(launch.run_key),
        trigger=_trigger(launch),
        trigger_id=launch.trigger.id,
        partition_key=launch.partition_key,
        correlation_id=launch.correlation_id,
        causation_id=launch.causation_id,
        depth=launch.depth,
    )


def _trigger(launch: Launch) -> JsonObject:
    """What the run can read under `trigger`: the event, and of a batch all events."""
    found: JsonObject = {
        "type": "event",
        "event": _event(launch.events[-1]),
        "triggerId": launch.trigger.id,
        "triggerName": launch.trigger.spec.name,
        "triggerVersion": launch.trigger.version,
        "dedupeKey": launch.dedupe_key,
        "deliveryId": launch.delivery_id,
    }
    if len(launch.delivery_ids) > 1:
        events: list[JsonValue] = [_event(each) for each in launch.events]
        if len(encode(events)) > EVENTS_BYTES_MAX:
            events = [_event(each, with_payload=False) for each in launch.events]
        found |= {"deliveryIds": list(launch.delivery_ids), "events": events}
    return found


def _event(stored: Stored, *, with_payload: bool = True) -> JsonObject:
    envelope = stored.envelope
    found: JsonObject = {
        "id": envelope.id,
        "type": envelope.type,
        "source": envelope.source,
        "occurredAt": format_instant(envelope.occurred_at),
        "correlationId": envelope.correlation_id,
        "position": str(stored.position),
    }
    if with_payload:
        found |= {"payload": envelope.payload, "metadata": dict(envelope.metadata)}
    return found


def _kind(value: JsonValue) -> str:
    return {"list": "a list", "str": "text", "bool": "a boolean"}.get(
        type(value).__name__, "a number"
    )
