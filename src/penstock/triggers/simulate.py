"""Say what a trigger would have done over past events: the same decisions, on a simulated clock.

    events ── gate ──▶ wanted? matches? ──▶ pass at that instant ──▶ Simulated
           sources' pace                   ▲ timers and ended runs in between, when they are due

What a record does not have is assumed: a run takes as long as `run_ms` says, every launch starts,
and nobody pauses anything by hand. Triggers are simulated side by side, in several processes when
there are several; they are independent, so that changes no answer.
"""

from __future__ import annotations

import heapq
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeAlias

from penstock.envelope.envelope import JsonObject, Stored
from penstock.store.view import is_expired
from penstock.triggers.compiled import CompiledTrigger, compile_trigger
from penstock.triggers.delivery import Launch, Launched, LaunchOutcome, RunEnd
from penstock.triggers.gate import SourceGate
from penstock.triggers.inputs import PassInputs
from penstock.triggers.limits import Limits
from penstock.triggers.passes import run_pass
from penstock.triggers.past import LogInPassing, PastInMemory
from penstock.triggers.predicate import document_of
from penstock.triggers.result import PassResult
from penstock.triggers.roster import Candidates, Roster
from penstock.triggers.sight import Sight, Sights
from penstock.triggers.simulated import Place, Simulated
from penstock.triggers.state import State
from penstock.triggers.trigger import Trigger, TriggerStatus
from penstock.triggers.words import Status

EventSource: TypeAlias = Callable[[], Iterable[Stored]]  # called in each process; picklable


class Simulation:
    """One trigger on a clock of its own."""

    def __init__(
        self,
        compiled: CompiledTrigger,
        limits: Limits,
        run_ms: int,
        causes: Mapping[tuple[str, str], str],
    ) -> None:
        self.compiled = compiled
        self.found = Simulated(compiled.trigger.id)
        self._roster, self._run = Roster([compiled]), timedelta(milliseconds=run_ms)
        self._limits = Limits(breaker=limits.breaker, loops=limits.loops, backoff=limits.backoff)
        self._log = LogInPassing(causes)
        self._state, self._past = State(), PastInMemory(self._log)
        self._ends: list[tuple[datetime, str]] = []
        self._number = 0
        self._next_due: datetime | None = None

    def judge(self, stored: Stored, at: datetime, document: JsonObject, *, is_match: bool) -> None:
        """Judge an event that matches or has expired, after everything that is due before it."""
        self.advance(at)
        self.found.matches += is_match
        self._log.add(stored)
        sight = Sight(stored, (self.compiled,))
        sight.know(document, (self.compiled,) if is_match else ())
        self._pass(at, sight)

    def count_held(self) -> None:
        """Count an event that its source still holds back: no trigger has seen it."""
        self.found.statuses[str(Status.PENDING)] += 1

    def advance(self, until: datetime) -> None:
        """Let timers ring and runs end, up to an instant."""
        while True:
            ends_at = self._ends[0][0] if self._ends else None
            due_at = min((at for at in (ends_at, self._next_due) if at is not None), default=None)
            if due_at is None or due_at > until:
                return
            self._pass(due_at, None)

    def _pass(self, at: datetime, sight: Sight | None) -> None:
        self._number += 1
        ends: list[RunEnd] = []
        while self._ends and self._ends[0][0] <= at:
            ended_at, run_id = heapq.heappop(self._ends)
            ends.append(RunEnd(run_id, self.compiled.trigger.id, "succeeded", ended_at))
        sights, admitted = Sights(), tuple[Stored, ...]()
        if sight is not None:
            sights.add(sight)
            admitted = (sight.stored,)
        inputs = PassInputs(
            self._number, at, self._roster, self._limits, run_ends=ends, admitted=admitted,
            sights=sights,
        )  # fmt: skip
        result = run_pass(self._state, inputs, self._past, self._start)
        self._next_due = result.next_due
        self._past.remember(result.deliveries)
        self._count(result)

    def _start(self, launch: Launch) -> LaunchOutcome:
        heapq.heappush(self._ends, (launch.launched_at + self._run, launch.run_id))
        return Launched(launch.run_id)

    def _count(self, result: PassResult) -> None:
        for tally in result.triggers.values():
            self.found.throttled += tally.throttled
        for launch in result.launches:
            self.found.count_launch(launch)
        for delivery in result.deliveries:
            self.found.count(delivery)
            if not delivery.is_waiting:
                self._log.forget(delivery.event_position)
                if not delivery.holds_key:
                    del self._past.deliveries[delivery.id]

    def end(self, first: Stored | None, last: Stored | None, count: int) -> Simulated:
        """The result, up to the last event; what still waits then is counted as such."""
        if last is not None:
            self.advance(last.received_at)
        found = self.found
        found.first, found.last, found.events = _place(first), _place(last), count
        for state in self._state.triggers.values():
            found.statuses.update(str(delivery.status) for delivery in state.waiting.values())
        return found


