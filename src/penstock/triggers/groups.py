"""Gather the events of a key: wait for quiet, collect a batch, keep only the latest.

    event      ─────────────────────────────▶ room? ──▶ launch
    debounce   the newest waits for quiet ──▶ room? ──▶ launch     older ones: superseded
    batch      full, or timed out ──────────▶ room? ──▶ launch     with all its events
    latest     no run of the key active ────▶ room? ──▶ launch     older ones: superseded

Room is asked for when a run would launch: it is runs that the throttle and the concurrency limit,
not the events that a group swallows.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from penstock.store.view import is_expired
from penstock.triggers.compiled import CompiledTrigger, Scope
from penstock.triggers.delivery import Delivery
from penstock.triggers.launching import attempt, fail
from penstock.triggers.ongoing import Case, Ongoing
from penstock.triggers.roster import Mode, mode_of
from penstock.triggers.template import TemplateFailed
from penstock.triggers.throttle import obstacle, turn_at
from penstock.triggers.waiting import Batch, TriggerState
from penstock.triggers.words import Reason, Stage, Status

_REASONS = {
    Stage.THROTTLE: Reason.THROTTLE_WINDOW,
    Stage.CONCURRENCY: Reason.MAX_CONCURRENCY,
}


def gather(p: Ongoing, case: Case) -> None:
    """Let an event that may launch join its group, or launch when it is alone."""
    mode = mode_of(case.compiled)
    if mode is Mode.EVENT:
        enter(p, case)
    elif mode is Mode.DEBOUNCE:
        _debounce(p, case)
    elif mode is Mode.BATCH:
        _collect(p, case)
    else:
        _keep_latest(p, case)


def enter(p: Ongoing, case: Case) -> None:
    """Launch when there is room and nobody is before it; else stand in line."""
    others = _others(p, case)
    stage = obstacle(p, case.compiled, case.state, is_forced=case.is_forced)
    is_behind = bool(case.state.line) and not case.is_head and not case.is_forced
    if stage is None and not is_behind:
        attempt(p, case, others)
        return
    turn = None if stage is Stage.CONCURRENCY else turn_at(p, case)
    reason = Reason.IN_ORDER if stage is None else _REASONS[stage]
    if stage is None:
        stage = Stage.CONCURRENCY if turn is None else Stage.THROTTLE
    p.settle(case, Status.THROTTLED, stage, reason, next_attempt_at=turn, throttled_until=turn)


def ripen(
    p: Ongoing,
    compiled: CompiledTrigger,
    state: TriggerState,
    batch: Batch,
    *,
    is_head: bool = False,
    is_forced: bool = False,
) -> None:
    """Let no more events join a batch, and launch with those that are still worth a run."""
    before = state.waiting.get(batch.lead or "")
    fresh = [name for _, name in list(batch.members) if _is_fresh(p, state, state.waiting[name])]
    if not fresh:
        return
    lead = state.waiting[fresh[-1]]
    if before is not None and before.id != lead.id:
        lead = replace(lead, attempts=before.attempts, retry_attempts=before.retry_attempts)
    state.close(batch, lead.id)
    case = case_of(p, compiled, state, lead)
    case.is_head, case.is_forced = is_head, is_forced
    enter(p, case)


def case_of(p: Ongoing, compiled: CompiledTrigger, state: TriggerState, delivery: Delivery) -> Case:
    """The case of a waiting delivery whose event is there."""
    stored = p.event_at(delivery.event_position)
    if stored is None:
        raise LookupError(f"expected the event at {delivery.event_position}, found none")
    sight = p.inputs.sights.of(stored, p.inputs.roster)
    return Case(
        compiled, state, sight, delivery, delivery.dedupe_key, delivery.group_key,
        delivery.group_id, delivery.ticket,
    )  # fmt: skip


def _is_fresh(p: Ongoing, state: TriggerState, delivery: Delivery) -> bool:
    """Whether a member's event is worth a run; else it is skipped."""
    stored = p.event_at(delivery.event_position)
    if stored is None:
        p.finish(state, delivery, Reason.EVENT_GONE)
    elif is_expired(stored.envelope, p.at):
        p.finish(state, delivery, Reason.EXPIRED, stage=Stage.EXPIRED)
    else:
        return is_key_free(p, state, delivery)
    return False


