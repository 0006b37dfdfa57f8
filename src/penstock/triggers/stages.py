"""Judge one event at one trigger, stage by stage.

    expired → paused → predicates → loop → idempotency → room or group → run key → launch

What was judged before and waits goes on where it stopped. What waited for a pause to end, or was
judged by another version of its trigger, is judged from the predicates on.
"""

from __future__ import annotations

from penstock.envelope.envelope import Stored
from penstock.store.view import is_expired
from penstock.triggers.compiled import CompiledTrigger
from penstock.triggers.delivery import Delivery
from penstock.triggers.groups import case_of, enter, gather, go_on_latest, is_key_free, ripen
from penstock.triggers.launching import fail
from penstock.triggers.loops import stop_loop
from penstock.triggers.ongoing import Case, Ongoing
from penstock.triggers.roster import Mode
from penstock.triggers.sight import Sight
from penstock.triggers.template import TemplateFailed
from penstock.triggers.waiting import TriggerState
from penstock.triggers.words import Reason, Stage, Status

_GROUPING = frozenset({Stage.DEBOUNCE, Stage.BATCH, Stage.LATEST})


def judge_event(p: Ongoing, stored: Stored) -> None:
    """Judge an event that no trigger has seen, at all that want it."""
    sight = p.inputs.sights.of(stored, p.inputs.roster)
    candidates = sight.candidates
    if not candidates:
        return
    p.look(candidates)
    if is_expired(stored.envelope, p.at):
        for compiled in candidates:
            _no_longer_filtered(p, compiled)
            case = Case(compiled, p.state.of(compiled.trigger.id), sight)
            p.settle(case, Status.SKIPPED, Stage.EXPIRED, Reason.EXPIRED)
        return
    matching = sight.matches()
    if p.special:
        matching = _judge_special(p, sight)
    for compiled in matching:
        _no_longer_filtered(p, compiled)
        consider(p, Case(compiled, p.state.of(compiled.trigger.id), sight))


def _judge_special(p: Ongoing, sight: Sight) -> tuple[CompiledTrigger, ...]:
    """Let the event wait where the trigger is paused; the matching ones that are not."""
    parked: set[str] = set()
    for compiled in sight.candidates:
        if compiled.trigger.id not in p.special:
            continue
        state = p.state.of(compiled.trigger.id)
        is_paused = state.is_paused(p.at)
        if is_paused or state.parked:
            parked.add(compiled.trigger.id)
            _no_longer_filtered(p, compiled)
            pause = state.pause if is_paused else None
            p.settle(
                Case(compiled, state, sight),
                Status.PENDING,
                Stage.PAUSED,
                Reason.PAUSED if is_paused else Reason.IN_ORDER,
                next_attempt_at=pause and pause.until,
            )
    return tuple(c for c in sight.matches() if c.trigger.id not in parked)


def _no_longer_filtered(p: Ongoing, compiled: CompiledTrigger) -> None:
    p.tally(compiled).filtered -= 1


def consider(p: Ongoing, case: Case) -> None:
    """Judge a match, from the loop guard on."""
    p.tally(case.compiled).matched += 1
    if not stop_loop(p, case) and _takes_key(p, case):
        gather(p, case)


def _takes_key(p: Ongoing, case: Case) -> bool:
    """Whether the idempotency key is free for the delivery, or there is none."""
    if case.compiled.spec.idempotency_key_expression is None:
        return True
    try:
        case.dedupe_key = case.sight.key_for(case.compiled, p.at)
    except TemplateFailed as error:
        fail(p, case, Stage.IDEMPOTENCY, Reason.KEY_FAILED, error.detail)
        return False
    if case.dedupe_key is None:
        return True
    trigger_id = case.compiled.trigger.id
    holder = p.holder_of(trigger_id, case.dedupe_key, shadow=case.shadow)
    if holder is None or holder.delivery_id == case.delivery_id:
        return True
    p.settle(case, Status.SKIPPED, Stage.IDEMPOTENCY, Reason.DUPLICATE_KEY, run_id=holder.run_id)
    return False


def rejudge(
    p: Ongoing,
    compiled: CompiledTrigger,
    state: TriggerState,
    delivery: Delivery,
    *,
    is_head: bool = False,
) -> None:
    """Judge a delivery that waited, and whose time has come."""
    is_forced = delivery.reason is Reason.FORCED
    batch = state.batch_of(delivery)
    if batch is not None:
        ripen(p, compiled, state, batch, is_head=is_head, is_forced=is_forced)
        return
    stored = p.event_at(delivery.event_position)
    if stored is None:
        p.finish(state, delivery, Reason.EVENT_GONE)
    elif is_expired(stored.envelope, p.at):
        p.finish(state, delivery, Reason.EXPIRED, stage=Stage.EXPIRED)
    elif _starts_anew(delivery, compiled):
        sight = p.inputs.sights.of(stored, p.inputs.roster)
        _from_predicates(p, Case(compiled, state, sight, delivery, is_forced=is_forced))
    elif is_key_free(p, state, delivery):
        case = case_of(p, compiled, state, delivery)
        case.is_forced, case.is_head = is_forced, is_head
        if state.mode is Mode.LATEST:
            go_on_latest(p, case)
        else:
            enter(p, case)


def _starts_anew(delivery: Delivery, compiled: CompiledTrigger) -> bool:
    return (
        delivery.stage is Stage.PAUSED
        or delivery.trigger_version != compiled.trigger.version
        or delivery.stage is Stage.IDEMPOTENCY
        or (delivery.group_key is None and delivery.stage in _GROUPING)
    )


def _from_predicates(p: Ongoing, case: Case) -> None:
    compiled, envelope = case.compiled, case.sight.stored.envelope
    is_wanted = compiled.wants(envelope.type, envelope.source)
    if is_wanted and compiled.predicates.test(case.sight.document):
        consider(p, case)
    else:
        p.settle(case, Status.SKIPPED, Stage.PREDICATES, Reason.FILTERED)
