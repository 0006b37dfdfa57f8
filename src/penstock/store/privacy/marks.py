"""Find what a schema marks as personal: which fields of a payload, and whose they are.

    "email": {"type": "string", "x-pii": {"subject": "/customerId"}}     from the payload's root
    "name":  {"type": "string", "x-pii": {"subject": "1/id"}}            from the object it is in

    Marks(schema).find(payload) ──▶ [Marked(path, subject), …]

A schema is made into states once: what stands at a place is told by the states on the way there, so
a payload is walked once, however many branches and references its schema has. When branches of a
schema disagree whether a field is personal, it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

from penstock.base.errors import Fault
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.reference import References
from penstock.registry.schema import SchemaVersion
from penstock.store.privacy.paths import Path, at, escaped, pointer_to

MARK = "x-pii"

_REFERENCES = ("$ref", "$dynamicRef")
_SEVERAL = ("allOf", "anyOf", "oneOf")
_ONE = ("if", "then", "else")
# Where a mark would have to be found by a pattern or by what is absent; it is refused there.
_UNREACHED = (
    "patternProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "propertyNames",
    "not",
)  # fmt: skip
_BY_NAME = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_LITERAL = ("const", "enum", "default", "examples", "required")
_HIDDEN: JsonObject = {
    "type": "object",
    "required": ["$enc", "subject"],
    "properties": {"$enc": {"type": "string"}, "subject": {"type": "string"}},
    "maxProperties": 2,
}
_SUBJECT = re.compile(r"(?:[1-9][0-9]?)?(?:/(?:[^~/]|~[01])*)+")


class Marked(NamedTuple):
    """One personal field of one payload."""

    path: Path
    subject: str | None  # whose it is, if the payload says

    @property
    def pointer(self) -> str:
        """The field as a JSON Pointer."""
        return pointer_to(self.path)


class Marks:
    """Everything one schema marks."""

    def __init__(self, schema: JsonObject) -> None:
        self._references = References(schema)
        self._states: dict[frozenset[int], State] = {}
        self.start = self._state([schema])

    def find(self, payload: JsonValue) -> list[Marked]:
        """The personal fields of a payload; a field inside another one is part of it."""
        return list(self._walk(payload))

    def _walk(self, payload: JsonValue) -> Iterator[Marked]:
        waiting: list[tuple[Path, JsonValue, State]] = [((), payload, self.start)]
        while waiting:
            path, value, state = waiting.pop()
            if state.subject is not None:
                if value is not None:
                    yield Marked(path, _subject(payload, path, state.subject))
            elif isinstance(value, dict):
                waiting += [
                    ((*path, name), inner, below)
                    for name, inner in value.items()
                    if (below := self.member(state, name)).is_alive
                ]
            elif isinstance(value, list):
                waiting += [
                    ((*path, place), inner, below)
                    for place, inner in enumerate(value)
                    if (below := self.item(state, place)).is_alive
                ]

    def member(self, state: State, name: str | None) -> State:
        """What applies to a member of an object; None: one that no schema names."""
        key = name if name in state.named else None  # all that nobody names are alike
        if key not in state.members:
            found = [
                _schemas(node, "properties")[name]
                if name in _schemas(node, "properties")
                else node.get("additionalProperties")
                for node in state.nodes
            ]
            state.members[key] = self._state(each for each in found if isinstance(each, dict))
        return state.members[key]

    def item(self, state: State, place: int) -> State:
        """What applies to an item of an array."""
        key = min(place, state.places)
        if key not in state.items:
            found = []
            for node in state.nodes:
                first = _list(node, "prefixItems")
                found.append(first[place] if place < len(first) else node.get("items"))
            state.items[key] = self._state(each for each in found if isinstance(each, dict))
        return state.items[key]

    def _state(self, nodes: Iterable[JsonObject]) -> State:
        """The state in which all of these schemas apply, with all they apply at the same place."""
        closed: dict[int, JsonObject] = {}
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if id(node) not in closed:
                closed[id(node)] = node
                waiting += _here(node, self._references)
        key = frozenset(closed)
        if key not in self._states:
            self._states[key] = State(list(closed.values()))
        return self._states[key]


class State:
    """Which schemas apply at a place."""

    def __init__(self, nodes: list[JsonObject]) -> None:
        self.nodes = nodes
        self.members: dict[str | None, State] = {}
        self.items: dict[int, State] = {}
        self.named = {name for node in nodes for name in _schemas(node, "properties")}
        self.places = max((len(_list(node, "prefixItems")) for node in nodes), default=0)
        marks = [_said(node) for node in nodes if MARK in node]
        self.subject = marks[0] or "" if marks else None
        self.is_alive = bool(nodes)


# By schema hash: a hash never means another schema, so an entry is never stale.
_known: dict[str, Marks | None] = {}


def marks_of(version: SchemaVersion | None) -> Marks | None:
    """The marks of a registered schema; None for nearly all, which have none."""
    if version is None:
        return None
    if version.schema_hash not in _known:
        marked = any(MARK in place.node for place in _places(version.schema))
        _known[version.schema_hash] = Marks(version.schema) if marked else None
    return _known[version.schema_hash]


def mark_faults(schema: JsonObject) -> tuple[Fault, ...]:
    """Why the marks of a schema could not be acted on; a mark that is overlooked is a leak."""
    found = []
    for place in _places(schema):
        if MARK not in place.node:
            continue
        if _SUBJECT.fullmatch(_said(place.node) or "") is None:
            detail = 'expected {"subject": "/pointer"} or {"subject": "1/pointer"}'
            found.append(Fault(f"{place.pointer}/{MARK}", f"{detail}, found something else"))
        elif not place.is_reached:
            detail = f"expected a mark that is not under {', '.join(_UNREACHED)}"
            found.append(Fault(f"{place.pointer}/{MARK}", detail))
    return tuple(found)


def as_stored(schema: JsonObject) -> JsonObject:
    """The schema that stored payloads fit: a marked field may be hidden there."""
    return cast("JsonObject", _open_to_hidden(schema)) if MARK in str(schema) else schema


def _open_to_hidden(node: JsonValue) -> JsonValue:
    if isinstance(node, list):
        return [_open_to_hidden(each) for each in node]
    if not isinstance(node, dict):
        return node
    below: JsonObject = {}
    for word, each in node.items():
        if word in _BY_NAME and isinstance(each, dict):
            below[word] = {name: _open_to_hidden(inner) for name, inner in each.items()}
        elif word != MARK:
            below[word] = each if word in _LITERAL else _open_to_hidden(each)
    return {"anyOf": [below, _HIDDEN]} if MARK in node else below


def _here(node: JsonObject, references: References) -> Iterator[JsonObject]:
    """The schemas that a schema applies to the very place it applies to itself."""
    named = [references.find(str(node[word])) for word in _REFERENCES if word in node]
    several = [each for word in _SEVERAL for each in _list(node, word)]
    ones = [node.get(word) for word in _ONE]
    depending = _schemas(node, "dependentSchemas").values()
    for each in (*named, *several, *ones, *depending):
        if isinstance(each, dict):
            yield each


class _Place(NamedTuple):
    """One schema inside a schema, and whether `Marks` can get there."""

    pointer: str
    node: JsonObject
    is_reached: bool


def _places(schema: JsonObject) -> Iterator[_Place]:
    """Every schema that may apply to some part of a payload, by every kind of way there."""
    references = References(schema)
    waiting = [_Place("", schema, True)]
    seen: set[tuple[int, bool]] = set()
    while waiting:
        place = waiting.pop()
        if (id(place.node), place.is_reached) in seen:
            continue
        seen.add((id(place.node), place.is_reached))
        yield place
        waiting += _below(place, references)


def _below(place: _Place, references: References) -> Iterator[_Place]:
    for word, value in place.node.items():
        pointer, is_reached = f"{place.pointer}/{escaped(word)}", place.is_reached
        found: Iterable[tuple[str, JsonValue]] = ()
        if word in ("properties", "dependentSchemas", "patternProperties"):
            found = _schemas(place.node, word).items()
        elif word in (*_SEVERAL, "prefixItems"):
            found = ((str(n), each) for n, each in enumerate(_list(place.node, word)))
        elif word in (*_ONE, *_UNREACHED, "items", "additionalProperties"):
            found = (("", value),)
        elif word in _REFERENCES:
            found = (("", references.find(str(value))),)
        for name, node in found:
            if isinstance(node, dict):
                below = f"{pointer}/{escaped(name)}" if name else pointer
                yield _Place(below, node, is_reached and word not in _UNREACHED)


def _said(node: JsonObject) -> str | None:
    """What a mark says of its subject, if it says anything."""
    subject = _schemas(node, MARK).get("subject")
    return subject if isinstance(subject, str) else None


def _list(node: JsonObject, word: str) -> list[JsonValue]:
    found = node.get(word)
    return found if isinstance(found, list) else []


def _schemas(node: JsonObject, word: str) -> JsonObject:
    found = node.get(word)
    return found if isinstance(found, dict) else {}


def _subject(payload: JsonValue, path: Path, said: str) -> str | None:
    """Whose a field is: the text or number that the mark points to."""
    if _SUBJECT.fullmatch(said) is None:
        return None
    up, _, pointer = said.partition("/")
    start = path[: -int(up)] if up and int(up) <= len(path) else ()
    value = at(payload, start)
    for part in pointer.split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        place = int(name) if isinstance(value, list) and name.isdecimal() else name
        value = at(value, (place,))
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value) or None
    return None
