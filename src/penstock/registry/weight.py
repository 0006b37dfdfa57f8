"""Weigh a schema by how many checks one place of a payload can meet.

    weigh(schema)             a reference back to itself counts once
    weigh(schema, levels=5)   …is followed as deep as a payload goes

Checking is memoised by the validator, so the first figure bounds it. Listing what is wrong is not:
a schema that calls itself from several branches has one error per branch per level, and a few
hundred hostile bytes would fill the memory. The second figure foresees it, and
`schema.check_payload` then says that the payload does not fit without listing where.

An array and an object are weighed apart, because a value is never both.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.reference import References

HEAVY = 10**9  # as good as endless
_LEVELS = 32  # no payload is deeper

_BESIDE = (
    "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies",
)  # fmt: skip
_MAPS = frozenset({"dependentSchemas", "dependencies", "patternProperties", "properties"})
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ITEMS = ("items", "additionalItems", "contains", "unevaluatedItems")
_MEMBERS = ("additionalProperties", "unevaluatedProperties", "patternProperties")


def weigh(schema: JsonObject, *, levels: int | None = None) -> int:
    """The largest number of checks that one place of a payload can meet, up to HEAVY."""
    scale = _Scale(schema, follow=levels is not None)
    try:
        return max(scale.weigh(schema, _LEVELS if levels is None else levels))
    except RecursionError:
        return HEAVY


class _Scale:
    """One weighing: finds references and remembers what was weighed."""

    def __init__(self, root: JsonObject, *, follow: bool) -> None:
        self._follow = follow
        self._references = References(root)
        self._known: dict[tuple[int, int], tuple[int, int]] = {}
        self._trail: list[int] = [id(root)]

    def weigh(self, node: JsonValue, levels: int) -> tuple[int, int]:
        """(checks if the value is an array, checks if it is an object)."""
        if not isinstance(node, dict):
            return 1, 1
        place = (id(node), levels)
        if place not in self._known:
            self._known[place] = (1, 1)  # what a reference back to here finds
            self._known[place] = self._weigh_object(node, levels)
        return self._known[place]

    def _weigh_object(self, node: JsonObject, levels: int) -> tuple[int, int]:
        required = node.get("required")
        array = members = 1 + (len(required) if isinstance(required, list) else 0)
        for word in _BESIDE:
            for child in _schemas(node, word):
                one, other = self.weigh(child, levels)
                array, members = array + one, members + other
        for word in _REFERENCES:
            if isinstance(reference := node.get(word), str):
                one, other = self._weigh_reference(reference, levels)
                array, members = array + one, members + other
        if levels > 0:
            array += self._below(node, levels, _ITEMS, "prefixItems")
            members += self._below(node, levels, _MEMBERS, "properties")
        return min(array, HEAVY), min(members, HEAVY)

    def _weigh_reference(self, reference: str, levels: int) -> tuple[int, int]:
        target = self._references.find(reference)
        if target is None or (not self._follow and id(target) in self._trail):
            return 1, 1
        self._trail.append(id(target))
        weight = self.weigh(target, levels)
        self._trail.pop()
        return weight

    def _below(self, node: JsonObject, levels: int, general: tuple[str, ...], own: str) -> int:
        """What a child can meet: every general rule, and at most one rule for its own name."""
        everywhere = sum(
            max(self.weigh(child, levels - 1)) for word in general for child in _schemas(node, word)
        )
        here = (max(self.weigh(child, levels - 1)) for child in _schemas(node, own))
        return everywhere + max(here, default=0)


def _schemas(node: JsonObject, word: str) -> Iterable[JsonValue]:
    """The subschemas under one keyword, whether it holds one, a list or names."""
    value = node.get(word)
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return value.values() if word in _MAPS else (value,)
    return ()
