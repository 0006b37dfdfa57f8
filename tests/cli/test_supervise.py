"""Hold the supervisor's decisions, without a process in sight."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.supervise import (
    RESTART,
    STEADY_S,
    STOP_S,
    TURN_S,
    Action,
    Announce,
    Answered,
    Died,
    Finish,
    Happening,
    Kill,
    Mourn,
    Start,
    StopAsked,
    Supervision,
    Terminate,
    Tick,
    decide,
)

NAMES = ("demo", "serve", "ingress", "worker")


class World:
    """A supervision with its clock, so that a test reads as a story."""

    def __init__(self, *names: str) -> None:
        self.state = Supervision.of(names or NAMES)
        self.now = 0.0
        self.rng = random.Random(7)

    def see(self, event: Happening, *, after: float = 0.0) -> tuple[Action, ...]:
        self.now += after
        self.state, actions = decide(self.state, event, now=self.now, rng=self.rng)
        return actions

    def phase(self, name: str) -> str:
        return next(part.phase for part in self.state.parts if part.name == name)

    def deaths(self, name: str) -> int:
        return next(part.deaths for part in self.state.parts if part.name == name)


def started(*names: str) -> World:
    world = World(*names)
    world.see(Tick())
    return world


def test_the_first_tick_starts_every_part() -> None:
    assert World().see(Tick()) == tuple(Start(name) for name in NAMES)


def test_a_running_part_is_not_started_again() -> None:
    world = started()

    assert world.see(Tick(), after=5) == ()


def test_a_dead_part_is_mourned_and_comes_back_after_its_wait() -> None:
    world = started()

    (mourn,) = world.see(Died("serve", -9), after=1)

    assert isinstance(mourn, Mourn)
    assert (mourn.name, mourn.code) == ("serve", -9)
    assert world.see(Tick(), after=mourn.back_in_s - 0.001) == ()
    assert world.see(Tick(), after=0.002) == (Start("serve"),)


def test_a_part_that_dies_young_again_and_again_waits_longer_up_to_the_cap() -> None:
    world = started("serve")
    waits = []
    for _ in range(12):
        (mourn,) = world.see(Died("serve", 1))
        assert isinstance(mourn, Mourn)
        waits.append(mourn.back_in_s)
        world.see(Tick(), after=mourn.back_in_s)

    assert waits[0] < 0.13
    assert waits[3] > waits[0]
    assert max(waits) <= RESTART.max_s
    assert world.deaths("serve") == 12


def test_a_part_that_lived_a_minute_is_restarted_at_once_again() -> None:
    world = started("serve")
    for _ in range(6):
        (mourn,) = world.see(Died("serve", 1))
        assert isinstance(mourn, Mourn)
        world.see(Tick(), after=mourn.back_in_s)

    (mourn,) = world.see(Died("serve", 1), after=STEADY_S)

    assert isinstance(mourn, Mourn)
    assert mourn.back_in_s < 0.13
    assert world.deaths("serve") == 1


def test_ready_is_announced_once_in_a_life() -> None:
    world = started()

    assert world.see(Answered()) == (Announce(),)
    assert world.see(Answered()) == ()
    world.see(Died("serve", 1))
    world.see(Tick(), after=10)
    assert world.see(Answered()) == ()


def test_ready_is_not_announced_while_a_part_is_down() -> None:
    world = started()
    world.see(Died("ingress", 1))

    assert world.see(Answered()) == ()

    world.see(Tick(), after=1)
    assert world.see(Answered()) == (Announce(),)


def test_ready_is_not_announced_once_stopping_began() -> None:
    world = started()
    world.see(StopAsked())

    assert Announce() not in world.see(Answered())


def test_parts_stop_in_order_each_after_the_one_before_is_gone() -> None:
    world = started()

    assert world.see(StopAsked()) == (Terminate("demo"),)
    assert world.see(Tick(), after=0.1) == ()
    assert world.see(Died("demo", 0), after=0.1) == (Terminate("serve"),)
    assert world.see(Died("serve", 0), after=0.1) == (Terminate("ingress"),)
    assert world.see(Died("ingress", 0), after=0.1) == (Terminate("worker"),)
    assert world.see(Died("worker", 0), after=0.1) == (Finish(),)


def test_a_part_that_hangs_holds_up_the_next_one_for_its_turn_only() -> None:
    world = started()
    world.see(StopAsked())

    assert world.see(Tick(), after=TURN_S - 0.01) == ()
    assert world.see(Tick(), after=0.02) == (Terminate("serve"),)
    assert world.see(Tick(), after=TURN_S) == (Terminate("ingress"),)


def test_what_is_left_at_the_deadline_is_killed_and_nothing_else() -> None:
    world = started()
    world.see(StopAsked())
    world.see(Died("demo", 0), after=1)
    world.see(Died("serve", 0), after=1)

    assert world.see(Tick(), after=STOP_S) == (Kill("ingress"), Kill("worker"))


def test_asking_twice_kills_at_once() -> None:
    world = started("serve")
    world.see(StopAsked())

    assert world.see(StopAsked(), after=0.1) == (Kill("serve"),)


def test_a_part_waiting_for_its_restart_is_not_started_once_stopping_began() -> None:
    world = started("serve", "worker")
    world.see(Died("serve", 1))

    assert world.see(StopAsked()) == (Terminate("worker"),)
    assert world.see(Tick(), after=1) == ()
    assert world.see(Died("worker", 0)) == (Finish(),)


def test_stopping_with_nothing_alive_finishes_at_once() -> None:
    world = started("serve")
    world.see(Died("serve", 1))

    assert world.see(StopAsked()) == (Finish(),)


def test_deciding_changes_nothing_but_what_it_returns() -> None:
    before = started().state
    kept = replace(before)

    decide(before, Died("serve", 1), now=3.0, rng=random.Random(1))

    assert before == kept


_EVENTS = st.one_of(
    st.just(Tick()),
    st.just(Answered()),
    st.just(StopAsked()),
    st.sampled_from(NAMES).map(lambda name: Died(name, 1)),
)


@given(st.lists(st.tuples(_EVENTS, st.floats(0, 30)), max_size=60))
def test_whatever_happens_a_part_runs_at_most_once_and_only_what_runs_is_signalled(
    story: list[tuple[Happening, float]],
) -> None:
    world, alive, announced = World(), set[str](), 0
    for event, after in story:
        if isinstance(event, Died):
            if event.name not in alive:
                continue  # only a living process can die
            alive.discard(event.name)
        for action in world.see(event, after=after):
            if isinstance(action, Start):
                assert action.name not in alive
                alive.add(action.name)
            elif isinstance(action, Terminate | Kill):
                assert action.name in alive
            elif isinstance(action, Announce):
                announced += 1
            elif isinstance(action, Finish):
                assert not alive

    assert announced <= 1


@given(st.lists(st.tuples(_EVENTS, st.floats(0, 3)), max_size=30))
def test_once_asked_to_stop_the_end_always_comes(story: list[tuple[Happening, float]]) -> None:
    world, alive = World(), set[str]()
    for event, after in [*story, (StopAsked(), 0.0), (Tick(), STOP_S), (Tick(), 0.1)]:
        if isinstance(event, Died):
            if event.name not in alive:
                continue
            alive.discard(event.name)
        actions = world.see(event, after=after)
        alive |= {action.name for action in actions if isinstance(action, Start)}

    for name in [action.name for action in actions if isinstance(action, Kill)]:
        assert name in alive
        alive.discard(name)
        actions = world.see(Died(name, -9))

    assert not alive
    assert actions == (Finish(),)


@pytest.mark.parametrize("name", NAMES)
def test_a_death_that_was_asked_for_is_not_mourned(name: str) -> None:
    world = started()
    world.see(StopAsked())

    assert not any(isinstance(action, Mourn) for action in world.see(Died(name, -15)))
