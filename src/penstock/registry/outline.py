"""Outline a schema for people: each field with its kind, whether it is required, and its meaning.

    {"properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/Item"}}}, …}
        ──▶ items (array of object) · items[].sku (string, required) · …

Meanings are the `description`s of the schema. References are followed; a schema that refers to
itself is outlined once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.reference import References

_DEPTH_MAX = 4
_OPTIONS_SHOWN = 12
_PERSONAL = "x-pii"  # how a schema marks personal data


class Outlined(NamedTuple):
    """One field of a payload."""

    path: str
    kind: str
    required: bool
    meaning: str
    personal: bool = False


def outline(schema: JsonObject) -> list[Outlined]:
    """Every field in the order of the schema, the fields of a field right below it."""
    return list(_Outline(schema).fields(schema, "", ()))


class _Outline:
    """One reading of one schema."""

    def __init__(self, root: JsonObject) -> None:
        self._references = References(root)

    def fields(self, node: JsonObject, before: str, trail: tuple[int, ...]) -> Iterator[Outlined]:
        """The fields of an object, and theirs."""
        properties, required = node.get("properties"), node.get("required")
        if not isinstance(properties, dict) or id(node) in trail or len(trail) >= _DEPTH_MAX:
            return
        for name, given in properties.items():
            told = self._meaning(given)
            is_required = isinstance(required, list) and name in required
            yield Outlined(
                before + name, self.kind(given), is_required, told, self._is_personal(given)
            )
            for inner, step in self._inside(given):
                yield from self.fields(inner, f"{before}{name}{step}", (*trail, id(node)))

    def kind(self, given: JsonValue) -> str:
        """A field's type in a few words."""
        node = self._resolved(given)
        if node is None:
            return "any JSON"
        choices = _choices(node)
        if choices:
            return " or ".join(dict.fromkeys(self.kind(choice) for choice in choices))
        options = node.get("enum", [node["const"]] if "const" in node else None)
        if isinstance(options, list):
            shown = [f"`{_plain(option)}`" for option in options[:_OPTIONS_SHOWN]]
            return " or ".join(shown) + (" or …" if len(options) > _OPTIONS_SHOWN else "")
        if node.get("format") == "date-time":
            return "instant"
        if node.get("type") == "array":
            return f"array of {self.kind(node.get('items'))}"
        said = node.get("type", "any JSON")
        return " or ".join(map(str, said)) if isinstance(said, list) else str(said)

    def _inside(self, given: JsonValue) -> Iterator[tuple[JsonObject, str]]:
        """Objects inside a field, and the step that leads to their fields."""
        node = self._resolved(given)
        if node is None:
            return
        for choice in _choices(node):
            yield from self._inside(choice)
        if "properties" in node:
            yield node, "."
        if node.get("type") == "array":
            yield from ((inner, f"[]{step}") for inner, step in self._inside(node.get("items")))

    def _meaning(self, given: JsonValue) -> str:
        said = given.get("description") if isinstance(given, dict) else None
        if said is None:
            node = self._resolved(given)
            said = None if node is None else node.get("description")
        return " ".join(said.split()) if isinstance(said, str) else ""

    def _is_personal(self, given: JsonValue) -> bool:
        node = self._resolved(given)
        if node is None or not isinstance(given, dict):
            return False
        choices = any(self._is_personal(choice) for choice in _choices(node))
        return _PERSONAL in given or _PERSONAL in node or choices

    def _resolved(self, given: JsonValue) -> JsonObject | None:
        seen: set[int] = set()
        while isinstance(given, dict) and isinstance(reference := given.get("$ref"), str):
            if id(given) in seen:
                return None
            seen.add(id(given))
            given = self._references.find(reference)
        return given if isinstance(given, dict) else None


def _choices(node: JsonObject) -> list[JsonValue]:
    found = node.get("anyOf", node.get("oneOf"))
    return found if isinstance(found, list) else []


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else encode(value).decode()