def is_key_free(p: Ongoing, state: TriggerState, delivery: Delivery) -> bool:
    """Whether nobody took the key while the delivery was failed; else it is skipped."""
    if delivery.dedupe_key is None or delivery.holds_key:
        return True
    holder = p.holder_of(delivery.trigger_id, delivery.dedupe_key, shadow=delivery.shadow)
    if holder is None or holder.delivery_id == delivery.id:
        return True
    p.finish(
        state, replace(delivery, run_id=holder.run_id), Reason.DUPLICATE_KEY,
        stage=Stage.IDEMPOTENCY,
    )  # fmt: skip
    return False


def _others(p: Ongoing, case: Case) -> list[Case]:
    """The other members of the case's batch, in order."""
    batch = None if case.group_id is None else case.state.batches.get(case.group_id)
    if batch is None:
        return []
    others = [case.state.waiting[name] for _, name in batch.members if name != case.delivery_id]
    return [case_of(p, case.compiled, case.state, other) for other in others]


def _debounce(p: Ongoing, case: Case) -> None:
    key = _key(p, case, Stage.DEBOUNCE)
    if key is not None and case.is_forced:
        case.group_key = key
        enter(p, case)
    if key is None or case.is_forced or _is_superseded(p, case, key):
        return
    quiet_at = p.at + timedelta(milliseconds=case.compiled.spec.debounce_ms or 0)
    p.settle(case, Status.PENDING, Stage.DEBOUNCE, Reason.DEBOUNCING, next_attempt_at=quiet_at)


def _keep_latest(p: Ongoing, case: Case) -> None:
    key = _key(p, case, Stage.LATEST)
    if key is None or _is_superseded(p, case, key):
        return
    go_on_latest(p, case)


def go_on_latest(p: Ongoing, case: Case) -> None:
    """Launch the newest event of a key, or wait for the run of the key to end."""
    if case.state.is_active(case.group_key or "") and not case.is_forced:
        p.settle(case, Status.PENDING, Stage.LATEST, Reason.RUN_ACTIVE)
    else:
        enter(p, case)


def _is_superseded(p: Ongoing, case: Case, key: str) -> bool:
    """Take the place of an older event of the key; whether a newer one has taken this one's."""
    case.group_key = key
    other = case.state.waiting.get(case.state.groups.get(key, ""))
    if other is None or other.id == case.delivery_id:
        return False
    if other.event_position > case.sight.stored.position:
        stage = Stage(str(mode_of(case.compiled)))
        p.settle(
            case, Status.SKIPPED, stage, Reason.SUPERSEDED,
            retry_metadata={"supersededBy": other.id},
        )  # fmt: skip
        return True
    if case.state.mode is Mode.LATEST:  # else a busy key would go to the end of the line for ever
        case.ticket = other.ticket
    p.finish(case.state, other, Reason.SUPERSEDED, metadata={"supersededBy": case.delivery_id})
    return False


def _collect(p: Ongoing, case: Case) -> None:
    spec, state = case.compiled.spec, case.state
    case.group_key = _key(p, case, Stage.BATCH)
    if case.group_key is None:
        return
    batch = state.batches.get(state.groups.get(case.group_key, ""))
    closes_at = p.at + timedelta(milliseconds=spec.batch_timeout_ms or 0)
    if batch is not None:
        closes_at = batch.closes_at
    case.group_id = f"batch-{case.delivery_id}" if batch is None else batch.id
    p.settle(case, Status.PENDING, Stage.BATCH, Reason.COLLECTING, next_attempt_at=closes_at)
    batch = state.batches[case.group_id]
    if len(batch.members) >= (spec.batch_max_events or 1):
        ripen(p, case.compiled, state, batch)


def _key(p: Ongoing, case: Case, stage: Stage) -> str | None:
    """The group's key; None when it cannot be rendered, which is a failed attempt."""
    scope = Scope(case.sight.document, p.at)
    try:
        if stage is Stage.DEBOUNCE:
            return case.compiled.debounce_key(scope)
        return case.compiled.group_key(scope)
    except TemplateFailed as error:
        fail(p, case, stage, Reason.KEY_FAILED, error.detail)
        return None
