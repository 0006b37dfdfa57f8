"""Go to a place in a JSON value, and put something else there.

("items", 0, "name")    the way to a field: names of members, numbers of items
"""

from __future__ import annotations

from typing import TypeAlias

from penstock.envelope.envelope import JsonValue

Path: TypeAlias = tuple[str | int, ...]


def replaced(value: JsonValue, changes: dict[Path, JsonValue]) -> JsonValue:
    """The value with others at some paths; what is on the way there is copied, the rest shared."""
    if not changes:
        return value
    if () in changes:
        return changes[()]
    below: dict[str | int, dict[Path, JsonValue]] = {}
    for path, new in changes.items():
        below.setdefault(path[0], {})[path[1:]] = new
    if isinstance(value, dict):
        return {
            name: replaced(inner, below[name]) if name in below else inner
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [
            replaced(inner, below[place]) if place in below else inner
            for place, inner in enumerate(value)
        ]
    return value


def at(value: JsonValue, path: Path) -> JsonValue:
    """What stands at a path; None where nothing does."""
    for part in path:
        if isinstance(value, dict) and isinstance(part, str):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return None
    return value


def pointer_to(path: Path) -> str:
    """The path as a JSON Pointer."""
    return "".join(f"/{escaped(str(part))}" for part in path)


def escaped(name: str) -> str:
    """A name as it stands in a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")
