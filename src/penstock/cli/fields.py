"""Read fields out of JSON that a server sent, never failing on what it left out."""

from __future__ import annotations

from decimal import Decimal

from penstock.envelope.envelope import JsonObject, JsonValue


def text(value: JsonObject, name: str) -> str:
    """A field as text; empty when it is absent or null."""
    found = value.get(name)
    return "" if found is None else found if isinstance(found, str) else str(found)


def number(value: JsonObject, name: str) -> int:
    """A field as a whole number; 0 when it is absent or none."""
    found = value.get(name)
    if isinstance(found, str) and found.isdecimal():
        return int(found)
    return int(found) if isinstance(found, int | float | Decimal) else 0


def inner(value: JsonObject, name: str) -> JsonObject:
    """A field as an object; an empty one when it is absent or none."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def rows(value: JsonObject, name: str) -> list[JsonObject]:
    """A field as a list of objects; what is no object is left out."""
    found = value.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def warnings(value: JsonObject) -> list[str]:
    """What the server warns of, a line each."""
    return [f"warning  {_warning(row)}" for row in rows(value, "warnings")]


def _warning(row: JsonObject) -> str:
    said = f"{text(row, 'pointer')}{': ' if row.get('pointer') else ''}{text(row, 'detail')}"
    if "trigger" in row:  # one that is there, and is not refused any more
        return f"trigger {text(row, 'trigger')} {said}"
    return f"{said}; such a trigger is refused" if row.get("refused") else said


def words(value: JsonObject, name: str) -> list[str]:
    """A field as a list of texts."""
    found: JsonValue = value.get(name)
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []
