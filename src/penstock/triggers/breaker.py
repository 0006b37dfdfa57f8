"""Pause a trigger that keeps failing, and try it again with one launch.

    closed ── failures reach the threshold ──▶ open until … ── time passes ──▶ half-open
      ▲                                          ▲                               │
      └─────────────── success ──────────────────┴────────── failure ────────────┘

Half-open is no state of its own: it is an automatic pause whose time has passed. The outcome of a
launch is known at once, so the first launch after the pause is the probe, and what follows it in
the same pass goes by its outcome.
"""

from __future__ import annotations

from datetime import timedelta

from penstock.triggers.delivery import Pause
from penstock.triggers.ongoing import Ongoing
from penstock.triggers.result import Failure
from penstock.triggers.waiting import TriggerState

_REASON_CHARS_MAX = 500


def failed(p: Ongoing, state: TriggerState, reason: str) -> None:
    """Count a failure; pause the trigger when there were too many, or when it was the probe."""
    breaker, reason = p.limits.breaker, reason[:_REASON_CHARS_MAX]
    since = p.at - timedelta(milliseconds=breaker.window_ms)
    state.failures = [f for f in state.failures if f.failed_at > since]
    state.failures.append(Failure(state.trigger_id, p.at, reason))
    p.failures.add(state.trigger_id)
    pause = state.pause
    if pause is not None and (pause.by is not None or pause.is_open(p.at)):
        return  # an operator's pause stands; a forced attempt does not prolong an open one
    if pause is not None or len(state.failures) >= breaker.threshold:
        until = p.at + timedelta(milliseconds=breaker.pause_ms)
        set_pause(
            p,
            state,
            Pause(
                state.trigger_id,
                p.at,
                until,
                reason or "failure_threshold_exceeded",
                failures=len(state.failures),
            ),
        )


def succeeded(p: Ongoing, state: TriggerState) -> None:
    """Forget failures, and the pause they led to."""
    if state.failures:
        state.failures = []
        p.failures.add(state.trigger_id)
    if state.pause is not None and state.pause.by is None:
        set_pause(p, state, None)


def set_pause(p: Ongoing, state: TriggerState, pause: Pause | None) -> None:
    """Pause a trigger, or let it go on."""
    state.pause = pause
    p.pauses[state.trigger_id] = pause
    if pause is not None:
        p.special.add(state.trigger_id)
