"""Publish events from a program: validated, retried, and durable when the call returns.

    with Publisher(source="metastore.api") as publisher:
        publisher.publish("metastore.record.updated", payload={"namespace": "flags", "key": "a"})

    claim ──▶ fill ──▶ refusal? ──▶ send ⇄ wait ──▶ Outcome | EventRefused | Undelivered

Without a sink the address and the token come from PENSTOCK_URL and PENSTOCK_TOKEN. The blocking and
the awaiting face differ in two loops of five lines; everything they decide is in pure modules.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Self, Unpack

from penstock.base.backoff import Backoff
from penstock.base.clock import Clock, SystemClock
from penstock.base.errors import EventRefused, QueueUnavailable
from penstock.base.ids import uuid7
from penstock.envelope.context import get_workflow_event_context
from penstock.envelope.envelope import JsonObject
from penstock.publish.address import open_sink
from penstock.publish.cause import current_cause
from penstock.publish.delivery import Patience, advance, begin
from penstock.publish.port import AsyncSink, Connection, Outcome, Result, Sink
from penstock.publish.prepare import Fields, Publishable, Surroundings, claim, fill
from penstock.publish.refusal import refusal
from penstock.registry.registry import Registry


class Publisher:
    """Sends events to one sink. Threads and tasks may share it."""

    def __init__(
        self,
        sink: Sink | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        source: str | None = None,
        registry: Registry | None = None,
        backoff: Backoff | None = None,
        attempts: int = 6,
        clock: Clock | None = None,
        sleep: Callable[[float], object] = time.sleep,
        asleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._patience = Patience(attempts, backoff or Backoff())
        self._opened: Connection | None = None
        if isinstance(sink, str):
            raise TypeError("expected a sink, found an address; say url=… and token=…")
        if sink is None:
            sink = self._opened = open_sink(url, token, os.environ)
        self._sink: Sink | None = sink
        self._source = source
        self._registry = registry
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._asleep = asleep
        self._rng = rng or random.SystemRandom()

    def publish(self, event: Publishable, /, **fields: Unpack[Fields]) -> Outcome:
        """Publish one event and return once it is durable.

        `event` is a type name, a declared EventType, or a whole event in wire form. Raises
        EventRefused when it may not be published, QueueUnavailable when it could not be stored.
        """
        return _only(self._deliver([self._prepared(event, fields)]))

    async def apublish(self, event: Publishable, /, **fields: Unpack[Fields]) -> Outcome:
        """As `publish`, awaited."""
        return _only(await self._adeliver([self._prepared(event, fields)]))

    def publish_many(self, events: Iterable[Publishable]) -> list[Result]:
        """Publish whole events; one answer per event, in order. A bad one harms no other."""
        return self._deliver([self._prepared(event, {}) for event in events])

    async def apublish_many(self, events: Iterable[Publishable]) -> list[Result]:
        """As `publish_many`, awaited."""
        return await self._adeliver([self._prepared(event, {}) for event in events])

    def _prepared(self, event: Publishable, fields: Fields) -> JsonObject | EventRefused:
        """The event as it will be sent, however often that takes, or why it may not be."""
        now = self._clock.now()
        around = Surroundings(now, uuid7(), get_workflow_event_context(), current_cause())
        try:
            filled = fill(claim(event, fields, source=self._source), around)
        except EventRefused as refused:
            return refused
        return refusal(filled, now=now, registry=self._registry) or filled

    def _deliver(self, prepared: Sequence[JsonObject | EventRefused]) -> list[Result]:
        sink, delivery = self._open_sink(), begin(prepared)
        while delivery.unsent:
            answer: list[Result] | QueueUnavailable
            try:
                answer = sink.send(delivery.unsent)
            except QueueUnavailable as error:
                answer = error
            delivery = advance(delivery, answer, self._patience, self._rng)
            if delivery.pause_s:
                self._sleep(delivery.pause_s)
        return delivery.answers()

    async def _adeliver(self, prepared: Sequence[JsonObject | EventRefused]) -> list[Result]:
        send, delivery = _awaiting(self._open_sink()), begin(prepared)
        while delivery.unsent:
            answer: list[Result] | QueueUnavailable
            try:
                answer = await send(delivery.unsent)
            except QueueUnavailable as error:
                answer = error
            delivery = advance(delivery, answer, self._patience, self._rng)
            if delivery.pause_s:
                await self._asleep(delivery.pause_s)
        return delivery.answers()

    def _open_sink(self) -> Sink:
        if self._sink is None:
            raise RuntimeError("expected an open publisher, found one that was closed")
        return self._sink

    def close(self) -> None:
        """Publish no more. A sink that was handed in stays open: it belongs to the caller."""
        self._sink = None
        if self._opened is not None:
            self._opened.close()

    async def aclose(self) -> None:
        """As `close`, awaited."""
        self._sink = None
        if self._opened is not None:
            await self._opened.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def _awaiting(sink: Sink) -> Callable[[Sequence[JsonObject]], Awaitable[list[Result]]]:
    """The sink's own awaitable face, or its blocking one on a thread."""
    if isinstance(sink, AsyncSink):
        return sink.asend
    return lambda events: asyncio.to_thread(sink.send, events)


def _only(results: list[Result]) -> Outcome:
    """The one answer; a refusal is raised."""
    (result,) = results
    if isinstance(result, EventRefused):
        raise result
    return result
