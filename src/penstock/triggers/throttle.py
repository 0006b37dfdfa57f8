"""Say whether a trigger has room for one more launch, and when it will have.

    throttle      at most `count` launches in any window
    concurrency   at most so many runs that have not ended

A window slides: its place is free again when the launch that took it is one window old. What finds
no room stands in line, in order; the estimate it gets of its turn is for people, and decides
nothing.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

from penstock.triggers.compiled import CompiledTrigger
from penstock.triggers.ongoing import Case, Ongoing
from penstock.triggers.trigger import TriggerStatus
from penstock.triggers.waiting import TriggerState
from penstock.triggers.words import Stage


def obstacle(
    p: Ongoing, compiled: CompiledTrigger, state: TriggerState, *, is_forced: bool = False
) -> Stage | None:
    """What keeps a trigger from one more launch; an operator's force passes the throttle."""
    if not is_forced and free_at(p, compiled, state) is not None:
        return Stage.THROTTLE
    most = compiled.spec.max_concurrency
    if most is not None and not _is_shadow(compiled) and len(state.active) >= most:
        return Stage.CONCURRENCY
    return None


def free_at(p: Ongoing, compiled: CompiledTrigger, state: TriggerState) -> datetime | None:
    """When the window has room again; None when it has some now."""
    spec = compiled.spec
    if spec.throttle_count is None or spec.throttle_window_ms is None:
        return None
    times = _times(p, compiled, state)
    if len(times) < spec.throttle_count:
        return None
    return times[-spec.throttle_count] + timedelta(milliseconds=spec.throttle_window_ms)


def turn_at(p: Ongoing, case: Case) -> datetime | None:
    """About when the last in line will have its turn; None when that depends on runs."""
    spec = case.compiled.spec
    if spec.throttle_count is None or spec.throttle_window_ms is None:
        return None
    times = _times(p, case.compiled, case.state)
    if len(times) < spec.throttle_count:
        return None
    rounds, place = divmod(len(case.state.line), spec.throttle_count)
    window = timedelta(milliseconds=spec.throttle_window_ms)
    return times[place - spec.throttle_count] + window * (rounds + 1)


def note_launch(p: Ongoing, case: Case) -> None:
    """Let a launch take its place in the window."""
    if case.compiled.spec.throttle_count is not None:
        _times(p, case.compiled, case.state).append(p.at)


def _times(p: Ongoing, compiled: CompiledTrigger, state: TriggerState) -> deque[datetime]:
    """The launches in the window, those of earlier versions included."""
    since = p.at - timedelta(milliseconds=compiled.spec.throttle_window_ms or 0)
    if state.times_version != compiled.trigger.version:
        shadow = _is_shadow(compiled)
        state.times = deque(p.past.launch_times(state.trigger_id, since, shadow=shadow))
        state.times_version = compiled.trigger.version
    while state.times and state.times[0] <= since:
        state.times.popleft()
    return state.times


def _is_shadow(compiled: CompiledTrigger) -> bool:
    return compiled.spec.status is TriggerStatus.SHADOW
