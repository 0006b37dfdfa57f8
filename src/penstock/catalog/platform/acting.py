"""Declare what operators do with triggers, workflows and all that belongs to them.

    somebody calls a mutating route ──▶ penstock.<what>.<done>, in the log it is about

What is required is the name of the thing.
"""

from __future__ import annotations

from typing import Literal

from penstock.catalog.platform.fields import Count, Instant, Name
from penstock.envelope.envelope import Severity
from penstock.registry.declare import EventType, P, Payload

_API = ("penstock.api",)


class _Act(Payload):
    """Something that somebody did."""

    actor: str | None = None
    """The name of the token that did it."""
    actor_token_id: str | None = None
    """The id of that token."""
    reason: str | None = None
    """Why, in their words."""


class _TriggerAct(_Act):
    """Something that was done to a trigger."""

    trigger_id: Name
    """The trigger."""
    workflow_slug: Name | None = None
    """The workflow it starts."""
    name: str | None = None
    """What it is called."""
    version: Count | None = None
    """Its version after the act."""
    status: str | None = None
    """active, shadow or disabled."""


class TriggerCreated(_TriggerAct):
    """A trigger was made."""


class TriggerUpdated(_TriggerAct):
    """A trigger has a new version."""

    changed: list[str] | None = None
    """The fields that say something else than before."""


class TriggerDeleted(_TriggerAct):
    """A trigger was taken away; its versions and deliveries stay."""


class TriggerPaused(_TriggerAct):
    """A trigger was told to wait; its events are judged when it goes on."""

    until: Instant | None = None
    """When it goes on by itself; otherwise somebody resumes it."""


class TriggerResumed(_TriggerAct):
    """A trigger was told to go on."""

    skip: bool | None = None
    """Whether what had waited was dropped."""


class _SourceAct(_Act):
    """Something that was done to a source."""

    source: Name
    """The source, as its events name it."""


class SourcePaused(_SourceAct):
    """Events of a source were told to wait before any trigger sees them."""

    until: Instant | None = None
    """When they go on by themselves; otherwise somebody resumes the source."""


class SourceResumed(_SourceAct):
    """Events of a source were told to go on."""

    skip: bool | None = None
    """Whether what had waited was dropped."""


class _RetryAct(_Act):
    """Something that was done to a retry."""

    target: Literal["events", "deliveries", "workflow-steps"]
    """What kind of thing waits for another attempt, as the route says it."""
    target_id: Name
    """The id of the one that was meant."""
    trigger_id: str | None = None
    """The trigger of a delivery."""
    event_id: str | None = None
    """The event of a delivery."""
    workflow_run_id: str | None = None
    """The run of a step."""


class RetryCancelled(_RetryAct):
    """A retry was called off."""


class RetryForced(_RetryAct):
    """A retry was brought forward to now."""


class _WorkflowAct(_Act):
    """Something that was done to a workflow."""

    workflow_slug: Name
    """The workflow's name in addresses."""
    workflow_definition_id: str | None = None
    """The workflow's id."""
    name: str | None = None
    """The workflow's name for people."""
    version: Count | None = None
    """Its version after the act."""
    status: str | None = None
    """active or disabled."""


class WorkflowCreated(_WorkflowAct):
    """A workflow was made."""


class WorkflowUpdated(_WorkflowAct):
    """A workflow was changed, switched on or switched off."""


class WorkflowDeleted(_WorkflowAct):
    """A workflow was taken away; its versions and runs stay."""


class _RunAct(_Act):
    """Something that was done to a run."""

    workflow_run_id: Name
    """The run."""
    workflow_slug: str | None = None
    """The workflow it is a run of."""
    run_key: str | None = None
    """The key under which it counts once."""


class RunStarted(_RunAct):
    """Somebody started a run."""


class RunCancelled(_RunAct):
    """Somebody called a run off."""


class RunReplayed(_RunAct):
    """Somebody ran the same again."""

    replay_of: str | None = None
    """The run that it repeats."""


class _ScheduleAct(_Act):
    """Something that was done to a schedule."""

    schedule_id: Name
    """The schedule."""
    workflow_slug: str | None = None
    """The workflow it starts."""
    name: str | None = None
    """What it is called."""
    version: Count | None = None
    """Its version after the act."""


class ScheduleCreated(_ScheduleAct):
    """A schedule was made."""


