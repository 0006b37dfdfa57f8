"""Remember which event is being handled, so that what it leads to says so.

    with handling(event):
        publisher.publish(…)    # causationId = event's id, correlationId = event's correlationId

The memory is a ContextVar: it follows asyncio tasks, and another thread or task never sees it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias

from penstock.envelope.envelope import Envelope, Stored
from penstock.publish.port import Outcome

Handled: TypeAlias = Envelope | Stored | Outcome | Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Cause:
    """What an event hands down to the events that it causes."""

    id: str
    correlation_id: str


_current: ContextVar[Cause | None] = ContextVar("penstock_cause", default=None)


def current_cause() -> Cause | None:
    """The event that is being handled here, if any."""
    return _current.get()


@contextmanager
def handling(event: Handled) -> Iterator[Cause]:
    """Whatever is published inside is caused by `event`."""
    cause = cause_of(event)
    token = _current.set(cause)
    try:
        yield cause
    finally:
        _current.reset(token)


def enter(event: Handled) -> None:
    """As `handling`, for the rest of a context that is used for nothing else."""
    _current.set(cause_of(event))


def cause_of(event: Handled) -> Cause:
    """What `event` hands down. A chain whose first event has no correlationId goes by its id."""
    if isinstance(event, Stored):
        event = event.envelope
    if isinstance(event, Envelope):
        return Cause(event.id, event.correlation_id or event.id)
    if isinstance(event, Outcome):
        event = {**event.event, "id": event.id}
    found, correlation = event.get("id"), event.get("correlationId")
    if not isinstance(found, str):
        raise TypeError(f"expected an event with an id, found {found!r} as its id")
    return Cause(found, correlation if isinstance(correlation, str) else found)