def simulate(
    triggers: Sequence[Trigger],
    events: Iterable[Stored],
    limits: Limits | None = None,
    run_ms: int = 60_000,
) -> list[Simulated]:
    """What triggers would have done over events, given in order of position."""
    roster = Roster([compile_trigger(_acting(trigger)) for trigger in triggers])
    causes: dict[tuple[str, str], str] = {}
    runs = {c.trigger.id: Simulation(c, limits or Limits(), run_ms, causes) for c in roster}
    looks: Counter[int] = Counter()
    seen: dict[int, Candidates] = {}
    gate, walk = SourceGate(limits or Limits()), _Walk(events, causes)
    for at, stored in gate.paced(walk):
        envelope = stored.envelope
        candidates = roster.candidates(envelope.tenant_id, envelope.type, envelope.source)
        if not candidates:
            continue
        looks[id(candidates)] += 1
        seen[id(candidates)] = candidates
        document = document_of(stored)
        late = is_expired(envelope, at)
        for each in candidates:
            is_match = not late and each.predicates.test(document)
            if is_match or late:
                runs[each.trigger.id].judge(stored, at, document, is_match=is_match)
    for name, group in seen.items():
        for each in group:
            runs[each.trigger.id].found.verdicts += looks[name]
    for stored in gate.held.values():
        envelope = stored.envelope
        for each in roster.candidates(envelope.tenant_id, envelope.type, envelope.source):
            runs[each.trigger.id].count_held()
    return [runs[trigger.id].end(walk.first, walk.last, walk.count) for trigger in triggers]


class _Walk:
    """The events as they are read, and what is to be known of those that were."""

    def __init__(self, events: Iterable[Stored], causes: dict[tuple[str, str], str]) -> None:
        self._events, self._causes = events, causes
        self.first: Stored | None = None
        self.last: Stored | None = None
        self.count = 0

    def __iter__(self) -> Iterator[Stored]:
        for stored in self._events:
            envelope = stored.envelope
            self.first, self.last, self.count = self.first or stored, stored, self.count + 1
            if envelope.causation_id is not None:
                self._causes[envelope.tenant_id, envelope.id] = envelope.causation_id
            yield stored


def simulate_in_processes(
    triggers: Sequence[Trigger],
    source: EventSource,
    limits: Limits | None = None,
    run_ms: int = 60_000,
    *,
    processes: int = 2,
) -> list[Simulated]:
    """The same, with the triggers shared out over processes that read the events themselves."""
    shares = [list(triggers[n::processes]) for n in range(processes)]
    shares = [share for share in shares if share]
    if len(shares) < 2:
        return simulate(triggers, source(), limits, run_ms)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(shares), mp_context=context) as pool:
        work = [pool.submit(_simulate_share, share, source, limits, run_ms) for share in shares]
        found = {one.trigger_id: one for share in work for one in share.result()}
    return [found[trigger.id] for trigger in triggers]


def _simulate_share(
    triggers: Sequence[Trigger], source: EventSource, limits: Limits | None, run_ms: int
) -> list[Simulated]:
    return simulate(triggers, source(), limits, run_ms)


def _place(stored: Stored | None) -> Place | None:
    return None if stored is None else Place(stored.position, stored.received_at)


def _acting(trigger: Trigger) -> Trigger:
    """The trigger as if it were active, whatever its draft says."""
    return replace(trigger, spec=trigger.spec.model_copy(update={"status": TriggerStatus.ACTIVE}))
