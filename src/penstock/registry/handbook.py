"""Write the reference of all event types as Markdown, from the declarations themselves.

The page in docs/reference/event-types.md is what `handbook` returns;
tests/registry/test_contracts.py compares the two, so the reference cannot fall behind.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.declare import EventType, Vocabulary
from penstock.registry.severity import read_suffix

_HEAD = """# Event types

Generated from the declarations in `src/penstock/catalog/`; edit those, then write this page again.
Every type can be published as it is. Unknown payload fields are kept. Types of your own are
registered with `POST /admin/event-schemas`.
"""


def handbook(vocabularies: Iterable[Vocabulary]) -> str:
    """The whole page."""
    lines = [_HEAD]
    for vocabulary in vocabularies:
        lines += [f"## Vocabulary `{vocabulary.name}`", ""]
        lines += ["| type | says | severity |", "|---|---|---|"]
        lines += [_row(event) for event in vocabulary.events]
        lines.append("")
        for event in vocabulary.events:
            lines += _section(event)
    return "\n".join(lines)


def _row(event: EventType) -> str:
    anchor = event.name.replace(".", "")
    return f"| [`{event.name}`](#{anchor}) | {event.purpose} | {_severity(event)} |"


def _section(event: EventType) -> Iterator[str]:
    yield f"### {event.name}"
    yield ""
    yield event.purpose
    yield ""
    yield f"Version {event.version}. Published by {_code(event.sources)}."
    if event.derived_requires is not None:
        needs = _code(event.derived_requires) if event.derived_requires else "nothing more"
        yield f"The typed reading (`derived`) needs {needs}."
    yield ""
    yield "| field | type | meaning |"
    yield "|---|---|---|"
    yield from _fields(event)
    yield ""
    if event.example is not None:
        yield "```json"
        yield json.dumps(event.example, indent=2, ensure_ascii=False)
        yield "```"
        yield ""


def _fields(event: EventType) -> Iterator[str]:
    schema = event.schema()
    properties, required = schema.get("properties"), schema.get("required")
    told = {
        info.alias or name: info.description or ""
        for name, info in event.payload.model_fields.items()
    }
    if not isinstance(properties, dict):
        return
    for name, field in properties.items():
        star = " (required)" if isinstance(required, list) and name in required else ""
        yield f"| `{name}`{star} | {_kind(field, schema)} | {told.get(name, '')} |"


def _kind(field: JsonValue, schema: JsonObject) -> str:
    """A field's type in a few words."""
    if not isinstance(field, dict):
        return "any JSON"
    reference = field.get("$ref")
    if isinstance(reference, str):
        definitions = schema.get("$defs")
        name = reference.rpartition("/")[2]
        return _kind(definitions.get(name) if isinstance(definitions, dict) else None, schema)
    choices = field.get("anyOf")
    if isinstance(choices, list):
        return " or ".join(_kind(choice, schema) for choice in choices)
    options = field.get("enum")
    if isinstance(options, list):
        return " or ".join(f"`{option}`" for option in options)
    if field.get("format") == "date-time":
        return "instant"
    if field.get("type") == "array":
        return f"array of {_kind(field.get('items'), schema)}"
    return str(field.get("type", "any JSON"))


def _severity(event: EventType) -> str:
    if event.severity is not None:
        return f"{event.severity} (declared)"
    suffix = read_suffix(event.name)
    return "info" if suffix is None else f"{suffix} (by its name)"


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
