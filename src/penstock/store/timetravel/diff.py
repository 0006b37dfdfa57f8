"""Tell two states apart: which values came, went or changed, and put such changes back on.

    changes_between(a, b) ──▶ changes        apply(a, changes) == b        undo(b, changes) == a

Objects are compared member by member; anything else, as one value: arrays too, and what stands for
a personal field. What came or went whole is one change. `Causes` remembers which event touched a
place last, so that every change has the event after which the value became what it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

from penstock.base.clock import format_instant
from penstock.envelope.envelope import JsonObject, JsonValue, Stored
from penstock.registry.hidden import is_hidden

Path: TypeAlias = tuple[str, ...]
Kind: TypeAlias = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class Change:
    """One value that is not what it was; `kind` tells null from nothing."""

    path: Path
    kind: Kind
    before: JsonValue = None
    after: JsonValue = None

    @property
    def pointer(self) -> str:
        """The path as a JSON Pointer (RFC 6901)."""
        return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in self.path)

    def to_json(self) -> JsonObject:
        return {
            "pointer": self.pointer,
            "kind": self.kind,
            "before": self.before,
            "after": self.after,
        }


def read_pointer(pointer: str) -> Path:
    """The path that a JSON Pointer names."""
    return tuple(
        part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]
    )  # fmt: skip


def same(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are the same JSON; unlike Python's, 1, 1.0 and true are three values."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(v, other[k]) for k, v in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    # Digits count: 0.10 is not written as 0.1, nor -0.0 as 0.0.
    return str(one) == str(other) if isinstance(one, Decimal | float) else one == other


def changes_between(before: JsonObject, after: JsonObject) -> list[Change]:
    """What to do to one state to get the other, by path."""
    found: list[Change] = []
    _compare((), before, after, found)
    return sorted(found, key=lambda change: change.path)


def _compare(path: Path, before: JsonObject, after: JsonObject, found: list[Change]) -> None:
    for key, old in before.items():
        if key not in after:
            found.append(Change((*path, key), "removed", before=old))
            continue
        new = after[key]
        # States of one history share what did not change, so most of them is passed over here.
        if old is new:
            continue
        if (
            isinstance(old, dict)
            and isinstance(new, dict)
            and not (is_hidden(old) or is_hidden(new))
        ):
            _compare((*path, key), old, new, found)
        elif not same(old, new):
            found.append(Change((*path, key), "changed", before=old, after=new))
    if len(after) > len(before) or not after.keys() <= before.keys():
        found += [
            Change((*path, key), "added", after=new)
            for key, new in after.items()
            if key not in before
        ]


def apply(state: JsonObject, changes: Iterable[Change]) -> JsonObject:
    """The state after the changes; the one given stays as it is."""
    for change in changes:
        state = _put(state, change.path, change.after, gone=change.kind == "removed")
    return state


def undo(state: JsonObject, changes: Iterable[Change]) -> JsonObject:
    """The state before the changes."""
    for change in changes:
        state = _put(state, change.path, change.before, gone=change.kind == "added")
    return state


def _put(state: JsonObject, path: Path, value: JsonValue, *, gone: bool) -> JsonObject:
    changed = state.copy()
    key, rest = path[0], path[1:]
    if rest:
        inner = state.get(key)
        changed[key] = _put(inner if isinstance(inner, dict) else {}, rest, value, gone=gone)
    elif gone:
        changed.pop(key, None)
    else:
        changed[key] = value
    return changed


class Causes:
    """Which event last touched each place of a state."""

    def __init__(self) -> None:
        self._at: dict[Path, Stored] = {}
        self._below: dict[Path, Stored] = {}  # for the places that lead there

    def saw(self, event: Stored, changes: Iterable[Change]) -> None:
        """Remember what one event changed; events are seen in the order of the log."""
        for change in changes:
            path = change.path
            self._at[path] = event
            for length in range(1, len(path)):
                self._below[path[:length]] = event

    def of(self, path: Path) -> Stored | None:
        """The last event that changed the value there, anything in it, or what it is part of."""
        touched = [self._at.get(path[:length]) for length in range(1, len(path) + 1)]
        touched.append(self._below.get(path))
        found = [event for event in touched if event is not None]
        return max(found, key=lambda event: event.position, default=None)


@dataclass(frozen=True, slots=True)
class Caused:
    """A change and the event behind it."""

    change: Change
    event: Stored

    def to_json(self) -> JsonObject:
        envelope = self.event.envelope
        event: JsonObject = {
            "id": envelope.id,
            "type": envelope.type,
            "position": str(self.event.position),
            "occurredAt": format_instant(envelope.occurred_at),
        }
        return {**self.change.to_json(), "event": event}


def caused(before: JsonObject, after: JsonObject, causes: Causes) -> list[Caused]:
    """What changed between two states of one history, each with its event."""
    found = ((change, causes.of(change.path)) for change in changes_between(before, after))
    return [Caused(change, event) for change, event in found if event is not None]
