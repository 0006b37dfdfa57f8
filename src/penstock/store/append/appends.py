"""Offer appends to programs: judge the events, let them share a commit, read for a decision.

    store = appends.of("acme")
    found = store.read(criteria)
    store.append([event], Condition(criteria, after=found.after))

Events are judged by the one `judge`, so what is appended is what would have been published. A bad
one refuses the whole append and becomes no dead letter: redriven, a decision's event would come
without its condition. Everything has an awaited face.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from penstock.base.clock import Clock
from penstock.envelope.envelope import DEFAULT_TENANT, JsonValue
from penstock.ingress.lot import Judged
from penstock.ingress.protect import NOTHING_PERSONAL, Protect
from penstock.registry.registry import Registry
from penstock.store.append.condition import Condition, Criteria
from penstock.store.append.coordinator import Coordinator
from penstock.store.append.judging import Calling, entries_of, judge_all
from penstock.store.append.request import Appended, Found, Log, Request, request
from penstock.store.append.wire import check_types

_FEW = 16  # events that are judged in the event loop: about a millisecond
READ_MAX = 5_000  # events of one read; a decision reads on from there


class Appends:
    """The appends of one process."""

    def __init__(
        self,
        log: Log,
        *,
        registry: Callable[[], Registry],
        clock: Clock,
        protect: Protect = NOTHING_PERSONAL,
    ) -> None:
        self.log = log
        self.coordinator = Coordinator(log)
        self.registry = registry
        self._clock = clock
        self._protect = protect

    def of(self, tenant_id: str = DEFAULT_TENANT) -> EventStore:
        """The store of one tenant."""
        return EventStore(self, Calling(tenant_id))

    def calling(self, calling: Calling) -> EventStore:
        """The store as one caller may use it."""
        return EventStore(self, calling)

    def prepare(
        self, calling: Calling, events: Sequence[JsonValue], condition: Condition | None
    ) -> Request:
        """The append as it goes to the log; EventRefused or ConditionInvalid when it may not."""
        return self.judge(calling, events, condition).hidden()

    def judge(
        self, calling: Calling, events: Sequence[JsonValue], condition: Condition | None
    ) -> Draft:
        """The append before anything personal is hidden in it; asks nobody."""
        registry, now = self.registry(), self._clock.now()
        if condition is not None:
            check_types(condition.criteria, registry, "/condition/query")
            check_types(condition.fail_if_exists, registry, "/condition/failIfExists")
        # Readers are shown milliseconds; what they are shown is what is stored.
        whole = now.replace(microsecond=now.microsecond // 1000 * 1000)
        judged = judge_all(events, calling, registry, now=whole)
        return Draft(calling, judged, condition, registry, self._protect)

    def close(self) -> None:
        """Commit what waits, and let go of the log."""
        self.coordinator.close()


class Draft(NamedTuple):
    """An append that is judged, and may still hold what is personal."""

    calling: Calling
    judged: Sequence[Judged]
    condition: Condition | None
    registry: Registry
    protect: Protect

    @property
    def is_personal(self) -> bool:
        """Whether hiding may have to ask PostgreSQL for keys."""
        return self.protect.has_marks(self.judged, self.registry)

    def hidden(self) -> Request:
        """The append as it goes to the log."""
        judged = self.protect.hide(self.judged, self.registry)
        entries = entries_of(judged, self.calling)
        return request(self.calling.tenant_id, entries, self.condition)


class EventStore:
    """The store of one tenant: append on a condition, and read what a decision depends on."""

    def __init__(self, appends: Appends, calling: Calling) -> None:
        self._appends = appends
        self._calling = calling

    def append(self, events: Sequence[JsonValue], condition: Condition | None = None) -> Appended:
        """Append events in wire form, all or none, durable and readable on return.

        AppendConflict when the condition forbids it. An append that is stored already, by the ids
        of its events, is answered as it was the first time.
        """
        prepared = self._appends.prepare(self._calling, events, condition)
        return self._appends.coordinator.append(prepared)

    async def aappend(
        self, events: Sequence[JsonValue], condition: Condition | None = None
    ) -> Appended:
        """As `append`, awaited."""
        if len(events) > _FEW:
            prepare = self._appends.prepare
            prepared = await asyncio.to_thread(prepare, self._calling, events, condition)
        else:  # a thread would cost more than the work
            draft = self._appends.judge(self._calling, events, condition)
            is_slow = draft.is_personal
            prepared = await asyncio.to_thread(draft.hidden) if is_slow else draft.hidden()
        return await self._appends.coordinator.append_async(prepared)

    def read(self, criteria: Criteria, *, after: int = 0, limit: int = READ_MAX) -> Found:
        """The first matching events after a position, oldest first, and what to append `after`.

        Both are of one moment. When there are more events than `limit`, `after` is the last one
        read: an append that takes it for everything is refused.
        """
        check_types(criteria, self._appends.registry(), "/query")
        return self._appends.log.read(self._calling.tenant_id, criteria, after=after, limit=limit)

    async def aread(self, criteria: Criteria, *, after: int = 0, limit: int = READ_MAX) -> Found:
        """As `read`, awaited."""
        return await asyncio.to_thread(partial(self.read, criteria, after=after, limit=limit))
