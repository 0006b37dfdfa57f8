"""Say what a publisher needs of whatever takes its events.

    Publisher ── send ──▶ Sink ──▶ a server over HTTP, the door of this process, an EventBus

A sink answers per event, in order, or raises. It may answer for the first few only: that means
that it could not take the rest, and that nothing of the rest was stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from penstock.base.errors import EventRefused, QueueUnavailable
from penstock.envelope.envelope import JsonObject


@dataclass(frozen=True, slots=True)
class Outcome:
    """An event that is durable: `accepted` now, or a `duplicate` of one accepted before."""

    id: str
    status: Literal["accepted", "duplicate"]
    accepted_at: str
    event: JsonObject


Result: TypeAlias = Outcome | EventRefused


class Undelivered(QueueUnavailable):
    """The queue stayed away for every attempt.

    `unsent` are the events, ids filled in, that got no answer: publish these, not fresh copies, and
    whatever did arrive after all becomes a duplicate. `results` has an answer, or None, per event.
    """

    def __init__(
        self,
        cause: QueueUnavailable,
        *,
        unsent: Sequence[JsonObject],
        results: Sequence[Result | None],
    ) -> None:
        super().__init__(cause.detail, disk_full=cause.disk_full, retry_after_s=cause.retry_after_s)
        self.unsent = tuple(unsent)
        self.results = tuple(results)


class Sink(Protocol):
    """Whatever makes events durable, or hands them on."""

    def send(self, events: Sequence[JsonObject]) -> list[Result]:
        """One answer per event, in order; QueueUnavailable when none could be taken."""
        ...


@runtime_checkable
class AsyncSink(Protocol):
    """A sink that can also be awaited."""

    async def asend(self, events: Sequence[JsonObject]) -> list[Result]:
        """As `send`, without holding a thread."""
        ...


class Connection(Sink, Protocol):
    """A sink that somebody opened and has to close."""

    def close(self) -> None: ...

    async def aclose(self) -> None: ...
