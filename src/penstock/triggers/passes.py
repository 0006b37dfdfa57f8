"""Advance all triggers by one pass: the same inputs always lead to the same decisions.

    acts ──▶ ended runs ──▶ what waited and is due ──▶ held events ──▶ new events ──▶ PassResult

A pass is one transaction with one reading of the clock. All that a decision depends on is the
version in force, the event, what earlier passes left, and that reading. So recorded passes can be
run again, by the same code, and must come to the same deliveries: that is the back-test, the
explanation of old verdicts, and the proof (tests/triggers/test_weeks.py).

Triggers are independent of each other: a pass with one of them decides about it as one with all.
"""

from __future__ import annotations

from penstock.envelope.envelope import Stored
from penstock.triggers.acts import carry_out
from penstock.triggers.delivery import ActOutcome
from penstock.triggers.due import follow_roster, judge_due, next_due
from penstock.triggers.foresee import positions_due, wanted
from penstock.triggers.inputs import PassInputs, Past
from penstock.triggers.ongoing import Ongoing, Starter
from penstock.triggers.result import PassResult
from penstock.triggers.sources import count, let_through, release_held
from penstock.triggers.stages import judge_event
from penstock.triggers.state import State

__all__ = ["Starter", "positions_due", "run_pass", "wanted"]


def run_pass(state: State, inputs: PassInputs, past: Past, start: Starter) -> PassResult:
    """Decide everything that is due, advance the state, and say what changed.

    `start` is asked for every launch, in order, and answers at once. When the answers prove wrong,
    the state is spoilt: run the same inputs again on a copy made before, with the right ones.
    """
    p = Ongoing(state, inputs, past, start)
    follow_roster(p)
    outcomes = [carry_out(p, act) for act in inputs.acts]
    for end in inputs.run_ends:
        state.of(end.trigger_id).run_ended(end.run_id)
    if inputs.due_limit:
        judge_due(p)

    def judge(stored: Stored) -> None:
        judge_event(p, stored)

    if inputs.admitted is not None:
        for stored in inputs.admitted:
            count(p, stored)
            judge(stored)
    else:
        release_held(p, judge)
        let_through(p, inputs.events, judge)
    return _result(p, outcomes)


def _result(p: Ongoing, outcomes: list[ActOutcome]) -> PassResult:
    verdicts = p.count_filtered()
    state = p.state
    return PassResult(
        number=p.number,
        judged_at=p.at,
        deliveries=tuple(
            sorted(p.changed.values(), key=lambda d: (d.event_position, d.trigger_id))
        ),
        created_ids=frozenset(p.created),
        launches=tuple(p.launches),
        refusals=p.refusals,
        released=tuple(p.released),
        held=tuple(held for _, held in sorted(p.held.items())),
        pauses=p.pauses,
        source_pauses={name: state.source(name).pause for name in sorted(p.source_pauses)},
        windows={name: state.source(name).window(name) for name in sorted(p.touched_sources)},
        failures={name: tuple(state.of(name).failures) for name in sorted(p.failures)},
        triggers=p.tallies,
        sources=p.sources,
        incidents=tuple(p.incidents),
        acts=tuple(outcomes),
        verdicts=verdicts,
        next_due=next_due(p),
    )
