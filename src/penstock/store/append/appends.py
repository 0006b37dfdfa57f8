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

from penstock.base.clock import Clock
from penstock.base.errors import EventRefused
from penstock.envelope.envelope import DEFAULT_TENANT, JsonValue
from penstock.ingress.lot import Judged
from penstock.ingress.protect import NOTHING_PERSONAL, Protect
from penstock.registry.registry import Registry
from penstock.store.append.condition import Condition, Criteria
from penstock.store.append.coordinator import Coordinator
from penstock.store.append.judging import Calling, Said, entries_of, judge_all
from penstock.store.append.request import Appended, Found, Log, Request, request
from penstock.store.append.wire import check_types

_FEW = 16  # events that are judged while others wait: about a millisecond
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
        self.coordinator = Coordinator(log, self.judge)
        self.registry = registry
        self._clock = clock
        self._protect = protect

    def of(self, tenant_id: str = DEFAULT_TENANT) -> EventStore:
        """The store of one tenant."""
        return EventStore(self, Calling(tenant_id))

    def calling(self, calling: Calling) -> EventStore:
        """The store as one caller may use it."""
        return EventStore(self, calling)

    def prepare(self, said: Said) -> Request:
        """The append as it goes to the log; EventRefused or ConditionInvalid when it may not."""
        (found,) = self.judge([said])
        if isinstance(found, Exception):
            raise found
        return found

    def judge(self, said: Sequence[Said]) -> list[Request | Exception]:
        """Each as it goes to the log, or why it may not."""
        registry, now = self.registry(), self._clock.now()
        # Readers are shown milliseconds; what they are shown is what is stored.
        whole = now.replace(microsecond=now.microsecond // 1000 * 1000)
        judged = judge_all(said, registry, now=whole)
        return [self._request(*each, registry) for each in zip(said, judged, strict=True)]

    def _request(
        self, said: Said, judged: list[Judged] | EventRefused, registry: Registry
    ) -> Request | Exception:
        calling, _, condition = said
        try:
            if condition is not None:
                check_types(condition.criteria, registry, "/condition/query")
                check_types(condition.fail_if_exists, registry, "/condition/failIfExists")
            if isinstance(judged, EventRefused):
                return judged
            entries = entries_of(self._protect.hide(judged, registry), calling)
            return request(calling.tenant_id, entries, condition)
        except Exception as error:  # noqa: BLE001  it is this caller's, and raised there
            return error

    def is_brief(self, events: Sequence[JsonValue]) -> bool:
        """Whether preparing them takes a moment: they are few, and hardly anybody is asked."""
        if len(events) > _FEW:
            return False
        # Whatever shape an event comes in, its type is called that.
        types = [event.get("type") for event in events if isinstance(event, dict)]
        return not self._protect.may_ask(types)

    def close(self) -> None:
        """Commit what waits, and let go of the log."""
        self.coordinator.close()


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
        said = Said(self._calling, events, condition)
        is_brief = self._appends.is_brief(events)
        return self._appends.coordinator.append(said if is_brief else self._appends.prepare(said))

    async def aappend(
        self, events: Sequence[JsonValue], condition: Condition | None = None
    ) -> Appended:
        """As `append`, awaited."""
        said = Said(self._calling, events, condition)
        if self._appends.is_brief(events):
            return await self._appends.coordinator.append_async(said)
        prepared = await asyncio.to_thread(self._appends.prepare, said)
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
