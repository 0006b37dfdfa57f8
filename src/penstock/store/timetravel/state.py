"""Fold events into a state, one after another, or step by step with what each one changed.

    State ── fold(reducer, events) ──▶ State
    State ── steps(reducer, events) ──▶ Step, Step, …

Pure: the same events always make the same state. A reducer is somebody's code; when it raises, or
gives anything but a JSON object of a bearable size, the error names the event it stumbled over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from penstock.base.errors import NotInProfile, ReducerFailed
from penstock.envelope.codec import decode, encode, load_stored
from penstock.envelope.envelope import JsonObject, Stored
from penstock.store.timetravel.diff import Change, changes_between
from penstock.store.timetravel.reducer import Reducer

STATE_BYTES_MAX = 8 * 1024 * 1024
_ROOMY = {"nodes_max": 2_000_000, "depth_max": 100}  # a state may be larger than an event


@dataclass(frozen=True, slots=True)
class State:
    """What a history came to, up to a position."""

    value: JsonObject = field(default_factory=dict)
    events: int = 0  # folded into it
    position: int = 0  # every event of the history up to here is in it


@dataclass(frozen=True, slots=True)
class Step:
    """One event, and what it changed."""

    event: Stored
    changes: tuple[Change, ...]
    state: State  # after the event


def fold(reducer: Reducer, state: State, events: Sequence[Stored], *, upto: int) -> State:
    """The state after the events, which are all there are up to the position `upto`."""
    value, count = state.value, state.events
    for stored in events:
        if reducer.wants(stored.envelope.type):
            value, count = _reduce(reducer, value, stored), count + 1
    if events:
        value = _plain(reducer, value, events[-1])
    return State(value, count, upto)


def steps(reducer: Reducer, state: State, events: Iterable[Stored]) -> Iterator[Step]:
    """Each event with what it changed; events that the reducer passes by change nothing."""
    stored = None
    for stored in events:
        before, count = state.value, state.events
        after = before
        if reducer.wants(stored.envelope.type):
            # A reducer that writes into what it is given must not reach the step before.
            given = before if reducer.is_built_in else _copy(before)
            after, count = _reduce(reducer, given, stored), count + 1
            if not reducer.is_built_in:
                after = _plain(reducer, after, stored)
        state = State(after, count, stored.position)
        yield Step(stored, tuple(changes_between(before, after)), state)
    if stored is not None:
        _plain(reducer, state.value, stored)


def _reduce(reducer: Reducer, value: JsonObject, stored: Stored) -> JsonObject:
    try:
        result = reducer.reduce(value, stored)
    except Exception as error:
        raise _failed(reducer, stored, f"{type(error).__name__}: {error}") from error
    if type(result) is not dict:
        raise _failed(reducer, stored, f"a {type(result).__name__} that is no object")
    return result


def _plain(reducer: Reducer, value: JsonObject, stored: Stored) -> JsonObject:
    """The state as plain JSON of its own, unless it is none or too large."""
    try:
        written = encode(value)
        if len(written) > STATE_BYTES_MAX:
            raise ReducerFailed(
                f"expected a state of at most {STATE_BYTES_MAX} bytes from {reducer.reference},"
                f" found {len(written)} after {_name(stored)}",
                remedy="Narrow the boundary by tags or type, or use a reducer that keeps less.",
            )
        if reducer.is_built_in:  # it only puts together what the strict decoder has let in
            return value
        return cast("JsonObject", decode(written, bytes_max=STATE_BYTES_MAX, **_ROOMY))
    except NotInProfile as error:
        raise _failed(reducer, stored, f"a state that is not JSON: {error.detail}") from None


def _copy(value: JsonObject) -> JsonObject:
    return cast("JsonObject", load_stored(encode(value)))


def _failed(reducer: Reducer, stored: Stored, found: str) -> ReducerFailed:
    # Somebody's exception may say anything; it must still fit into an answer.
    said = found[:300].replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
    return ReducerFailed(
        f"expected {reducer.reference} to give a state for {_name(stored)}, found {said}"
    )


def _name(stored: Stored) -> str:
    envelope = stored.envelope
    return f"event {envelope.id} ({envelope.type}) at position {stored.position}"
