"""Decide what the supervisor does next: which part to start, restart, stop or kill.

                 Started             Died                 StopAsked
      due ──────────────▶ running ──────────▶ due …   ───────────────▶ stopping ──▶ stopped
       ▲  Start when its time has come  │ later each time it dies young       Terminate, then Kill
       └────────────────────────────────┘

Pure: time and randomness are arguments. `cli.supervisor` does what is decided here;
tests/cli/test_supervise.py holds the decisions, tests/cli/test_supervisor.py the doing.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from penstock.base.backoff import Backoff

RESTART = Backoff(base_s=0.1, factor=2.0, max_s=5.0, jitter=0.2)
STEADY_S = 60.0  # a part that lived this long has earned a quick restart
TURN_S = 2.0  # how long a part may hold up the stopping of the next one
STOP_S = 10.0  # how long all of them together may take to stop

Phase = Literal["due", "running", "stopping", "stopped"]


@dataclass(frozen=True, slots=True)
class Part:
    """One supervised process: its phase, when that began, and how often it died young in a row."""

    name: str
    phase: Phase = "due"
    since: float = 0.0  # while due: when to start it
    deaths: int = 0

    @property
    def alive(self) -> bool:
        return self.phase in ("running", "stopping")


@dataclass(frozen=True, slots=True)
class Stopping:
    """When the whole was asked to stop, and when patience ends."""

    asked_at: float
    kill_at: float


@dataclass(frozen=True, slots=True)
class Supervision:
    """All parts, in the order in which they stop."""

    parts: tuple[Part, ...]
    ready: bool = False
    stopping: Stopping | None = None

    @classmethod
    def of(cls, names: Iterable[str]) -> Supervision:
        return cls(tuple(Part(name) for name in names))

    def put(self, part: Part) -> Supervision:
        """The same with one part changed."""
        return replace(self, parts=tuple(part if p.name == part.name else p for p in self.parts))


@dataclass(frozen=True, slots=True)
class Tick:
    """Time went on."""


@dataclass(frozen=True, slots=True)
class Died:
    """A part's process ended by itself, by our signal or by somebody else's."""

    name: str
    code: int


@dataclass(frozen=True, slots=True)
class Answered:
    """Every part answers."""


@dataclass(frozen=True, slots=True)
class StopAsked:
    """Somebody wants the whole to end; asked twice, at once."""


@dataclass(frozen=True, slots=True)
class Start:
    name: str


@dataclass(frozen=True, slots=True)
class Terminate:
    name: str


@dataclass(frozen=True, slots=True)
class Kill:
    name: str


@dataclass(frozen=True, slots=True)
class Mourn:
    """Tell the operator that a part died and when it comes back."""

    name: str
    code: int
    back_in_s: float


@dataclass(frozen=True, slots=True)
class Announce:
    """Print the ready line; decided once in a life."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing is left to watch."""


Happening: TypeAlias = Tick | Died | Answered | StopAsked
Action: TypeAlias = Start | Terminate | Kill | Mourn | Announce | Finish
Decision: TypeAlias = tuple[Supervision, tuple[Action, ...]]


def decide(state: Supervision, event: Happening, *, now: float, rng: random.Random) -> Decision:
    """The next state and what to do; the same inputs always get the same answer."""
    match event:
        case Died(name, code):
            return _after_death(state, name, code, now, rng)
        case StopAsked():
            return _stop(state, now)
        case Answered():
            return _answered(state)
        case Tick():
            return _go_on(state, now)


def _answered(state: Supervision) -> Decision:
    all_run = all(part.phase == "running" for part in state.parts)
    if state.ready or not all_run:
        return state, ()
    return replace(state, ready=True), (Announce(),)


def _go_on(state: Supervision, now: float) -> Decision:
    if state.stopping is not None:
        return _go_on_stopping(state, state.stopping, now)
    due = [part for part in state.parts if part.phase == "due" and part.since <= now]
    for part in due:
        state = state.put(replace(part, phase="running", since=now))
    return state, tuple(Start(part.name) for part in due)


def _after_death(
    state: Supervision, name: str, code: int, now: float, rng: random.Random
) -> Decision:
    part = next(part for part in state.parts if part.name == name)
    if state.stopping is not None:
        return _go_on(state.put(replace(part, phase="stopped", since=now)), now)
    deaths = 1 if now - part.since >= STEADY_S else part.deaths + 1
    wait_s = RESTART.delay_s(deaths, rng)
    state = state.put(replace(part, phase="due", since=now + wait_s, deaths=deaths))
    return state, (Mourn(name, code, wait_s),)


def _stop(state: Supervision, now: float) -> Decision:
    if state.stopping is not None:
        return _go_on(replace(state, stopping=replace(state.stopping, kill_at=now)), now)
    parts = tuple(
        part if part.alive else replace(part, phase="stopped", since=now) for part in state.parts
    )
    return _go_on(Supervision(parts, state.ready, Stopping(now, now + STOP_S)), now)


def _go_on_stopping(state: Supervision, stopping: Stopping, now: float) -> Decision:
    """One after another, none waiting longer than its turn; past the deadline, all at once."""
    if all(part.phase == "stopped" for part in state.parts):
        return state, (Finish(),)
    if now >= stopping.kill_at:
        return state, tuple(Kill(part.name) for part in state.parts if part.alive)
    actions = []
    for turn, part in enumerate(state.parts):
        before_gone = all(earlier.phase == "stopped" for earlier in state.parts[:turn])
        its_turn = before_gone or now >= stopping.asked_at + turn * TURN_S
        if part.phase == "running" and its_turn:
            state = state.put(replace(part, phase="stopping", since=now))
            actions.append(Terminate(part.name))
    return state, tuple(actions)
