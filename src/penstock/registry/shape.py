"""Read a schema as what it allows, kind by kind, so that two ways to say the same compare equal.

    {"type": ["string", "null"], "maxLength": 9}                          ─┐
    {"anyOf": [{"type": "string", "maxLength": 9}, {"type": "null"}]}     ─┴─▶ string up to 9, null

A *place* is a tuple of schemas that must all hold; `()` allows anything. References, `allOf` and
choices are followed here, so whoever compares shapes meets plain rules only. `oneOf` is read as
`anyOf`. Schemas that unfold into too many shapes raise TooComplex instead of taking for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias, TypeGuard

import jsonschema_rs

from penstock.envelope.codec import canonical
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.reference import References

Place: TypeAlias = tuple[JsonValue, ...]
Number: TypeAlias = int | float | Decimal

KINDS = ("null", "boolean", "number", "string", "array", "object")
_WORDS = {"integer": "number"}  # a number that must be whole; `Shape.is_whole` says so
_SCALAR = (
    "type", "minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "enum", "const",
)  # fmt: skip
_OPAQUE = (
    "not", "if", "then", "else", "patternProperties", "propertyNames", "dependentRequired",
    "dependentSchemas", "dependencies", "unevaluatedProperties", "unevaluatedItems", "contains",
    "minContains", "maxContains", "additionalItems", "$dynamicRef", "$recursiveRef",
)  # fmt: skip
_PROSE = frozenset({"title", "description", "default", "examples", "$comment"})
_HOPS_MAX = 100
_STEPS_MAX = 20_000
_CHOICES_MAX = 64


class TooComplex(Exception):
    """The schema unfolds into more shapes than are worth comparing."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Values of one kind that a place allows: those that meet every rule."""

    kind: str
    rules: tuple[JsonObject, ...]

    @property
    def is_whole(self) -> bool:
        """Whether a number must be an integer."""
        return any("number" not in _types(rule) for rule in self.rules if "type" in rule)

    def listed(self) -> dict[str, JsonValue] | None:
        """The only values allowed, by their JSON; None when they are not listed."""
        found: dict[str, JsonValue] | None = None
        for rule in self.rules:
            for values in _enums(rule):
                own = {canonical(v).decode(): v for v in values if kind_of(v) == self.kind}
                found = own if found is None else {k: v for k, v in found.items() if k in own}
        return None if found is None else self.accepted(found)

    def accepted(self, values: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """The values that meet the rules for plain values."""
        rules = [{word: rule[word] for word in _SCALAR if word in rule} for rule in self.rules]
        checks = [jsonschema_rs.validator_for(rule, validate_formats=True) for rule in rules]
        return {
            text: value
            for text, value in values.items()
            if all(check.is_valid(value) for check in checks)
        }

    def numbers(self, word: str) -> list[Number]:
        """What a keyword with a number says, in each rule that has it."""
        return [found for found in self.values(word) if _is_number(found)]

    def values(self, word: str) -> list[JsonValue]:
        """What a keyword says, in each rule that has it."""
        return [rule[word] for rule in self.rules if word in rule]

    def required(self) -> set[str]:
        """Fields that must be there."""
        lists = [names for names in self.values("required") if isinstance(names, list)]
        return {str(name) for names in lists for name in names}

    def declared(self) -> list[str]:
        """Fields the schema speaks of, in its order."""
        named = [found for found in self.values("properties") if isinstance(found, dict)]
        return list(dict.fromkeys(name for found in named for name in found))

    def member(self, name: str) -> Place:
        """What a field must meet."""
        return tuple(_meets(rule, name) for rule in self.rules if _speaks_of(rule, name))

    def others(self) -> Place:
        """What fields must meet that are not declared; `()` when they may be anything."""
        return tuple(rule for rule in self.values("additionalProperties") if rule not in (True, {}))

    def item(self, index: int | None) -> Place:
        """What the item at an index must meet; without an index, any after the first few."""
        found = []
        for rule in self.rules:
            first = rule.get("prefixItems")
            if isinstance(first, list) and index is not None and index < len(first):
                found.append(first[index])
            elif "items" in rule:
                found.append(rule["items"])
        return tuple(found)

    def first_items(self) -> int:
        """How many items have a rule of their own."""
        return max((len(f) for f in self.values("prefixItems") if isinstance(f, list)), default=0)

    def opaque(self) -> JsonObject:
        """Keywords that are only compared as a whole."""
        found = {word: self.values(word) for word in _OPAQUE}
        return {word: values for word, values in found.items() if values}


class Shapes:
    """Reads the places of one schema."""

    def __init__(self, root: JsonObject) -> None:
        self.root: Place = (root,)
        self._references = References(root)
        self._steps = 0

    def settled(self, place: Place) -> Place:
        """The place with plain references followed, so that the same place is always the same."""
        return tuple(self._followed(node) for node in place)

    def _followed(self, node: JsonValue) -> JsonValue:
        for _ in range(_HOPS_MAX):
            if not isinstance(node, dict) or node.keys() - _PROSE != {"$ref"}:
                break
            reference = node["$ref"]
            target = self._references.find(reference) if isinstance(reference, str) else None
            if target is None:
                break
            node = target
        return node

    def at(self, place: Place) -> dict[str, list[Shape]]:
        """What a place allows, by kind; nothing at all for one that nothing can meet."""
        found: dict[str, list[Shape]] = {}
        for rules in self._unfold(place):
            for kind in KINDS:
                if all(_allows(rule, kind) for rule in rules):
                    found.setdefault(kind, []).append(Shape(kind, rules))
        return found

    def _unfold(self, place: Sequence[JsonValue]) -> list[tuple[JsonObject, ...]]:
        """One tuple of plain rules for each way to choose among the choices."""
        rules: dict[int, JsonObject] = {}
        choices: list[list[JsonValue]] = []
        waiting = list(place)
        while waiting:
            self._step()
            node = waiting.pop(0)
            if node is False:
                return []
            if not isinstance(node, dict) or id(node) in rules:
                continue
            rules[id(node)] = node
            waiting += self._beside(node)
            choices += [c for word in ("anyOf", "oneOf") if isinstance(c := node.get(word), list)]
        ways: list[tuple[JsonObject, ...]] = [tuple(rules.values())]
        for options in choices:
            unfolded = [rest for option in options for rest in self._unfold([option])]
            ways = [(*way, *rest) for way in ways for rest in unfolded]
            if len(ways) > _CHOICES_MAX:
                raise TooComplex
        return ways

    def _beside(self, node: JsonObject) -> Iterator[JsonValue]:
        """What must hold together with a node: what it refers to, and all of `allOf`."""
        if isinstance(reference := node.get("$ref"), str):
            target = self._references.find(reference)
            yield True if target is None else target
        both = node.get("allOf")
        yield from both if isinstance(both, list) else ()

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _STEPS_MAX:
            raise TooComplex


def kind_of(value: JsonValue) -> str:
    """Which of KINDS a value is."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict) else "number"


def _allows(rule: JsonObject, kind: str) -> bool:
    if "type" in rule and kind not in {_WORDS.get(word, word) for word in _types(rule)}:
        return False
    return all(any(kind_of(value) == kind for value in values) for values in _enums(rule))


def _types(rule: JsonObject) -> list[str]:
    said = rule.get("type")
    return [str(word) for word in said] if isinstance(said, list) else [str(said)]


def _enums(rule: JsonObject) -> Iterator[list[JsonValue]]:
    if isinstance(values := rule.get("enum"), list):
        yield values
    if "const" in rule:
        yield [rule["const"]]


def _speaks_of(rule: JsonObject, name: str) -> bool:
    named = rule.get("properties")
    return (isinstance(named, dict) and name in named) or "additionalProperties" in rule


def _meets(rule: JsonObject, name: str) -> JsonValue:
    named = rule.get("properties")
    if isinstance(named, dict) and name in named:
        return named[name]
    return rule.get("additionalProperties")


def _is_number(value: JsonValue) -> TypeGuard[Number]:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)
