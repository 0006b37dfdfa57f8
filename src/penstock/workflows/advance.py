"""Say what happens next in a run: pure, and the same end whatever finished first.

    begin(plan, run)              ─▶ Progress   the roots are queued
    advance(plan, run, finished)  ─▶ Progress   what finished is noted, what follows is queued
    cancel(plan, run, detail)     ─▶ Progress   what lives is stopped, the rest is skipped

A step is queued when all that it depends on has succeeded, and once: its address is new then. A
failed attempt is queued again until its policy says no; then the run fails, what depends on the
step is skipped, and what runs beside it is canceled. What an older attempt says, or what is said of
a step that is over, is ignored. A run that ended never changes: tests/workflows/test_advance.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.workflows.plan import Plan
from penstock.workflows.run import (
    ENDED,
    Outcome,
    Progress,
    Reason,
    RunState,
    RunStatus,
    StepDone,
)
from penstock.workflows.turn import Turn


def begin(plan: Plan, run: RunState) -> Progress:
    """Start a run that is pending: queue its roots; nothing happens to any other."""
    if run.status != RunStatus.PENDING:
        return Progress(run)
    turn = Turn(plan, run)
    for step_id in plan.dag.roots:
        turn.start(step_id)
    return _settle(turn)


def advance(plan: Plan, run: RunState, finished: Sequence[StepDone]) -> Progress:
    """Note what finished, in any order, and queue what may run now."""
    if run.status in ENDED:
        return Progress(run, ignored=tuple(finished))
    turn = Turn(plan, run)
    for done in finished:
        turn.note(done)
    return _settle(turn)


def cancel(plan: Plan, run: RunState, detail: str | None = None) -> Progress:
    """End a run because somebody wants it; nothing happens to one that is over."""
    if run.status in ENDED:
        return Progress(run)
    turn = Turn(plan, run)
    turn.close(Reason.RUN_CANCELED)
    outcome = Outcome(RunStatus.CANCELED, reason=Reason.RUN_CANCELED, detail=detail)
    return turn.progress(outcome)


def _settle(turn: Turn) -> Progress:
    """Start what follows from what has succeeded, unless something failed."""
    turn.join()
    noted_failure = bool(turn.failed)
    # Once something failed nothing new starts; but a cascade is worked out whole, so that what
    # it finds does not depend on where in it the first failure is.
    while turn.succeeded and not noted_failure:
        step_id = turn.succeeded.pop()
        for then in turn.plan.steps[step_id].after:
            if turn.is_ready(then):
                turn.start(then)
    if turn.failed:
        return turn.progress(_failure(turn))
    if turn.ended_a_sink and all(turn.has_succeeded(sink) for sink in turn.plan.sinks):
        return turn.progress(_success(turn))
    return turn.progress(None)


def _failure(turn: Turn) -> Outcome:
    """End the run by its first failed step in the definition's order, whichever came first."""
    step_id = next(each for each in turn.plan.dag.order if each in turn.failed)
    turn.close(Reason.RUN_FAILED)
    state = turn.steps[step_id]
    detail = f"step {step_id!r}: {state.detail or state.reason}"
    return Outcome(RunStatus.FAILED, None, Reason.STEP_FAILED, detail, step_id)


def _success(turn: Turn) -> Outcome:
    output = {sink: turn.steps[sink].output for sink in turn.plan.sinks}
    faults = turn.plan.output_faults(output)
    if faults:
        detail = "; ".join(f"{fault.pointer or '/'}: {fault.detail}" for fault in faults[:5])
        return Outcome(RunStatus.FAILED, output, Reason.OUTPUT_UNFIT, detail)
    return Outcome(RunStatus.SUCCEEDED, output)
