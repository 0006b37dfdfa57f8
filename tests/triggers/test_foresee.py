"""What a pass will ask is foreseen, and looking ahead changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.triggers.evaluating import NOON, World, trigger
from tests.triggers.weeks import Week

from penstock.triggers.backtest import _Rosters, outcomes_of
from penstock.triggers.delivery import Launched, RunEnd
from penstock.triggers.inputs import Holder, PassInputs
from penstock.triggers.passes import positions_due, run_pass, wanted
from penstock.triggers.past import LogInMemory, PastInMemory
from penstock.triggers.state import State
from penstock.triggers.words import ActKind, Target


class Spy(PastInMemory):
    """A past that notes what it is asked."""

    def __init__(self, log: LogInMemory) -> None:
        super().__init__(log)
        self.listen()

    def listen(self) -> None:
        self.keys: set[tuple[str, str, bool]] = set()
        self.correlations: set[tuple[str, str, bool]] = set()
        self.times: set[str] = set()

    def holder_of(self, trigger_id: str, key: str, *, shadow: bool) -> Holder | None:
        self.keys.add((trigger_id, key, shadow))
        return super().holder_of(trigger_id, key, shadow=shadow)

    def launches_in(self, trigger_id: str, correlation_id: str, *, shadow: bool) -> int:
        self.correlations.add((trigger_id, correlation_id, shadow))
        return super().launches_in(trigger_id, correlation_id, shadow=shadow)

    def launch_times(self, trigger_id: str, since: datetime, *, shadow: bool) -> Sequence[datetime]:
        self.times.add(trigger_id)
        return super().launch_times(trigger_id, since, shadow=shadow)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1_000_000))
def test_nearly_all_that_a_pass_asks_was_foreseen(seed: int) -> None:
    week = Week(seed)
    for _ in range(50):
        week.step()
    twin = week.world.twin
    past, state, rosters = Spy(twin.log), State(), _Rosters(twin.versions)
    outcomes, history, asked, missed = outcomes_of(twin.history), [], 0, 0
    for recorded in twin.passes:
        inputs = PassInputs(
            recorded.number, recorded.judged_at, rosters.at(recorded.number), recorded.limits,
            recorded.acts, recorded.run_ends, due_limit=recorded.due_limit,
            admitted=recorded.admitted,
        )  # fmt: skip
        assert set(positions_due(state, inputs)) <= set(range(1, len(twin.events) + 1))
        wants = wanted(state, inputs, past)
        past.listen()

        result = run_pass(
            state, inputs, past,
            lambda launch, n=recorded.number: outcomes.get(
                (n, launch.delivery_id), Launched(launch.run_id)
            ),
        )  # fmt: skip

        if not recorded.acts:
            asked += len(past.keys) + len(past.correlations) + len(past.times)
            missed += len(past.keys - wants.keys) + len(past.correlations - wants.correlations)
            missed += len(past.times - {name for name, _, _ in wants.times})
        past.remember(result.deliveries)
        history.extend(result.history())
    assert history == twin.history
    # A guess: what it misses is looked up one by one, which costs time and changes no answer.
    assert missed <= 2 + asked / 20


def test_the_events_of_what_is_due_are_foreseen() -> None:
    world = World(
        trigger("paused"),
        trigger("full", maxConcurrency=1),
        trigger("quiet", debounceMs=10_000),
    )
    world.act(ActKind.PAUSE, Target.TRIGGER, "paused", until=NOON + timedelta(seconds=10))
    world.judge({}, {}, {})
    twin, later = world.twin, NOON + timedelta(seconds=10)

    def due(at: datetime, *ends: RunEnd) -> list[int]:
        return positions_due(twin.state, PassInputs(99, at, twin._roster, run_ends=ends))

    assert due(NOON) == []
    assert due(later) == [1, 2, 3]
    first = next(d for d in world.all("full") if d.run_id)
    assert due(NOON, RunEnd(first.run_id or "", "full", "succeeded", NOON)) == [2, 3]
