"""Evaluate triggers over lists: the specification of the host on PostgreSQL.

    twin = TriggersInMemory(clock)
    twin.define(trigger); twin.store(event); twin.run_pass()
    twin.deliveries, twin.history, twin.runs

The clock is moved by hand, runs end when told, and every pass is recorded as the host records it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from penstock.base.clock import Clock
from penstock.envelope.envelope import Stored
from penstock.triggers.backtest import RecordedPass, RecordedVersion
from penstock.triggers.compiled import CompiledTrigger, compile_trigger
from penstock.triggers.delivery import (
    Act,
    Delivery,
    Held,
    HistoryEntry,
    Launch,
    Launched,
    LaunchOutcome,
    Pause,
    RunEnd,
    SourcePause,
)
from penstock.triggers.inputs import DUE_LIMIT, PassInputs
from penstock.triggers.limits import Limits
from penstock.triggers.passes import run_pass
from penstock.triggers.past import LogInMemory, PastInMemory
from penstock.triggers.result import ActiveRun, Failure, Kept, LoopStopped, PassResult, SourceWindow
from penstock.triggers.roster import Roster
from penstock.triggers.state import State
from penstock.triggers.trigger import Trigger
from penstock.triggers.words import RetryState, Role, Status


def launch_all(launch: Launch) -> LaunchOutcome:
    """A workflow room that starts whatever it is given."""
    return Launched(launch.run_id)


@dataclass(slots=True)
class Tables:
    """What passes have kept, as the database keeps it."""

    held: dict[int, Held] = field(default_factory=dict)
    pauses: dict[str, Pause] = field(default_factory=dict)
    source_pauses: dict[tuple[str, str], SourcePause] = field(default_factory=dict)
    windows: dict[tuple[str, str], SourceWindow] = field(default_factory=dict)
    failures: dict[str, tuple[Failure, ...]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    def take_in(self, result: PassResult) -> None:
        """Keep what a pass has changed."""
        self.held.update({held.position: held for held in result.held})
        self.windows.update(result.windows)
        self.failures.update(result.failures)
        for trigger_id, pause in result.pauses.items():
            self.pauses.pop(trigger_id, None)
            if pause is not None:
                self.pauses[trigger_id] = pause
        for name, source_pause in result.source_pauses.items():
            self.source_pauses.pop(name, None)
            if source_pause is not None:
                self.source_pauses[name] = source_pause

    def kept(self, deliveries: Iterable[Delivery]) -> Kept:
        """What a state is loaded from."""
        rows = tuple(deliveries)
        return Kept(
            deliveries=tuple(d for d in rows if d.is_waiting),
            held=tuple(h for h in self.held.values() if h.retry_state is RetryState.SCHEDULED),
            pauses=tuple(self.pauses.values()),
            source_pauses=tuple(self.source_pauses.values()),
            windows=tuple(self.windows.values()),
            failures=tuple(f for each in self.failures.values() for f in each),
            active=tuple(
                ActiveRun(d.trigger_id, d.run_id, d.group_key)
                for d in rows
                if d.status is Status.LAUNCHED
                and d.role is Role.TRIGGERED
                and d.run_id is not None
                and d.run_id not in self.ended
            ),
        )


class TriggersInMemory:
    """An evaluator whose log, tables and runs are lists."""

    def __init__(
        self,
        clock: Clock,
        limits: Limits | None = None,
        start: Callable[[Launch], LaunchOutcome] = launch_all,
        *,
        due_limit: int = DUE_LIMIT,
        batch: int = DUE_LIMIT,
    ) -> None:
        self.limits, self.start = limits or Limits(), start
        self._clock, self._due_limit, self._batch = clock, due_limit, batch
        self.log, self.events = LogInMemory(), list[Stored]()
        self.past, self.tables, self.state = PastInMemory(self.log), Tables(), State()
        self.history: list[HistoryEntry] = []
        self.runs: list[Launch] = []
        self.incidents: list[LoopStopped] = []
        self.passes: list[RecordedPass] = []
        self.versions: list[RecordedVersion] = []
        self._in_force: dict[str, CompiledTrigger] = {}
        self._roster, self._cursor, self._number = Roster(), 0, 0
        self._ends: list[RunEnd] = []

    @property
    def deliveries(self) -> list[Delivery]:
        """Every delivery, in order of position and trigger."""
        return sorted(self.past.deliveries.values(), key=lambda d: (d.event_position, d.trigger_id))

    def store(self, stored: Stored) -> None:
        """Add the next event to the log."""
        self.log.add(stored)
        self.events.append(stored)

    def define(self, trigger: Trigger) -> None:
        """Put a version in force, from the next pass on."""
        self._in_force[trigger.id] = compile_trigger(trigger)
        self._change(trigger.id, trigger)

    def remove(self, trigger_id: str) -> None:
        """Take a trigger out of force, from the next pass on."""
        del self._in_force[trigger_id]
        self._change(trigger_id, None)

    def end_run(self, run_id: str, status: str = "succeeded") -> None:
        """Tell the next pass that a run has ended."""
        started = (d for d in self.past.deliveries.values() if d.role is Role.TRIGGERED)
        trigger_id = next(d.trigger_id for d in started if d.run_id == run_id)
        self._ends.append(RunEnd(run_id, trigger_id, status, self._clock.now()))

    def act(self, *acts: Act) -> PassResult:
        """Run a pass that only carries acts."""
        return self._run(acts=acts, events=(), due_limit=0)

    def run_pass(self) -> PassResult:
        """Run one pass over what is due and over the next events."""
        events = self.events[self._cursor : self._cursor + self._batch]
        self._cursor += len(events)
        return self._run(acts=(), events=tuple(events), due_limit=self._due_limit)

    def catch_up(self) -> None:
        """Run passes until nothing is left to do at this instant."""
        while True:
            after, result = self._cursor, self.run_pass()
            is_due = result.next_due is not None and result.next_due <= self._clock.now()
            if not is_due and self._cursor == len(self.events):
                return
            if not (result.deliveries or result.held or self._cursor > after):
                raise RuntimeError(f"expected pass {result.number} to do what was due")

    def reload(self) -> None:
        """Forget the state, and load it from what was kept, as a new process does."""
        self.state = State.load(self.tables.kept(self.past.deliveries.values()))

    def _change(self, trigger_id: str, trigger: Trigger | None) -> None:
        self._roster = Roster(self._in_force.values())
        self.versions.append(RecordedVersion(trigger_id, self._number + 1, trigger))

    def _run(
        self, *, acts: tuple[Act, ...], events: tuple[Stored, ...], due_limit: int
    ) -> PassResult:
        self._number += 1
        ends, self._ends = tuple(self._ends), []
        inputs = PassInputs(
            self._number, self._clock.now(), self._roster, self.limits, acts, ends, events,
            due_limit,
        )  # fmt: skip
        result = run_pass(self.state, inputs, self.past, self.start)
        self.past.remember(result.deliveries)
        self.tables.take_in(result)
        self.tables.ended.update(end.run_id for end in ends)
        self.history.extend(result.history())
        self.runs.extend(result.launches)
        self.incidents.extend(result.incidents)
        self.passes.append(_recorded(self, inputs, result))
        return result


def _recorded(twin: TriggersInMemory, inputs: PassInputs, result: PassResult) -> RecordedPass:
    held_now = {h.position for h in result.held if h.held_pass == inputs.number}
    released = (twin.log.event_at(position) for position in result.released)
    admitted = [stored for stored in released if stored is not None]
    admitted += [stored for stored in inputs.events if stored.position not in held_now]
    return RecordedPass(
        inputs.number, inputs.judged_at, inputs.limits, admitted, inputs.acts, inputs.run_ends,
        inputs.due_limit,
    )  # fmt: skip
