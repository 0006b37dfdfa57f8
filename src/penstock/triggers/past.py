"""Answer for the past from memory: for the twin, for replays and for simulations.

events     LogInMemory, or whatever else can find them
the rest   follows from the deliveries that passes have left
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

from penstock.envelope.envelope import Stored
from penstock.triggers.delivery import Delivery
from penstock.triggers.inputs import Holder
from penstock.triggers.words import Reason, Role, Status

DEPTH_COUNTED_MAX: Final = 64
_LAUNCHED = frozenset({Status.LAUNCHED, Status.MATCHED})


class EventLog(Protocol):
    """Where events are found again."""

    def event_at(self, position: int) -> Stored | None: ...

    def depth_of(self, stored: Stored) -> int: ...


class LogInMemory:
    """Events by position and by id."""

    def __init__(self, events: Iterable[Stored] = ()) -> None:
        self._by_position: dict[int, Stored] = {}
        self._by_id: dict[tuple[str, str], Stored] = {}
        for stored in events:
            self.add(stored)

    def add(self, stored: Stored) -> None:
        """Keep one more event."""
        self._by_position[stored.position] = stored
        self._by_id[stored.envelope.tenant_id, stored.envelope.id] = stored

    def event_at(self, position: int) -> Stored | None:
        """The event of a position."""
        return self._by_position.get(position)

    def depth_of(self, stored: Stored) -> int:
        """How many causes an event has here, one behind the other."""
        depth, seen, cause = 0, {stored.envelope.id}, stored.envelope.causation_id
        while cause is not None and cause not in seen and depth < DEPTH_COUNTED_MAX:
            seen.add(cause)
            found = self._by_id.get((stored.envelope.tenant_id, cause))
            if found is None:
                break
            depth += 1
            cause = found.envelope.causation_id
        return depth


class LogInPassing:
    """The few events that wait, and who caused whom: for walking through a long past once."""

    def __init__(self, causes: Mapping[tuple[str, str], str]) -> None:
        self._causes = causes  # (tenant, event) -> the event that caused it
        self._events: dict[int, Stored] = {}

    def add(self, stored: Stored) -> None:
        """Keep an event that may be asked for again."""
        self._events[stored.position] = stored

    def forget(self, position: int) -> None:
        """Let go of an event that will not be asked for again."""
        self._events.pop(position, None)

    def event_at(self, position: int) -> Stored | None:
        """The event of a position."""
        return self._events.get(position)

    def depth_of(self, stored: Stored) -> int:
        """How many causes an event has; one from before the walk counts, those behind it do not."""
        depth, cause = 0, stored.envelope.causation_id
        while cause is not None and depth < DEPTH_COUNTED_MAX:
            depth += 1
            cause = self._causes.get((stored.envelope.tenant_id, cause))
        return depth


class PastInMemory:
    """What the deliveries that passes have left say about the past."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.deliveries: dict[str, Delivery] = {}
        self._holders: dict[tuple[str, str, bool], str] = {}
        self._launches: Counter[tuple[str, str, bool]] = Counter()
        self._loops: set[tuple[str, str]] = set()
        self._times: dict[tuple[str, bool], list[datetime]] = {}

    def remember(self, deliveries: Sequence[Delivery]) -> None:
        """Take in what a pass has changed."""
        for delivery in deliveries:
            self._forget(self.deliveries.get(delivery.id))
        for delivery in deliveries:
            self.deliveries[delivery.id] = delivery
            self._note(delivery)

    def event_at(self, position: int) -> Stored | None:
        """The event of a position."""
        return self._log.event_at(position)

    def depth_of(self, stored: Stored) -> int:
        """How many causes an event has."""
        return self._log.depth_of(stored)

    def holder_of(self, trigger_id: str, key: str, *, shadow: bool) -> Holder | None:
        """The delivery that holds an idempotency key."""
        name = self._holders.get((trigger_id, key, shadow))
        return None if name is None else Holder(name, self.deliveries[name].run_id)

    def launches_in(self, trigger_id: str, correlation_id: str, *, shadow: bool) -> int:
        """How many deliveries are launched in a correlation."""
        return self._launches[trigger_id, correlation_id, shadow]

    def is_loop_told(self, trigger_id: str, correlation_id: str) -> bool:
        """Whether a delivery was skipped as a loop before."""
        return (trigger_id, correlation_id) in self._loops

    def launch_times(self, trigger_id: str, since: datetime, *, shadow: bool) -> Sequence[datetime]:
        """When the trigger launched after an instant."""
        times = self._times.get((trigger_id, shadow), [])
        return times[bisect_right(times, since) :]

    def _forget(self, before: Delivery | None) -> None:
        if before is not None and before.dedupe_key is not None and before.holds_key:
            del self._holders[before.trigger_id, before.dedupe_key, before.shadow]

    def _note(self, delivery: Delivery) -> None:
        trigger_id, shadow = delivery.trigger_id, delivery.shadow
        if delivery.dedupe_key is not None and delivery.holds_key:
            self._holders[trigger_id, delivery.dedupe_key, shadow] = delivery.id
        if delivery.status in _LAUNCHED:
            if delivery.correlation_id is not None:
                self._launches[trigger_id, delivery.correlation_id, shadow] += 1
            if delivery.role is not Role.INCLUDED:
                self._times.setdefault((trigger_id, shadow), []).append(delivery.updated_at)
        elif delivery.reason is Reason.LOOP:
            self._loops.add((trigger_id, delivery.correlation_id or delivery.event_id))
