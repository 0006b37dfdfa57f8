"""Carry one pass while it goes on: what it has decided so far, and what that does to the state.

    Case ── settle ──▶ Delivery ── keep ──▶ changed rows, the state, who holds which key, counters

A delivery may be touched several times in a pass. Only what it has come to in the end is a row and
a history entry, because a pass is one transaction: nobody ever sees what was in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from penstock.base.ids import derived_id
from penstock.envelope.envelope import JsonValue, Stored
from penstock.triggers.compiled import CompiledTrigger
from penstock.triggers.delivery import Delivery, Held, Launch, LaunchOutcome, Pause
from penstock.triggers.inputs import Holder, PassInputs, Past
from penstock.triggers.result import LoopStopped, SourceTally, TriggerTally
from penstock.triggers.roster import Candidates
from penstock.triggers.sight import Sight
from penstock.triggers.state import SourceName, State
from penstock.triggers.trigger import TriggerStatus
from penstock.triggers.waiting import TriggerState
from penstock.triggers.words import HOLDING, WAITING, Reason, RetryState, Stage, Status

Starter: TypeAlias = Callable[[Launch], LaunchOutcome]
_Key: TypeAlias = tuple[str, str, bool]


@dataclass(slots=True)
class Case:
    """One event at one trigger, while it is judged."""

    compiled: CompiledTrigger
    state: TriggerState
    sight: Sight
    prior: Delivery | None = None  # as it waited; None when it is seen for the first time
    dedupe_key: str | None = None
    group_key: str | None = None
    group_id: str | None = None
    ticket: int = 0
    is_forced: bool = False  # an operator wants it now: pause and throttle do not apply
    is_head: bool = False  # the first in line: nobody is before it
    _id: str | None = None

    @property
    def shadow(self) -> bool:
        return self.compiled.spec.status is TriggerStatus.SHADOW

    @property
    def delivery_id(self) -> str:
        """The same for the same trigger and event, whenever it is worked out."""
        if self._id is None:
            self._id = self.prior.id if self.prior is not None else self._derived()
        return self._id

    def _derived(self) -> str:
        stored = self.sight.stored
        at_ms = int(stored.received_at.timestamp() * 1000)
        return derived_id(at_ms, "delivery", self.compiled.trigger.id, str(stored.position))


class Ongoing:
    """One pass, with all it has changed so far."""

    def __init__(self, state: State, inputs: PassInputs, past: Past, start: Starter) -> None:
        self.state, self.inputs, self.past, self.start = state, inputs, past, start
        self.at, self.number, self.limits = inputs.judged_at, inputs.number, inputs.limits
        self.changed: dict[str, Delivery] = {}
        self.created: set[str] = set()
        self.launches: list[Launch] = []
        self.refusals: dict[str, str] = {}
        self.held: dict[int, Held] = {}
        self.released: list[int] = []
        self.pauses: dict[str, Pause | None] = {}
        self.touched_sources: set[SourceName] = set()
        self.source_pauses: set[SourceName] = set()
        self.failures: set[str] = set()  # triggers whose failures changed
        self.tallies: dict[str, TriggerTally] = {}
        self.sources: dict[SourceName, SourceTally] = {}
        self.incidents: list[LoopStopped] = []
        self.told: set[tuple[str, str]] = set()
        self._looked: dict[int, Candidates] = {}
        self._looks: Counter[int] = Counter()
        self.special: set[str] = set()  # triggers that may not judge new events at once
        self._holders: dict[_Key, Holder | None] = {}
        self._launched: Counter[_Key] = Counter()

    def event_at(self, position: int) -> Stored | None:
        """An event of this pass or of an earlier one."""
        return self.inputs.sights.stored(position) or self.past.event_at(position)

    def look(self, candidates: Candidates) -> None:
        """Count an event as filtered by all of its candidates; a match takes it back for one."""
        # By identity: the roster remembers its tuples, and hashing one costs as much as a match.
        self._looked[id(candidates)] = candidates
        self._looks[id(candidates)] += 1

    def count_filtered(self) -> int:
        """Spread the looks over the counters; how many (event, trigger) pairs there were."""
        for name, candidates in self._looked.items():
            for compiled in candidates:
                self.tally(compiled).filtered += self._looks[name]
        return sum(len(c) * self._looks[name] for name, c in self._looked.items())

    def tally(self, compiled: CompiledTrigger) -> TriggerTally:
        """The counters of a trigger."""
        trigger = compiled.trigger
        found = self.tallies.get(trigger.id)
        if found is None:
            found = self.tallies[trigger.id] = TriggerTally(trigger.workflow_slug)
        return found

    def source_tally(self, name: SourceName) -> SourceTally:
        """The counters of a source."""
        found = self.sources.get(name)
        if found is None:
            found = self.sources[name] = SourceTally()
        return found

    def holder_of(self, trigger_id: str, key: str, *, shadow: bool) -> Holder | None:
        """Who holds an idempotency key, this pass included."""
        name = (trigger_id, key, shadow)
        if name in self._holders:
            return self._holders[name]
        return self.past.holder_of(trigger_id, key, shadow=shadow)

    def launches_in(self, trigger_id: str, correlation_id: str, *, shadow: bool) -> int:
        """How many deliveries are launched in a correlation, this pass included."""
        before = self.past.launches_in(trigger_id, correlation_id, shadow=shadow)
        return before + self._launched[trigger_id, correlation_id, shadow]

    def settle(
        self, case: Case, status: Status, stage: Stage, reason: Reason | None = None, **more: Any
    ) -> Delivery:
        """Decide what a case has come to; `more` are other fields of the delivery."""
        prior, waits = case.prior, status in WAITING
        said: dict[str, Any] = {
            "trigger_version": case.compiled.trigger.version,
            "status": status,
            "stage": stage,
            "reason": reason,
            "updated_at": self.at,
            "last_pass": self.number,
            "ticket": case.ticket or case.sight.stored.position,
            "dedupe_key": case.dedupe_key,
            "group_key": case.group_key,
            "group_id": case.group_id,
            "next_attempt_at": None,
            "throttled_until": None,
            "retry_state": RetryState.SCHEDULED if waits else RetryState.PENDING,
            **more,
        }
        if status is Status.THROTTLED or status is Status.FAILED:
            said["retry_attempts"] = (prior.retry_attempts if prior else 0) + 1
        if prior is None:
            delivery = self._new(case, said)
            self.created.add(delivery.id)
        else:
            delivery = replace(prior, shadow=case.shadow, **said)
        case.prior = delivery
        self.keep(case.state, delivery)
        self._count(case.compiled, delivery)
        return delivery

    def finish(
        self,
        state: TriggerState,
        delivery: Delivery,
        reason: Reason,
        *,
        stage: Stage | None = None,
        retry_state: RetryState = RetryState.PENDING,
        metadata: dict[str, JsonValue] | None = None,
    ) -> None:
        """End the wait of a delivery without judging it: it is skipped."""
        ended = replace(
            delivery, status=Status.SKIPPED, stage=stage or delivery.stage, reason=reason,
            updated_at=self.at, last_pass=self.number, next_attempt_at=None, throttled_until=None,
            retry_state=retry_state, retry_metadata={**delivery.retry_metadata, **(metadata or {})},
        )  # fmt: skip
        self.keep(state, ended)
        compiled = self.inputs.roster.get(delivery.trigger_id)
        if compiled is not None:
            self._count(compiled, ended)

    def keep(self, state: TriggerState, delivery: Delivery) -> None:
        """Note what a delivery has come to, and let the state and the keys follow."""
        before = self.changed.get(delivery.id) or state.waiting.get(delivery.id)
        self.changed[delivery.id] = delivery
        if before is not None or delivery.status in WAITING:
            state.put(delivery)
        if before is not None and before.dedupe_key is not None and before.holds_key:
            # A key has one holder, and this was it.
            self._holders[before.trigger_id, before.dedupe_key, before.shadow] = None
        if delivery.dedupe_key is not None and delivery.status in HOLDING:
            name = (delivery.trigger_id, delivery.dedupe_key, delivery.shadow)
            self._holders[name] = Holder(delivery.id, delivery.run_id)
        if delivery.status is Status.LAUNCHED or delivery.status is Status.MATCHED:
            self._count_launch(delivery)

    def _count_launch(self, delivery: Delivery) -> None:
        if delivery.correlation_id is not None:
            self._launched[delivery.trigger_id, delivery.correlation_id, delivery.shadow] += 1

    def _new(self, case: Case, said: dict[str, Any]) -> Delivery:
        trigger, stored = case.compiled.trigger, case.sight.stored
        envelope = stored.envelope
        return Delivery(
            id=case.delivery_id,
            tenant_id=trigger.tenant_id,
            trigger_id=trigger.id,
            workflow_slug=trigger.workflow_slug,
            event_id=envelope.id,
            event_position=stored.position,
            event_type=envelope.type,
            event_source=envelope.source,
            correlation_id=envelope.correlation_id,
            created_at=self.at,
            first_pass=self.number,
            shadow=case.shadow,
            **said,
        )

    def _count(self, compiled: CompiledTrigger, delivery: Delivery) -> None:
        tally, status = self.tally(compiled), delivery.status
        if status is Status.LAUNCHED:
            tally.launched += 1
        elif status is Status.SKIPPED:
            tally.skipped += 1
        elif status is Status.THROTTLED:
            tally.throttled += 1
        elif status is Status.FAILED or status is Status.DEAD:
            tally.failed += 1
            tally.dead += status is Status.DEAD
            tally.last_error = delivery.last_error
        elif delivery.stage is Stage.PAUSED:
            tally.paused += 1
        tally.last_status = str(status)
