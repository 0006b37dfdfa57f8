"""Say whether a trail through payloads of a type leads to something personal.

    ("contacts", "*", "phone")   `*` is any one step, `**` any number of them
        ├── Led.hidden           the steps that are left below each personal field it names
        └── Led.clear            whether the schema has the place, in the clear

A field is named by its own name, or as one of many: an item, or a member that no schema names.
A wildcard that merely passes over a personal field beside others does not name it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from penstock.store.privacy.marks import Marks, State

Trail: TypeAlias = "tuple[str, ...]"
_Below: TypeAlias = "tuple[State, bool]"  # and whether one that comes there has named it


@dataclass(frozen=True, slots=True)
class Led:
    """Where a trail leads in the payloads of one schema."""

    hidden: frozenset[Trail]
    clear: bool


def lead(marks: Marks, trail: Trail) -> Led:
    """Follow a trail along every way that the schema has for it."""
    hidden, clear = set[Trail](), False
    waiting = [(marks.start, trail, True)]
    seen = set[tuple[int, int, bool]]()
    while waiting:
        state, rest, is_named = waiting.pop()
        if (id(state), len(rest), is_named) in seen or not state.is_alive:
            continue
        seen.add((id(state), len(rest), is_named))
        if state.subject is not None:
            hidden |= {rest} if is_named else set()
        elif not rest:
            clear = True
        else:
            waiting += _onward(marks, state, rest, is_named=is_named)
    return Led(frozenset(hidden), clear)


def _onward(
    marks: Marks, state: State, rest: Trail, *, is_named: bool
) -> Iterator[tuple[State, Trail, bool]]:
    step, after = rest[0], rest[1:]
    if step == "**":
        yield state, after, is_named
        yield from ((below, rest, False) for below, _ in _below(marks, state))
    elif step == "*":
        yield from ((below, after, named) for below, named in _below(marks, state))
    else:
        yield marks.member(state, step), after, True


def _below(marks: Marks, state: State) -> Iterator[_Below]:
    """Everything one step below."""
    yield from ((marks.member(state, name), False) for name in state.named)
    yield marks.member(state, None), True
    yield from ((marks.item(state, place), True) for place in range(state.places + 1))
