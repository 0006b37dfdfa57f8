"""Tell of a loop that the guard has stopped, as an event in the log it was found in."""

from __future__ import annotations

from typing import Final

from penstock.base.clock import format_instant
from penstock.envelope.envelope import JsonObject
from penstock.triggers.result import LoopStopped

LOOP_STOPPED: Final = "penstock.loop.stopped"
SOURCE: Final = "penstock.worker"


def incident_event(loop: LoopStopped) -> JsonObject:
    """The event in wire form. Its id is derived, so that telling it twice tells it once."""
    return {
        "id": loop.event_id,
        "type": LOOP_STOPPED,
        "source": SOURCE,
        "occurredAt": format_instant(loop.stopped_at),
        "tenantId": loop.tenant_id,
        "correlationId": loop.correlation_id,
        "causationId": loop.stopped_event_id,
        "payload": {
            "triggerId": loop.trigger_id,
            "triggerVersion": loop.trigger_version,
            "workflowSlug": loop.workflow_slug,
            "correlationId": loop.correlation_id,
            "eventId": loop.stopped_event_id,
            "position": str(loop.position),
            "depth": loop.depth,
            "launches": loop.launches,
            "limit": loop.limit,
        },
    }
