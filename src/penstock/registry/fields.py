"""Infer which fields a page of events has: paths, types, how often, a few examples.

    [{"payload": {"n": 1}}]  ──▶  $.payload (object), $.payload.n (number, once, e.g. 1)

What comes back guides people who write filters and templates. Huge events are sampled: a page tells
about `NODES_MAX` of its values, shared out evenly, and at most `FIELDS_MAX` fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from penstock.envelope.envelope import JsonObject, JsonValue

NODES_MAX = 50_000
FIELDS_MAX = 1_000
_SHARE_MIN = 200
_EXAMPLES_MAX = 5
_TEXT_MAX = 80
_TEXT_CUT = 77

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_EACH = None  # the step from an array to its items

_Path = tuple[str | None, ...]


@dataclass(slots=True)
class _Seen:
    """What was seen at one path so far."""

    occurrences: int = 0
    types: set[str] = field(default_factory=set)
    examples: dict[str, JsonValue] = field(default_factory=dict)


def infer_fields(envelopes: Sequence[JsonObject]) -> JsonObject:
    """The inferred schema of a page, its fields in order of jsonPath."""
    seen: dict[_Path, _Seen] = {}
    share = NODES_MAX // max(len(envelopes), 1)
    for envelope in envelopes:
        here: set[_Path] = set()
        for path, value in islice(_values((), envelope), max(share, _SHARE_MIN)):
            if path not in seen:
                if len(seen) >= FIELDS_MAX:
                    continue
                seen[path] = _Seen()
            _note(seen[path], value, first=path not in here)
            here.add(path)
    fields: list[JsonValue] = [_describe(path, seen[path]) for path in sorted(seen, key=json_path)]
    return {"totalSamples": len(envelopes), "fields": fields}


def json_path(path: _Path) -> str:
    """The path as the `jsonPath` filter reads it: `$.payload.items[*].id`."""
    return "$" + "".join(
        "[*]" if step is _EACH else f".{step if _NAME.fullmatch(step) else json.dumps(step)}"
        for step in path
    )


def liquid_path(path: _Path) -> str:
    """The path as a template reads it: `event.payload.items[0].id`."""
    return "event" + "".join(
        "[0]" if step is _EACH else f".{step}" if _NAME.fullmatch(step) else f"[{json.dumps(step)}]"
        for step in path
    )


def _values(path: _Path, value: JsonValue) -> Iterator[tuple[_Path, JsonValue]]:
    """Every value below `value` in the order of the document, with its path."""
    waiting = [_below(path, value)]
    while waiting:
        for step in waiting[-1]:
            yield step
            waiting.append(_below(*step))
            break
        else:
            waiting.pop()


def _below(path: _Path, value: JsonValue) -> Iterator[tuple[_Path, JsonValue]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key), inner
    elif isinstance(value, list):
        for item in value:
            yield (*path, _EACH), item


def _note(seen: _Seen, value: JsonValue, *, first: bool) -> None:
    seen.occurrences += first
    kind = _type(value)
    seen.types.add(kind)
    if kind not in ("object", "array") and len(seen.examples) < _EXAMPLES_MAX:
        example = value
        if isinstance(value, str) and len(value) > _TEXT_MAX:
            example = value[:_TEXT_CUT] + "…"
        seen.examples.setdefault(f"{kind}:{example}", example)


def _describe(path: _Path, seen: _Seen) -> JsonObject:
    beside_null = seen.types - {"null"}
    kind = next(iter(beside_null)) if len(beside_null) == 1 else "value"
    return {
        "path": ["*" if step is _EACH else step for step in path],
        "jsonPath": json_path(path),
        "liquidPath": liquid_path(path),
        "occurrences": seen.occurrences,
        "types": [*sorted(seen.types)],
        "kind": kind if kind in ("object", "array") else "value",
        "examples": [*seen.examples.values()],
    }


def _type(value: JsonValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict) else "number"