class ScheduleUpdated(_ScheduleAct):
    """A schedule was changed, switched on or switched off."""


class ScheduleDeleted(_ScheduleAct):
    """A schedule was taken away."""


class _ServiceAct(_Act):
    """Something that was done to a service."""

    service_slug: Name
    """The service."""
    base_url: str | None = None
    """Where it answers."""
    kind: str | None = None
    """What kind of service it is."""
    status: str | None = None
    """How it is: unknown, healthy, degraded or unreachable."""


class ServiceRegistered(_ServiceAct):
    """A service that steps may call was registered."""


class ServiceUpdated(_ServiceAct):
    """A service that steps may call was changed."""


class ServiceDeleted(_ServiceAct):
    """A service was taken away; steps can call it no longer."""


_BY = {"actor": "ana", "actorTokenId": "0197a3c2-5a00-7000-8000-000000000001"}
_TRIGGER = {"triggerId": "0197a3c2-5a00-7000-8000-00000000000a", "workflowSlug": "ship-order"}
_MADE: dict[str, object] = {
    **_TRIGGER, "name": "ship what is paid", "version": 2, "status": "active",
}  # fmt: skip
_UNTIL = "2026-03-01T11:30:00.000Z"
_RETRY: dict[str, object] = {
    "target": "deliveries", "targetId": "0197a3c2-5a00-7000-8000-00000000000b",
    "triggerId": _TRIGGER["triggerId"], "eventId": "evt-001",
}  # fmt: skip
_WORKFLOW: dict[str, object] = {
    "workflowSlug": "ship-order", "name": "Ship an order", "version": 3, "status": "active",
}  # fmt: skip
_RUN: dict[str, object] = {"workflowRunId": "run-42", "workflowSlug": "ship-order"}
_SCHEDULE: dict[str, object] = {
    "scheduleId": "0197a3c2-5a00-7000-8000-00000000000c", "workflowSlug": "ship-order",
    "name": "nightly", "version": 1,
}  # fmt: skip
_SERVICE: dict[str, object] = {"serviceSlug": "billing", "baseUrl": "https://billing.example"}
_RUN_LINKS = {"workflowRunIds": "/workflowRunId"}


def _act(name: str, payload: type[P], example: dict[str, object]) -> EventType[P]:
    """The type of an act of ours. Calling something off is a decision, not a failure."""
    return EventType(
        f"penstock.{name}", payload, sources=_API, example={**example, **_BY},
        severity=Severity.INFO if name.endswith(".cancelled") else None,
        links=_RUN_LINKS if name.startswith("run.") else {},
    )  # fmt: skip


EVENTS = (
    _act("trigger.created", TriggerCreated, _MADE),
    _act("trigger.updated", TriggerUpdated, {**_MADE, "changed": ["predicates"]}),
    _act("trigger.deleted", TriggerDeleted, _MADE),
    _act("trigger.paused", TriggerPaused, {**_TRIGGER, "until": _UNTIL, "reason": "a migration"}),
    _act("trigger.resumed", TriggerResumed, {**_TRIGGER, "skip": False}),
    _act("source.paused", SourcePaused, {"source": "metastore.api", "until": _UNTIL}),
    _act("source.resumed", SourceResumed, {"source": "metastore.api", "skip": False}),
    _act("retry.cancelled", RetryCancelled, _RETRY),
    _act("retry.forced", RetryForced, _RETRY),
    _act("workflow.created", WorkflowCreated, _WORKFLOW),
    _act("workflow.updated", WorkflowUpdated, _WORKFLOW),
    _act("workflow.deleted", WorkflowDeleted, _WORKFLOW),
    _act("run.started", RunStarted, {**_RUN, "runKey": "order-12"}),
    _act("run.cancelled", RunCancelled, _RUN),
    _act("run.replayed", RunReplayed, {**_RUN, "replayOf": "run-41"}),
    _act("schedule.created", ScheduleCreated, _SCHEDULE),
    _act("schedule.updated", ScheduleUpdated, _SCHEDULE),
    _act("schedule.deleted", ScheduleDeleted, _SCHEDULE),
    _act("service.registered", ServiceRegistered, _SERVICE),
    _act("service.updated", ServiceUpdated, _SERVICE),
    _act("service.deleted", ServiceDeleted, _SERVICE),
)
