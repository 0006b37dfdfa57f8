"""Keep the waiting deliveries of one trigger where the next pass finds them.

    parked    wait for a pause to end, or for those parked before them; judged from predicates on
    line      wait for room: a launch window that moves on, a run that ends
    timers    wait for an instant: another attempt, quiet, the end of a batch
    groups    what a key has waiting: the newest event, or an open batch

Where a delivery waits follows from its row and the version in force, and from nothing else. Rows
that were just decided and rows that were loaded are placed alike, so a worker that starts afresh
goes on exactly like one that never stopped.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import heappop, heappush
from typing import Final

from penstock.triggers.delivery import Delivery, Pause
from penstock.triggers.result import Failure
from penstock.triggers.roster import Mode
from penstock.triggers.words import Reason, Stage, Status

AT_ONCE: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Batch:
    """Events that will share a run; `lead` is the triggering one once no more may join."""

    id: str
    key: str
    closes_at: datetime
    members: list[tuple[int, str]] = field(default_factory=list)  # position and delivery, in order
    lead: str | None = None

    def copy(self) -> Batch:
        return Batch(self.id, self.key, self.closes_at, list(self.members), self.lead)


class TriggerState:
    """What one trigger's decisions depend on."""

    def __init__(self, trigger_id: str) -> None:
        self.trigger_id = trigger_id
        self.version: int | None = None  # for which `place` has placed; None: not yet
        self.mode = Mode.EVENT
        self.pause: Pause | None = None
        self.failures: list[Failure] = []
        self.active: dict[str, str | None] = {}  # run -> group key
        self._active_keys: Counter[str | None] = Counter()
        self.times: deque[datetime] = deque()  # launches in the throttle window
        self.times_version: int | None = None
        self.waiting: dict[str, Delivery] = {}
        self._clear()

    def _clear(self) -> None:
        self.parked: list[tuple[int, str]] = []
        self.line: list[tuple[int, str]] = []
        self.groups: dict[str, str] = {}  # key -> delivery, or open batch
        self.batches: dict[str, Batch] = {}
        self._due: dict[str, datetime] = {}
        self._timers: list[tuple[datetime, str]] = []

    def copy(self) -> TriggerState:
        """Another one with the same contents."""
        twin = TriggerState(self.trigger_id)
        twin.version, twin.mode, twin.pause = self.version, self.mode, self.pause
        twin.failures, twin.active = list(self.failures), dict(self.active)
        twin._active_keys = Counter(self._active_keys)
        twin.times, twin.times_version = deque(self.times), self.times_version
        twin.waiting, twin.groups = dict(self.waiting), dict(self.groups)
        twin.parked, twin.line = list(self.parked), list(self.line)
        twin.batches = {name: batch.copy() for name, batch in self.batches.items()}
        twin._due, twin._timers = dict(self._due), list(self._timers)
        return twin

    def is_paused(self, at: datetime) -> bool:
        """Whether launches are held back."""
        return self.pause is not None and self.pause.is_open(at)

    def is_active(self, key: str) -> bool:
        """Whether a run of the group is active."""
        return self._active_keys[key] > 0

    def settle_in(self, version: int, mode: Mode) -> None:
        """Place everything anew for the version in force."""
        self._clear()
        self.version, self.mode = version, mode
        # The triggering delivery of a closed batch comes first, so that its members open none.
        for delivery in sorted(self.waiting.values(), key=lambda d: d.stage is Stage.BATCH):
            self._place(delivery)

    def put(self, delivery: Delivery) -> None:
        """Keep a delivery that waits, or forget one that no longer does."""
        if delivery.id in self.waiting:
            self._remove(self.waiting.pop(delivery.id))
        if delivery.is_waiting:
            self.waiting[delivery.id] = delivery
            self._place(delivery)

    def run_started(self, run_id: str, key: str | None) -> None:
        """Count a run as active until it ends."""
        if run_id not in self.active:
            self.active[run_id] = key
            self._active_keys[key] += 1

    def run_ended(self, run_id: str) -> None:
        """Free what an active run took up; the newest event of its group may go on."""
        if run_id not in self.active:
            return
        key = self.active.pop(run_id)
        self._active_keys[key] -= 1
        if not self._active_keys[key]:
            del self._active_keys[key]
        if self.mode is Mode.LATEST and key is not None and not self.is_active(key):
            waiting = self.waiting.get(self.groups.get(key, ""))
            if waiting is not None:
                self._place(waiting)

    def take_due(self, at: datetime) -> list[str]:
        """Deliveries and batches whose time has come; give back with `wait_again` what is left."""
        taken: list[str] = []
        while self._timers and self._timers[0][0] <= at:
            due_at, name = heappop(self._timers)
            if self._due.get(name) == due_at:
                del self._due[name]
                taken.append(name)
        return taken

    def wait_again(self, names: Iterable[str]) -> None:
        """Keep what was taken as due, and could not be judged yet."""
        for name in names:
            if name in self.batches and self.batches[name].lead is None:
                self._set_timer(name, self.batches[name].closes_at)
            elif name in self.waiting:
                self._place(self.waiting[name])

    def names_due(self, at: datetime) -> list[str]:
        """What `take_due` would give, left where it is."""
        return [name for name, due_at in self._due.items() if due_at <= at]

    def next_timer(self) -> datetime | None:
        """When the next of the timers rings."""
        while self._timers and self._due.get(self._timers[0][1]) != self._timers[0][0]:
            heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def ticket_of(self, name: str) -> int:
        """The place in line of a delivery, or of a batch: that of its first member."""
        batch = self.batches.get(name)
        if batch is not None and batch.lead is None and batch.members:
            return batch.members[0][0]
        return self.waiting[name].ticket

    def batch_of(self, delivery: Delivery) -> Batch | None:
        """The batch that a waiting delivery is in, if it is in one."""
        # One that another version judged is in none, even if its batch was opened again.
        if delivery.group_id is None or delivery.trigger_version != self.version:
            return None
        return self.batches.get(delivery.group_id)

    def _place(self, delivery: Delivery) -> None:
        name, entry = delivery.id, (delivery.ticket, delivery.id)
        is_old = delivery.trigger_version != self.version
        if not is_old and delivery.group_key is not None:
            self._group(delivery)
        if delivery.reason is Reason.FORCED:
            self._set_timer(name, delivery.next_attempt_at or AT_ONCE)
        elif is_old or delivery.stage is Stage.PAUSED:
            _insert(self.parked, entry)
        elif delivery.status is Status.THROTTLED:
            _insert(self.line, entry)
        elif delivery.stage is Stage.LATEST and delivery.status is Status.PENDING:
            if not self.is_active(delivery.group_key or ""):
                self._set_timer(name, AT_ONCE)
        elif delivery.stage is not Stage.BATCH or delivery.group_id is None:
            self._set_timer(name, delivery.next_attempt_at or AT_ONCE)

    def _group(self, delivery: Delivery) -> None:
        key = delivery.group_key or ""
        if self.mode is Mode.LATEST:
            self.groups[key] = delivery.id
        elif self.mode is Mode.DEBOUNCE:
            if delivery.stage is Stage.DEBOUNCE and delivery.reason is Reason.DEBOUNCING:
                self.groups[key] = delivery.id
        elif self.mode is Mode.BATCH and delivery.group_id is not None:
            self._join(delivery, delivery.group_id)

    def _join(self, delivery: Delivery, batch_id: str) -> None:
        closes_at = delivery.next_attempt_at or AT_ONCE
        batch = self.batches.get(batch_id)
        if batch is None:
            batch = self.batches[batch_id] = Batch(batch_id, delivery.group_key or "", closes_at)
        _insert(batch.members, (delivery.event_position, delivery.id))
        if delivery.stage is not Stage.BATCH:
            self.close(batch, delivery.id)
        elif batch.lead is None:
            batch.closes_at = closes_at
            self.groups[batch.key] = batch_id
            self._set_timer(batch_id, closes_at)

    def close(self, batch: Batch, lead: str) -> None:
        """Let no more join a batch; `lead` is the triggering one."""
        batch.lead = lead
        if self.groups.get(batch.key) == batch.id:
            del self.groups[batch.key]
        self._due.pop(batch.id, None)

    def _remove(self, delivery: Delivery) -> None:
        name, entry = delivery.id, (delivery.ticket, delivery.id)
        _discard(self.parked, entry)
        _discard(self.line, entry)
        self._due.pop(name, None)
        if delivery.group_key is not None and self.groups.get(delivery.group_key) == name:
            del self.groups[delivery.group_key]
        batch = self.batch_of(delivery)
        if batch is not None:
            _discard(batch.members, (delivery.event_position, name))
            if not batch.members:
                self._forget(batch)

    def _forget(self, batch: Batch) -> None:
        del self.batches[batch.id]
        self._due.pop(batch.id, None)
        if self.groups.get(batch.key) == batch.id:
            del self.groups[batch.key]

    def _set_timer(self, name: str, at: datetime) -> None:
        if self._due.get(name) != at:
            self._due[name] = at
            heappush(self._timers, (at, name))


def _insert(entries: list[tuple[int, str]], entry: tuple[int, str]) -> None:
    if not entries or entries[-1] < entry:
        entries.append(entry)
        return
    place = bisect_left(entries, entry)
    if place == len(entries) or entries[place] != entry:
        insort(entries, entry)


def _discard(entries: list[tuple[int, str]], entry: tuple[int, str]) -> None:
    place = bisect_left(entries, entry)
    if place < len(entries) and entries[place] == entry:
        del entries[place]
