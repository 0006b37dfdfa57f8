"""Hand events round inside one process: subscribe by type, glob or `*`, publish, react.

    publish ── check ──▶ a letter per wanted mailbox ──▶ one reader per mailbox ──▶ handler
                                                             └─ error ──▶ on_error, counted

A failing handler harms neither the publisher nor another subscriber. Each subscriber sees events in
the order of publishing, from whatever thread or task. A handler runs in the context its event was
published in, as the cause of what it publishes itself. The bus is a Sink: `Publisher(bus)` works.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from typing import Unpack

from penstock.base.clock import Clock, SystemClock, format_instant
from penstock.base.errors import EventRefused
from penstock.base.ids import uuid7
from penstock.envelope import check
from penstock.envelope.envelope import Envelope, JsonObject
from penstock.publish import cause
from penstock.publish.dispatch import Dispatcher, Failure, log_failure
from penstock.publish.port import Outcome, Result
from penstock.publish.prepare import Fields, Publishable
from penstock.publish.publisher import Publisher
from penstock.publish.subscription import Handler, Letter, Subscription
from penstock.registry.declare import EventType
from penstock.registry.registry import Registry


class EventBus:
    """Subscribers of one process. Threads and tasks may share it."""

    def __init__(
        self,
        *,
        source: str | None = None,
        registry: Registry | None = None,
        on_error: Callable[[Failure], object] = log_failure,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._publisher = Publisher(self, source=source, registry=registry, clock=self._clock)
        self._dispatcher = Dispatcher(on_error)
        self._lock = threading.RLock()
        self._subscriptions: list[Subscription] = []

    @property
    def errors(self) -> int:
        """How many calls of handlers have failed."""
        return self._dispatcher.errors

    def subscribe(self, what: str | EventType, handler: Handler) -> Subscription:
        """Call `handler` with every event of a type, of a glob (`metastore.**`), or of all (`*`).

        Subscribed by EventType, it is called only with payloads that fit the type's model.
        """
        return self._add(what, handler, once=False)

    def subscribe_once(self, what: str | EventType, handler: Handler) -> Subscription:
        """Call `handler` with the next such event, and never again."""
        return self._add(what, handler, once=True)

    def unsubscribe(self, handler: Handler, what: str | EventType | None = None) -> int:
        """End every subscription of `handler`, or only those to `what`; how many there were."""
        pattern = what.name if isinstance(what, EventType) else what
        with self._lock:
            ending = [
                subscription
                for subscription in self._subscriptions
                if subscription.handler == handler and pattern in (None, subscription.pattern)
            ]
            for subscription in ending:
                subscription.cancel()
        return len(ending)

    def publish(self, event: Publishable, /, **fields: Unpack[Fields]) -> Outcome:
        """Check the event and hand it round; EventRefused when it is not fit to be.

        Blocking handlers have run when this returns. Under a running event loop awaitable ones are
        left to the loop (`settle` waits for them); without one they have run, too.
        """
        return self._publisher.publish(event, **fields)

    async def apublish(self, event: Publishable, /, **fields: Unpack[Fields]) -> Outcome:
        """As `publish`; awaitable handlers have run as well when it returns."""
        return await self._publisher.apublish(event, **fields)

    def publish_many(self, events: Iterable[Publishable]) -> list[Result]:
        """As `publish`, one after the other; a refused event is a value among the answers."""
        return self._publisher.publish_many(events)

    async def apublish_many(self, events: Iterable[Publishable]) -> list[Result]:
        """As `publish_many`, awaited."""
        return await self._publisher.apublish_many(events)

    def send(self, events: Sequence[JsonObject]) -> list[Result]:
        """Hand round events in wire form; the Sink that publishers use."""
        results: list[Result] = []
        for event in events:
            result, wanted = self._post(event)
            self._dispatcher.read(wanted)
            results.append(result)
        return results

    async def asend(self, events: Sequence[JsonObject]) -> list[Result]:
        """As `send`, awaited."""
        results: list[Result] = []
        for event in events:
            result, wanted = self._post(event)
            await self._dispatcher.aread(wanted)
            results.append(result)
        return results

    async def settle(self) -> None:
        """Wait until every handler that was left to this event loop has run."""
        await self._dispatcher.settle()

    def _add(self, what: str | EventType, handler: Handler, *, once: bool) -> Subscription:
        subscription = Subscription(what, handler, once=once, lock=self._lock, forget=self._forget)
        with self._lock:
            self._subscriptions.append(subscription)
        return subscription

    def _forget(self, subscription: Subscription) -> None:
        with self._lock:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)

    def _post(self, event: JsonObject) -> tuple[Result, list[Subscription]]:
        """Put the event into every mailbox that wants it, all at once: that fixes the order."""
        now = self._clock.now()
        envelope = check.read(event, accepted_at=now, fallback_id=uuid7(), tenant_id=None)
        if not isinstance(envelope, Envelope):
            detail = "; ".join(f"{fault.pointer}: {fault.detail}" for fault in envelope[:5])
            return EventRefused(detail, reason="envelope_invalid", faults=envelope), []
        context = copy_context()
        context.run(cause.enter, envelope)
        with self._lock:
            wanted = [
                subscription
                for subscription in self._subscriptions
                # A context runs in one place at a time, so every letter has a copy of its own.
                if subscription.post(Letter(envelope, context.copy()))
            ]
        return Outcome(envelope.id, "accepted", format_instant(now), event), wanted
