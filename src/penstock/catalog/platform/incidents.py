"""Declare what Penstock itself tells of trouble: a loop that was stopped."""

from __future__ import annotations

from penstock.catalog.platform.fields import Count, Name
from penstock.envelope.envelope import Severity
from penstock.registry.declare import EventType, Payload


class LoopStopped(Payload):
    """The loop guard stopped a trigger whose runs kept causing the events that start it."""

    trigger_id: Name
    """The trigger that was stopped in this correlation."""
    trigger_version: Count | None = None
    """The version of it that judged."""
    workflow_slug: str | None = None
    """The workflow it would have started."""
    correlation_id: str | None = None
    """The correlation that went round."""
    event_id: str | None = None
    """The event that was not acted on, the first of them."""
    position: str | None = None
    """Where that event is in the log."""
    depth: Count | None = None
    """How many causes it has, one behind the other."""
    launches: Count | None = None
    """How often the trigger had launched in the correlation."""
    limit: str | None = None
    """Which limit it met: depth or launches."""


EVENTS = (
    EventType(
        "penstock.loop.stopped",
        LoopStopped,
        sources=("penstock.worker",),
        severity=Severity.ERROR,
        example={
            "triggerId": "0197a3c2-5a00-7000-8000-00000000000a",
            "triggerVersion": 2,
            "workflowSlug": "ship-order",
            "correlationId": "order-12",
            "eventId": "evt-117",
            "position": "1042",
            "depth": 17,
            "launches": 16,
            "limit": "depth",
        },
    ),
)
