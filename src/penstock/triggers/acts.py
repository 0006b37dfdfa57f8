"""Carry out what operators want, at the beginning of a pass.

    trigger    pause · resume (or resume and skip) · skip what waits
    source     pause · resume (or resume and skip)
    delivery   cancel · force
    event      cancel · force, while its source holds it back

Force passes pauses, windows and timers, but neither the loop guard nor an idempotency key nor the
limit of concurrent runs. An act that finds nothing to act on changes nothing and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from penstock.base.clock import format_instant
from penstock.triggers import breaker
from penstock.triggers.delivery import Act, ActOutcome, Delivery, Held, Pause, SourcePause
from penstock.triggers.ongoing import Ongoing
from penstock.triggers.sources import drop, set_source_pause
from penstock.triggers.state import SourceState
from penstock.triggers.waiting import TriggerState
from penstock.triggers.words import FORCED_AT, ActKind, Reason, RetryState, Stage, Target

_BY_OPERATOR = "paused_by_operator"


def carry_out(p: Ongoing, act: Act) -> ActOutcome:
    """What became of an act."""
    does = _TABLE.get((act.target, act.kind))
    if does is None:
        return ActOutcome(act.id, is_done=False, detail=f"a {act.target} cannot {act.kind}")
    fault = does(p, act)
    return ActOutcome(act.id, is_done=fault is None, detail=fault or "done")


def _pause_trigger(p: Ongoing, act: Act) -> str | None:
    compiled = p.inputs.roster.get(act.target_id)
    if compiled is None or compiled.trigger.tenant_id != act.tenant_id:
        return "no active trigger by that id"
    if act.until is not None and act.until <= p.at:
        return "expected an instant in the future"
    pause = Pause(act.target_id, p.at, act.until, act.reason or _BY_OPERATOR, by=act.by)
    breaker.set_pause(p, p.state.of(act.target_id), pause)
    return None


def _resume_trigger(p: Ongoing, act: Act) -> str | None:
    state = _trigger(p, act)
    if state is None or (state.pause is None and not state.parked):
        return "the trigger is not paused"
    if act.skip:
        _skip(p, act, state)
    if state.failures:
        state.failures = []
        p.failures.add(state.trigger_id)
    if state.pause is not None:
        breaker.set_pause(p, state, None)
    return None


def _skip_waiting(p: Ongoing, act: Act) -> str | None:
    state = _trigger(p, act)
    if state is None or not _skip(p, act, state):
        return "nothing waits at the trigger"
    return None


def _skip(p: Ongoing, act: Act, state: TriggerState) -> int:
    """Skip what waits because of a pause; how many that were."""
    parked = [state.waiting[name] for _, name in state.parked]
    parked = [d for d in parked if d.stage is Stage.PAUSED]
    for delivery in parked:
        p.finish(
            state, delivery, Reason.SKIPPED_BY_OPERATOR, retry_state=RetryState.CANCELLED,
            metadata={"skippedBy": act.by},
        )  # fmt: skip
    return len(parked)


def _trigger(p: Ongoing, act: Act) -> TriggerState | None:
    compiled = p.inputs.roster.get(act.target_id)
    if compiled is None or compiled.trigger.tenant_id != act.tenant_id:
        return None
    return p.state.triggers.get(act.target_id)


def _pause_source(p: Ongoing, act: Act) -> str | None:
    if act.until is not None and act.until <= p.at:
        return "expected an instant in the future"
    name = (act.tenant_id, act.target_id)
    reason = act.reason or _BY_OPERATOR
    set_source_pause(p, name, SourcePause(*name, p.at, act.until, reason, by=act.by))
    return None


def _resume_source(p: Ongoing, act: Act) -> str | None:
    name = (act.tenant_id, act.target_id)
    source = p.state.sources.get(name)
    if source is None or (source.pause is None and not source.held):
        return "the source is not paused"
    if source.pause is not None:
        set_source_pause(p, name, None)
    if act.skip:
        for held in list(source.held.values()):
            drop(p, source, held, act.by)
    return None


def _cancel_delivery(p: Ongoing, act: Act) -> str | None:
    found = _delivery(p, act)
    if found is None:
        return "no waiting delivery by that id"
    state, delivery = found
    batch = state.batch_of(delivery)
    p.finish(
        state, delivery, Reason.CANCELLED_BY_OPERATOR, retry_state=RetryState.CANCELLED,
        metadata={"cancelledBy": act.by, "cancelledAt": format_instant(p.at)},
    )  # fmt: skip
    if batch is not None and batch.lead == delivery.id and batch.members:
        _hand_over(p, state, delivery, state.waiting[batch.members[-1][1]])
    return None


def _hand_over(p: Ongoing, state: TriggerState, lead: Delivery, heir: Delivery) -> None:
    """Let another member of a closed batch wait as its triggering one did."""
    p.keep(
        state,
        replace(
            heir, status=lead.status, stage=lead.stage, reason=lead.reason, attempts=lead.attempts,
            last_error=lead.last_error, next_attempt_at=lead.next_attempt_at,
            throttled_until=lead.throttled_until, retry_attempts=lead.retry_attempts,
            updated_at=p.at, last_pass=p.number,
        ),
    )  # fmt: skip


def _force_delivery(p: Ongoing, act: Act) -> str | None:
    found = _delivery(p, act)
    if found is None:
        return "no waiting delivery by that id"
    state, delivery = found
    said = {"forcedBy": act.by, FORCED_AT: format_instant(p.at)}
    batch = state.batch_of(delivery)
    if batch is not None and batch.lead is None:  # an open batch closes now, as if it had timed out
        for _, name in list(batch.members):
            member = state.waiting[name]
            p.keep(state, replace(_touched(p, member), next_attempt_at=p.at))
        delivery = state.waiting[delivery.id]
        p.keep(state, replace(delivery, retry_metadata={**delivery.retry_metadata, **said}))
        return None
    if batch is not None and batch.lead is not None:
        delivery = state.waiting[batch.lead]
    p.keep(
        state,
        replace(
            _touched(p, delivery),
            reason=Reason.FORCED,
            next_attempt_at=p.at,
            retry_metadata={**delivery.retry_metadata, **said},
        ),
    )
    return None


def _touched(p: Ongoing, delivery: Delivery) -> Delivery:
    return replace(delivery, updated_at=p.at, last_pass=p.number)


def _delivery(p: Ongoing, act: Act) -> tuple[TriggerState, Delivery] | None:
    for state in p.state.triggers.values():
        delivery = state.waiting.get(act.target_id)
        if delivery is not None and delivery.tenant_id == act.tenant_id:
            return state, delivery
    return None


def _cancel_event(p: Ongoing, act: Act) -> str | None:
    found = _held(p, act)
    if found is None:
        return "no held event by that id"
    drop(p, *found, act.by)
    return None


def _force_event(p: Ongoing, act: Act) -> str | None:
    found = _held(p, act)
    if found is None:
        return "no held event by that id"
    source, held = found
    said = {**held.metadata, "forcedBy": act.by, FORCED_AT: format_instant(p.at)}
    forced = replace(held, metadata=said, next_attempt_at=p.at)
    source.hold(forced)
    p.held[held.position] = forced
    return None


def _held(p: Ongoing, act: Act) -> tuple[SourceState, Held] | None:
    for name, source in p.state.sources.items():
        if name[0] == act.tenant_id:
            for held in source.held.values():
                if held.event_id == act.target_id:
                    return source, held
    return None


_TABLE: dict[tuple[Target, ActKind], Callable[[Ongoing, Act], str | None]] = {
    (Target.TRIGGER, ActKind.PAUSE): _pause_trigger,
    (Target.TRIGGER, ActKind.RESUME): _resume_trigger,
    (Target.TRIGGER, ActKind.SKIP): _skip_waiting,
    (Target.SOURCE, ActKind.PAUSE): _pause_source,
    (Target.SOURCE, ActKind.RESUME): _resume_source,
    (Target.DELIVERY, ActKind.CANCEL): _cancel_delivery,
    (Target.DELIVERY, ActKind.FORCE): _force_delivery,
    (Target.EVENT, ActKind.CANCEL): _cancel_event,
    (Target.EVENT, ActKind.FORCE): _force_event,
}
