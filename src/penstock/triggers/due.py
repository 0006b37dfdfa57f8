"""Go on with what waits: whose time has come, in order; and say when to look again.

For each trigger: first those in line, as long as there is room; then, in order of position, all
that a timer or the end of a pause has made due. Triggers do not see each other's work, and each may
judge as many as a pass takes, so that a trigger alone decides as it does among others.
"""

from __future__ import annotations

from datetime import datetime

from penstock.triggers.compiled import CompiledTrigger
from penstock.triggers.groups import ripen
from penstock.triggers.ongoing import Ongoing
from penstock.triggers.roster import mode_of
from penstock.triggers.stages import rejudge
from penstock.triggers.throttle import free_at, obstacle
from penstock.triggers.trigger import TriggerStatus
from penstock.triggers.waiting import TriggerState
from penstock.triggers.words import Reason, RetryState, Stage


def follow_roster(p: Ongoing) -> None:
    """Place what waits for the versions in force; end the wait at triggers that no longer act."""
    for state in p.state.triggers.values():
        if state.waiting and p.inputs.roster.get(state.trigger_id) is None:
            _end(p, state, list(state.waiting))
    for compiled in p.inputs.roster:
        state = p.state.of(compiled.trigger.id)
        if state.version != compiled.trigger.version:
            shadow = compiled.spec.status is TriggerStatus.SHADOW
            _end(p, state, [n for n, d in state.waiting.items() if d.shadow is not shadow])
            state.settle_in(compiled.trigger.version, mode_of(compiled))
        if state.pause is not None or state.parked:
            p.special.add(state.trigger_id)


def _end(p: Ongoing, state: TriggerState, names: list[str]) -> None:
    for name in names:
        p.finish(
            state,
            state.waiting[name],
            Reason.TRIGGER_INACTIVE,
            retry_state=RetryState.CANCELLED,
        )


def judge_due(p: Ongoing) -> None:
    """Judge what waited and is due, at every trigger."""
    for compiled in p.inputs.roster:
        state = p.state.triggers.get(compiled.trigger.id)
        if state is not None and state.waiting:
            _judge(p, compiled, state)


def _judge(p: Ongoing, compiled: CompiledTrigger, state: TriggerState) -> None:
    left = p.inputs.due_limit
    while left and state.line and not state.is_paused(p.at):
        if obstacle(p, compiled, state) is not None:
            break
        rejudge(p, compiled, state, state.waiting[state.line[0][1]], is_head=True)
        left -= 1
    due = [(state.ticket_of(name), name) for name in state.take_due(p.at)]
    if not state.is_paused(p.at):
        due += state.parked[:left]
    due.sort()
    kept: list[str] = []
    for _, name in due:
        if not left or (state.is_paused(p.at) and not _is_forced(state, name)):
            kept.append(name)
        elif _judge_one(p, compiled, state, name):
            left -= 1
    state.wait_again(kept)


def _judge_one(p: Ongoing, compiled: CompiledTrigger, state: TriggerState, name: str) -> bool:
    """Whether there was still something to judge: others of the same turn may have ended it."""
    batch, delivery = state.batches.get(name), state.waiting.get(name)
    if batch is not None and batch.lead is None:
        ripen(p, compiled, state, batch)
    elif delivery is not None:
        rejudge(p, compiled, state, delivery)
    return batch is not None or delivery is not None


def _is_forced(state: TriggerState, name: str) -> bool:
    delivery = state.waiting.get(name)
    return delivery is not None and delivery.reason is Reason.FORCED


def next_due(p: Ongoing) -> datetime | None:
    """When something is to be judged although nothing new has come."""
    instants = [_trigger_due(p, state) for state in p.state.triggers.values() if state.waiting]
    for source in p.state.sources.values():
        if source.held:
            pause = source.pause if source.is_paused(p.at) else None
            instants.append(p.at if pause is None else pause.until)
            if source.forced:
                instants.append(p.at)
    known = [max(at, p.at) for at in instants if at is not None]
    return min(known, default=None)


def _trigger_due(p: Ongoing, state: TriggerState) -> datetime | None:
    compiled = p.inputs.roster.get(state.trigger_id)
    if compiled is None:
        return p.at
    if state.is_paused(p.at) and state.pause is not None:
        is_forced = any(d.reason is Reason.FORCED for d in state.waiting.values())
        return p.at if is_forced else state.pause.until
    if state.parked:
        return p.at
    instants = [state.next_timer()]
    if state.line:
        blocked = obstacle(p, compiled, state)
        if blocked is None:
            return p.at
        full = obstacle(p, compiled, state, is_forced=True) is Stage.CONCURRENCY
        instants.append(None if full else free_at(p, compiled, state))
    return min((at for at in instants if at is not None), default=None)
