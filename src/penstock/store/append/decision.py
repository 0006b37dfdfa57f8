"""Decide on what has happened, and record the decision only if nothing else happened meanwhile.

    def seats(taken, event): return taken | {event.payload["seat"]}
    def book(taken): return [booking] if booking["payload"]["seat"] not in taken else []
    decide(store, Query().type("seat.booked").tag("show", "42"), seats, book, initial=frozenset())

    read ──▶ fold ──▶ decide ──▶ append ── conflict ──▶ pause ──▶ read …

`fold` and the decision are called again after a conflict, with what is there then, so they must
not have side effects. The steps are one generator; the blocking and the awaiting face differ in how
they take a step. A store is whatever has `read` and `append`: ours, or one over HTTP.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from penstock.base.backoff import Backoff
from penstock.base.errors import AppendConflict
from penstock.base.ids import uuid7
from penstock.envelope.envelope import JsonObject, JsonValue, Stored
from penstock.store.append.condition import Condition, Criteria, Criterion, criteria_of
from penstock.store.append.request import Appended, Found
from penstock.store.query import Query

_State = TypeVar("_State")
Meant: TypeAlias = Query | Iterable[Query | Criterion]  # several are alternatives
_PAUSES = Backoff(base_s=0.002, max_s=0.2)
_PAGE = 5_000


class DecisionStore(Protocol):
    """Where decisions read and append."""

    def read(self, criteria: Criteria, *, after: int = ..., limit: int = ...) -> Found: ...

    def append(
        self, events: Sequence[JsonValue], condition: Condition | None = ...
    ) -> Appended: ...


class AsyncDecisionStore(Protocol):
    """The same, awaited."""

    async def aread(self, criteria: Criteria, *, after: int = ..., limit: int = ...) -> Found: ...

    async def aappend(
        self, events: Sequence[JsonValue], condition: Condition | None = ...
    ) -> Appended: ...


@dataclass(frozen=True, slots=True)
class Decided(Generic[_State]):
    """What was decided: on which state, and where its events are, if there are any."""

    state: _State
    appended: Appended | None
    attempts: int


@dataclass(frozen=True, slots=True)
class _Read:
    criteria: Criteria
    after: int


@dataclass(frozen=True, slots=True)
class _Append:
    events: Sequence[JsonValue]
    condition: Condition


_Step: TypeAlias = _Read | _Append | float  # a number is a pause in seconds
_Heard: TypeAlias = Found | Appended | AppendConflict | None
_Steps: TypeAlias = Generator[_Step, _Heard, Decided[_State]]


def decide(
    store: DecisionStore,
    query: Meant,
    fold: Callable[[_State, Stored], _State],
    decision: Callable[[_State], Sequence[JsonObject]],
    *,
    initial: _State,
    attempts: int = 10,
    sleep: Callable[[float], object] = time.sleep,
) -> Decided[_State]:
    """Fold what the query finds, append what is decided on it; again when something came between.

    AppendConflict after the last attempt. A decision may be empty, and then nothing is appended.
    """
    steps = _steps(query, fold, decision, initial, attempts)
    heard: _Heard = None
    while True:
        try:
            step = steps.send(heard)
        except StopIteration as done:
            return _decided(done)
        heard = None
        try:
            match step:
                case _Read(criteria, after):
                    heard = store.read(criteria, after=after, limit=_PAGE)
                case _Append(events, condition):
                    heard = store.append(events, condition)
                case _:
                    sleep(step)
        except AppendConflict as conflict:
            heard = conflict


async def adecide(
    store: AsyncDecisionStore,
    query: Meant,
    fold: Callable[[_State, Stored], _State],
    decision: Callable[[_State], Sequence[JsonObject]],
    *,
    initial: _State,
    attempts: int = 10,
) -> Decided[_State]:
    """As `decide`, awaited."""
    steps = _steps(query, fold, decision, initial, attempts)
    heard: _Heard = None
    while True:
        try:
            step = steps.send(heard)
        except StopIteration as done:
            return _decided(done)
        heard = None
        try:
            match step:
                case _Read(criteria, after):
                    heard = await store.aread(criteria, after=after, limit=_PAGE)
                case _Append(events, condition):
                    heard = await store.aappend(events, condition)
                case _:
                    await asyncio.sleep(step)
        except AppendConflict as conflict:
            heard = conflict


def _decided(done: StopIteration) -> Decided[_State]:
    decided: Decided[_State] = done.value
    return decided


def _steps(
    query: Meant,
    fold: Callable[[_State, Stored], _State],
    decision: Callable[[_State], Sequence[JsonObject]],
    initial: _State,
    attempts: int,
) -> _Steps[_State]:
    criteria, rng = criteria_of(query), random.SystemRandom()
    for attempt in range(1, attempts + 1):
        state, after = initial, 0
        while True:
            found = yield _Read(criteria, after)
            if not isinstance(found, Found):
                raise TypeError(f"expected Found, heard {type(found).__name__}")
            for event in found.events:
                state = fold(state, event)
            is_all = len(found.events) < _PAGE
            after = found.after
            if is_all:
                break
        events = _with_ids(decision(state))
        if not events:
            return Decided(state, None, attempt)
        heard = yield _Append(events, Condition(criteria, after))
        if isinstance(heard, Appended):
            return Decided(state, heard, attempt)
        if isinstance(heard, AppendConflict) and (heard.exists or attempt == attempts):
            raise heard
        yield _PAUSES.delay_s(attempt, rng)
    raise ValueError(f"expected at least one attempt, found {attempts}")


def _with_ids(events: Sequence[JsonObject]) -> list[JsonValue]:
    """The events with ids of their own, so that an append that is sent again is known."""
    return [event if "id" in event else {"id": uuid7(), **event} for event in events]
