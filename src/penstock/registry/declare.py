"""Declare event types in Python: a payload model, and what the type promises beside it.

    class RecordUpdated(Payload): …          what the event carries
    EventType("metastore.record.updated", RecordUpdated, …)      ── schema() ──▶ JSON Schema 2020-12
    Vocabulary("platform", (…,))                                 ── metadata() ─▶ what else it says

A vocabulary is a page of such declarations; nothing here runs at publish time. `registry.Registry`
is built from these and from what was registered over HTTP.

The schema holds only what a payload must satisfy. Titles, descriptions and defaults stay out of it,
so correcting a sentence is never a new version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, cast

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.envelope.envelope import JsonObject, JsonValue, Severity

Status = Literal["draft", "active", "deprecated"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_ANNOTATIONS = frozenset({"title", "description", "default", "examples"})
_LITERAL = frozenset({"const", "enum", "required"})  # values, not schemas: taken as they are
_NAMED = frozenset({"properties", "$defs"})  # their keys are names, not keywords


class Payload(BaseModel):
    """What an event of one type carries. Fields are camelCase on the wire.

    Unknown fields are kept, not refused: a publisher may add one before the type declares it.
    A string below a field describes it in the handbook.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        extra="allow",
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )


@dataclass(frozen=True, slots=True)
class EventType:
    """One declared event type at its newest version."""

    name: str
    payload: type[Payload]
    sources: tuple[str, ...] = ()
    severity: Severity | None = None  # None: derived by the rules of registry.insight
    version: int = 1
    tags: dict[str, str] = field(default_factory=dict)  # tag key -> JSON Pointer into the payload
    links: dict[str, str] = field(default_factory=dict)  # link kind -> JSON Pointer, likewise
    needs_uuid7: bool = False
    derived_requires: tuple[str, ...] | None = None  # wire fields `derived` needs; None: no derived
    example: dict[str, Any] | None = None

    @property
    def purpose(self) -> str:
        """The first line of the payload's docstring."""
        return (self.payload.__doc__ or "").strip().splitlines()[0]

    def schema(self) -> JsonObject:
        """The JSON Schema of the payload; the same declaration always gives the same schema."""
        drawn = self.payload.model_json_schema(by_alias=True, mode="validation")
        return {"$schema": DIALECT, **cast("JsonObject", _bare(drawn))}

    def metadata(self, vocabulary: str) -> JsonObject:
        """What the registry keeps beside the schema; only what was declared is there."""
        said: JsonObject = {
            "purpose": self.purpose,
            "vocabulary": vocabulary,
            "sources": list(self.sources),
            "severity": None if self.severity is None else self.severity.value,
            "tags": dict(self.tags),
            "links": dict(self.links),
            "needsUuid7": self.needs_uuid7,
        }
        kept: JsonObject = {name: value for name, value in said.items() if value}
        if self.derived_requires is not None:
            kept["derivedRequires"] = list(self.derived_requires)
        return kept


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A named page of event types."""

    name: str
    events: tuple[EventType, ...]


def _bare(node: JsonValue) -> JsonValue:
    """The schema without its annotations."""
    if isinstance(node, list):
        return [_bare(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept: JsonObject = {}
    for key, value in node.items():
        if key in _NAMED and isinstance(value, dict):
            kept[key] = {name: _bare(inner) for name, inner in value.items()}
        elif key in _LITERAL:
            kept[key] = value
        elif key not in _ANNOTATIONS:
            kept[key] = _bare(value)
    return kept
