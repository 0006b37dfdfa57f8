"""Say how an event changes a state: a pure function with a name, a version and what it is for.

    @reducer("issue", version=1, tags=["issueId"], types=["ISSUE.**"])
    def issue(state: JsonObject, event: Stored) -> JsonObject:
        return {**state, "last": event.envelope.type}

`last-write-wins` is built in. It applies each payload in the order of the log as a JSON Merge Patch
(RFC 7386): objects merge, null deletes the member, everything else replaces, arrays as a whole. A
payload that is no object counts as `{"value": payload}`. `last-write-wins-per-type` does the same
apart for each event type, under its name. What stands for a personal field is one value, never
merged with another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias, cast

from penstock.envelope.envelope import JsonObject, JsonValue, Stored
from penstock.envelope.names import matches_glob
from penstock.registry.hidden import is_hidden
from penstock.store.timetravel.boundary import Boundary

Reduce: TypeAlias = Callable[[JsonObject, Stored], JsonObject]
_NAME = re.compile(r"[a-z][a-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Reducer:
    """A way to fold events into a state. Raise the version with every change of its meaning."""

    name: str
    reduce: Reduce
    version: int = 1
    tags: tuple[str, ...] = ()  # a boundary must have one of these tags; none means any boundary
    types: tuple[str, ...] = ()  # other events pass by unfolded; exact names or globs
    is_built_in: bool = False  # gives plain JSON and never changes what it was given

    def __post_init__(self) -> None:
        if _NAME.fullmatch(self.name) is None:
            raise ValueError(f"expected a name such as issue-state, found {self.name[:80]!r}")
        if self.version < 1:
            raise ValueError(f"expected a version from 1 on, found {self.version}")

    @property
    def reference(self) -> str:
        """Name and version: what a snapshot was made by."""
        return f"{self.name}@{self.version}"

    def fits(self, boundary: Boundary) -> bool:
        """Whether it is meant for such a history."""
        return not self.tags or any(key in self.tags for key, _ in boundary.tags)

    def wants(self, event_type: str) -> bool:
        """Whether events of this type change the state."""
        return not self.types or any(matches_glob(glob, event_type) for glob in self.types)


def reducer(
    name: str, *, version: int = 1, tags: Iterable[str] = (), types: Iterable[str] = ()
) -> Callable[[Reduce], Reducer]:
    """Make a reducer of a function; a package offers it as entry point of `penstock.reducers`."""

    def make(reduce: Reduce) -> Reducer:
        return Reducer(name, reduce, version, tuple(tags), tuple(types))

    return make


def merge(target: JsonValue, patch: JsonValue) -> JsonValue:
    """The target after a JSON Merge Patch (RFC 7386); what did not change is shared, not copied."""
    if not isinstance(patch, dict) or is_hidden(patch):
        return patch
    before = target if isinstance(target, dict) and not is_hidden(target) else {}
    merged = before.copy()
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = merge(before.get(key), value)
        else:
            merged[key] = value
    return merged


def _patch(event: Stored) -> JsonObject:
    payload = event.envelope.payload
    return payload if isinstance(payload, dict) else {"value": payload}


def _last_write_wins(state: JsonObject, event: Stored) -> JsonObject:
    return cast("JsonObject", merge(state, _patch(event)))


def _per_type(state: JsonObject, event: Stored) -> JsonObject:
    name = event.envelope.type
    return {**state, name: merge(state.get(name), _patch(event))}


LAST_WRITE_WINS = Reducer("last-write-wins", _last_write_wins, is_built_in=True)
PER_TYPE = Reducer("last-write-wins-per-type", _per_type, is_built_in=True)
BUILT_IN = (LAST_WRITE_WINS, PER_TYPE)
