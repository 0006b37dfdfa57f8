"""Choose which waiting appends share a commit: those that cannot see one another.

A log checks the conditions of a batch before it stores any of it. So an append whose criteria could
match an event of the batch, or which has an id that is in it already, waits for the next one; then
the log itself gives the exact answer. Being careful costs a commit, never an answer. Pure.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol, TypeVar

from penstock.store.append.condition import Criterion
from penstock.store.append.request import Request

EVENTS_MAX = 1_000  # of one batch; a single request may have more


class Waiting(Protocol):
    """Whatever waits with a request."""

    @property
    def request(self) -> Request: ...


_Waiting = TypeVar("_Waiting", bound=Waiting)


class Footprint:
    """What the events of a batch carry, by tenant."""

    def __init__(self) -> None:
        self._types: set[tuple[str, str]] = set()
        self._tags: set[tuple[str, str, str]] = set()
        self._ids: set[tuple[str, str]] = set()

    def overlaps(self, request: Request) -> bool:
        """Whether the request might be answered otherwise if the batch were stored first."""
        tenant = request.tenant_id
        return any(
            (tenant, entry.accepted.envelope.id) in self._ids
            for entry in request.entries
            if not entry.is_new
        ) or any(
            self._may_match(tenant, criterion) for criterion, _, _ in request.condition.clauses()
        )

    def add(self, request: Request) -> None:
        """Take the request's events in."""
        tenant = request.tenant_id
        for entry in request.entries:
            event = entry.accepted.envelope
            self._ids.add((tenant, event.id))
            self._types.add((tenant, event.type))
            self._tags.update((tenant, key, value) for key, value in event.tags.items())

    def _may_match(self, tenant: str, criterion: Criterion) -> bool:
        return (
            not criterion.types or any((tenant, name) in self._types for name in criterion.types)
        ) and all((tenant, key, value) in self._tags for key, value in criterion.tags)


def take(waiting: deque[_Waiting], *, events_max: int = EVENTS_MAX) -> list[_Waiting]:
    """Take the next batch from the queue; what must wait stays there in its order."""
    first = waiting.popleft()
    batch, footprint = [first], Footprint()
    footprint.add(first.request)
    room = events_max - len(first.request.entries)
    left: list[_Waiting] = []
    while waiting:
        each = waiting.popleft()
        if len(each.request.entries) > room or footprint.overlaps(each.request):
            left.append(each)
        else:
            batch.append(each)
            footprint.add(each.request)
            room -= len(each.request.entries)
    waiting.extendleft(reversed(left))
    return batch
