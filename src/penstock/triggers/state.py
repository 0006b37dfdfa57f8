"""Remember what decisions depend on, between passes.

    rows that passes have kept ── State.load ──▶ State ── run_pass ──▶ State, advanced

Everything in it follows from kept rows: `load` gives a state that decides like the one that was
lost. tests/triggers/test_weeks.py holds it to that, after every pass of a generated week.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta
from typing import TypeAlias

from penstock.triggers.delivery import Held, SourcePause
from penstock.triggers.result import Kept, SourceWindow
from penstock.triggers.waiting import TriggerState

SourceName: TypeAlias = tuple[str, str]  # tenant and source


class SourceState:
    """What one source's events depend on before any trigger sees them."""

    __slots__ = ("_total", "counts", "forced", "held", "pause")

    def __init__(self) -> None:
        self.pause: SourcePause | None = None
        self.held: dict[int, Held] = {}  # by position, in order
        self.forced: dict[int, None] = {}  # positions of held events that are to go now, in order
        self.counts: deque[tuple[datetime, int]] = deque()  # let through: when, how many
        self._total = 0

    def load(self, window: SourceWindow) -> None:
        """Take over counts that were kept."""
        self.counts = deque(window.counts)
        self._total = sum(count for _, count in self.counts)

    def copy(self) -> SourceState:
        """Another one with the same contents."""
        twin = SourceState()
        twin.pause, twin.held, twin.counts = self.pause, dict(self.held), deque(self.counts)
        twin.forced = dict(self.forced)
        twin._total = self._total
        return twin

    def hold(self, held: Held) -> None:
        """Keep an event in the line, or what is new about it."""
        self.held[held.position] = held
        if held.is_forced:
            self.forced[held.position] = None

    def let_go(self, position: int) -> None:
        """Take an event out of the line."""
        del self.held[position]
        self.forced.pop(position, None)

    def is_paused(self, at: datetime) -> bool:
        """Whether its events wait."""
        return self.pause is not None and self.pause.is_open(at)

    def count_since(self, at: datetime, interval_ms: int) -> int:
        """How many events were let through in the interval that ends at an instant."""
        since = at - timedelta(milliseconds=interval_ms)
        while self.counts and self.counts[0][0] <= since:
            self._total -= self.counts.popleft()[1]
        return self._total

    def count_one(self, at: datetime) -> None:
        """Note that an event was let through."""
        self._total += 1
        if self.counts and self.counts[-1][0] == at:
            self.counts[-1] = (at, self.counts[-1][1] + 1)
        else:
            self.counts.append((at, 1))

    def window(self, name: SourceName) -> SourceWindow:
        """The counts as they are kept."""
        return SourceWindow(*name, tuple(self.counts))


class State:
    """What waits, what is paused and what is active."""

    def __init__(self) -> None:
        self.triggers: dict[str, TriggerState] = {}
        self.sources: dict[SourceName, SourceState] = {}

    @classmethod
    def load(cls, kept: Kept) -> State:
        """The state that passes have kept."""
        state = cls()
        for delivery in sorted(kept.deliveries, key=lambda d: (d.event_position, d.id)):
            state.of(delivery.trigger_id).waiting[delivery.id] = delivery
        for pause in kept.pauses:
            state.of(pause.trigger_id).pause = pause
        for failure in sorted(kept.failures, key=lambda f: f.failed_at):
            state.of(failure.trigger_id).failures.append(failure)
        for run in kept.active:
            state.of(run.trigger_id).run_started(run.run_id, run.group_key)
        for held in sorted(kept.held, key=lambda h: h.position):
            state.source((held.tenant_id, held.source)).hold(held)
        for source_pause in kept.source_pauses:
            state.source((source_pause.tenant_id, source_pause.source)).pause = source_pause
        for window in kept.windows:
            state.source((window.tenant_id, window.source)).load(window)
        return state

    def of(self, trigger_id: str) -> TriggerState:
        """What a trigger's decisions depend on."""
        found = self.triggers.get(trigger_id)
        if found is None:
            found = self.triggers[trigger_id] = TriggerState(trigger_id)
        return found

    def source(self, name: SourceName) -> SourceState:
        """What a source's events depend on."""
        found = self.sources.get(name)
        if found is None:
            found = self.sources[name] = SourceState()
        return found

    def copy(self) -> State:
        """Another one that can be advanced without harm to this one."""
        twin = State()
        twin.triggers = {name: each.copy() for name, each in self.triggers.items()}
        twin.sources = {name: each.copy() for name, each in self.sources.items()}
        return twin
