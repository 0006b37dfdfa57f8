"""Stop an event that a trigger has, in the end, caused itself.

Two signs: too many causes, one behind the other; or too many launches of one trigger in one
correlation. Either ends the delivery as `skipped`, reason `loop`. The first time in a correlation,
an incident is told; its id is derived, so telling it twice tells it once.
"""

from __future__ import annotations

from penstock.base.ids import derived_id
from penstock.triggers.ongoing import Case, Ongoing
from penstock.triggers.result import LoopStopped
from penstock.triggers.words import Reason, Stage, Status


def depth_of(p: Ongoing, case: Case) -> int:
    """How many causes the event has; none are looked for when it names none."""
    stored = case.sight.stored
    return 0 if stored.envelope.causation_id is None else p.past.depth_of(stored)


def stop_loop(p: Ongoing, case: Case) -> bool:
    """Whether the guard ended the delivery."""
    envelope, guard = case.sight.stored.envelope, p.limits.loops
    if envelope.causation_id is None and envelope.correlation_id is None:
        return False
    trigger_id, correlation = case.compiled.trigger.id, envelope.correlation_id
    depth, launches = depth_of(p, case), 0
    if correlation is not None:
        launches = p.launches_in(trigger_id, correlation, shadow=case.shadow)
    if depth <= guard.depth_max and launches < guard.launches_max:
        return False
    limit = "depth" if depth > guard.depth_max else "launches"
    p.settle(
        case, Status.SKIPPED, Stage.LOOP, Reason.LOOP,
        retry_metadata={"limit": limit, "depth": depth, "launches": launches},
    )  # fmt: skip
    _tell(p, case, limit, depth, launches)
    return True


def _tell(p: Ongoing, case: Case, limit: str, depth: int, launches: int) -> None:
    stored, trigger = case.sight.stored, case.compiled.trigger
    envelope = stored.envelope
    correlation = envelope.correlation_id or envelope.id
    if (trigger.id, correlation) in p.told or p.past.is_loop_told(trigger.id, correlation):
        return
    p.told.add((trigger.id, correlation))
    at_ms = int(stored.received_at.timestamp() * 1000)
    p.incidents.append(
        LoopStopped(
            event_id=derived_id(at_ms, "loop", trigger.id, correlation),
            tenant_id=trigger.tenant_id,
            trigger_id=trigger.id,
            trigger_version=trigger.version,
            workflow_slug=trigger.workflow_slug,
            correlation_id=correlation,
            stopped_event_id=envelope.id,
            position=stored.position,
            depth=depth,
            launches=launches,
            limit=limit,
            stopped_at=p.at,
        )
    )
