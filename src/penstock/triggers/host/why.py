"""Say why an event did, or did not, start something at a trigger.

    a delivery ──▶ what it came to, in every pass
    none       ──▶ not wanted · filtered, worked out from the version that was in force in the
                   pass that judged the event: the verdict that the pass reached

Pure: the same facts give the same answer, whether they were kept or worked out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from penstock.envelope.envelope import Stored
from penstock.store.view import is_expired
from penstock.triggers.compiled import CompiledTrigger
from penstock.triggers.delivery import Delivery, Held, HistoryEntry
from penstock.triggers.explain import Explanation
from penstock.triggers.predicate import document_of
from penstock.triggers.words import Reason, RetryState, Stage, Status

UNWANTED: Final = "unwanted"
FILTERED: Final = "filtered"
NOT_DEFINED: Final = "not_defined"  # the trigger was made after the event was judged
_BEFORE_PREDICATES: Final = frozenset({Stage.SOURCE, Stage.EXPIRED, Stage.PAUSED})


def of_delivery(
    compiled: CompiledTrigger, stored: Stored, delivery: Delivery, history: Sequence[HistoryEntry]
) -> Explanation:
    """Why a delivery is what it is; `compiled` is the version that judged it last."""
    was_reached = delivery.stage not in _BEFORE_PREDICATES
    return Explanation(
        trigger_id=delivery.trigger_id,
        trigger_version=delivery.trigger_version,
        event_id=stored.envelope.id,
        event_position=stored.position,
        stage=delivery.stage,
        verdict=delivery.status,
        reason=delivery.reason,
        judged_at=delivery.updated_at,
        predicates=compiled.predicates.trace(document_of(stored)) if was_reached else None,
        delivery_id=delivery.id,
        run_id=delivery.run_id,
        history=tuple(history),
    )


def of_held(trigger_id: str, version: int, stored: Stored, held: Held) -> Explanation:
    """Why no trigger has seen the event: its source waits, or an operator took it out."""
    is_cancelled = held.retry_state is RetryState.CANCELLED
    return Explanation(
        trigger_id=trigger_id,
        trigger_version=version,
        event_id=stored.envelope.id,
        event_position=stored.position,
        stage=Stage.SOURCE,
        verdict=Status.SKIPPED if is_cancelled else Status.PENDING,
        reason=Reason.CANCELLED_BY_OPERATOR if is_cancelled else held.reason,
        judged_at=None,
    )


def of_nothing(
    trigger_id: str, compiled: CompiledTrigger | None, stored: Stored, judged_at: datetime | None
) -> Explanation | None:
    """Why there is no delivery; None when there should be one.

    `compiled` is the version that was in force, None when there was none; `judged_at` the instant
    of the pass that judged the event, None when no pass has come to it yet.
    """
    stage, verdict, reason = None, UNWANTED, None
    predicates = None
    if compiled is None:
        reason = NOT_DEFINED
    elif judged_at is None:
        verdict = Status.PENDING
    elif not compiled.wants(stored.envelope.type, stored.envelope.source):
        pass
    elif is_expired(stored.envelope, judged_at):
        return None
    else:
        predicates = compiled.predicates.trace(document_of(stored))
        if predicates.outcome:
            return None
        stage, verdict, reason = Stage.PREDICATES, FILTERED, Reason.FILTERED
    return Explanation(
        trigger_id=trigger_id,
        trigger_version=0 if compiled is None else compiled.trigger.version,
        event_id=stored.envelope.id,
        event_position=stored.position,
        stage=stage,
        verdict=verdict,
        reason=reason,
        judged_at=judged_at,
        predicates=predicates,
    )
