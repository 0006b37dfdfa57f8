"""Declare event types in Python: a payload model, and what the type promises beside it.

    class RecordUpdated(Payload): …                        what the event carries
    EventType("metastore.record.updated", RecordUpdated)   ── schema() ───▶ JSON Schema 2020-12
                                                           ── metadata() ─▶ what else it says
                                                           ── event(…) ───▶ a wire event to publish
                                                           ── read(…) ────▶ RecordUpdated | None
    RecordUpdated(…)                                       ── event(…) ───▶ the same, by its type
    Vocabulary("platform", (…,))                           ── read(…) ────▶ whichever payload it is

A vocabulary is a page of such declarations. `registry.Registry` is built from these and from what
was registered over HTTP. A type checker knows which payload belongs to which type: `event` takes no
other, and `read` narrows to it (tests/registry/test_types_under_mypy.py).

The schema holds only what a payload must satisfy. Titles, descriptions and defaults stay out of it,
so correcting a sentence is never a new version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeAlias, Unpack, cast

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from typing_extensions import TypeVar

from penstock.envelope.envelope import JsonObject, JsonValue, Severity
from penstock.registry.typed import Beside, Readable, beside, fit, model_wire, said_by

Status = Literal["draft", "active", "deprecated"]
EventSource = Literal["system", "plugin"]
Upcast: TypeAlias = Callable[[JsonObject], JsonObject]  # pure: the same payload, the same answer

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_ANNOTATIONS = frozenset({"title", "description", "default", "examples"})
_LITERAL = frozenset({"const", "enum", "required"})  # values, not schemas: taken as they are
_NAMED = frozenset({"properties", "$defs"})  # their keys are names, not keywords


# The types that were declared with a payload, by name, at their newest version.
_declared: dict[type[BaseModel], dict[str, EventType]] = {}


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

    def wire(self) -> JsonObject:
        """The payload as JSON, by its wire names, without a null that nobody said."""
        return model_wire(self)

    def event(self, **said: Unpack[Beside]) -> JsonObject:
        """An event in wire form that carries this, of the one type that is declared with it."""
        types = _declared.get(type(self), {})
        if len(types) != 1:
            names = " and ".join(sorted(types)) or "none"
            raise TypeError(
                f"expected one event type with the payload {type(self).__name__}, found {names}:"
                " build the event with the `event` of its EventType"
            )
        (event_type,) = types.values()
        return event_type.event(self, **said)


# Who writes plain `EventType` means one of any payload.
P = TypeVar("P", bound=Payload, default=Any)


@dataclass(frozen=True)  # no slots: with them `EventType[RecordUpdated](…)` cannot be called
class EventType(Generic[P]):
    """One declared event type at its newest version."""

    name: str
    payload: type[P]
    sources: tuple[str, ...] = ()
    severity: Severity | None = None  # None: derived by the rules of registry.insight
    version: int = 1
    tags: dict[str, str] = field(default_factory=dict)  # tag key -> JSON Pointer into the payload
    links: dict[str, str] = field(default_factory=dict)  # link kind -> JSON Pointer, likewise
    needs_uuid7: bool = False
    event_source: EventSource | None = None  # what `metadata.eventSource` is when nobody says
    metadata_from: dict[str, str] = field(default_factory=dict)  # metadata key -> JSON Pointer
    consumers: tuple[str, ...] = ()  # who reads it, in a word or two each
    upcasts: dict[int, Upcast] = field(default_factory=dict)  # version N -> what makes N + 1 of it
    derived_requires: tuple[str, ...] | None = None  # wire fields `derived` needs; None: no derived
    example: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        types = _declared.setdefault(self.payload, {})
        if self.version > (types[self.name].version if self.name in types else 0):
            types[self.name] = self

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
            "eventSource": self.event_source,
            "metadataFrom": dict(self.metadata_from),
            "consumers": list(self.consumers),
        }
        kept: JsonObject = {name: value for name, value in said.items() if value}
        if self.derived_requires is not None:
            kept["derivedRequires"] = list(self.derived_requires)
        return kept

    def event(self, payload: P, **said: Unpack[Beside]) -> JsonObject:
        """An event of this type in wire form, ready for `publish` and `append`.

        Who says no source gets the only one the type declares; a type with several leaves it to
        the publisher. So it does with id and time, when they are not said.
        """
        event: JsonObject = {
            "type": self.name,
            "payload": model_wire(payload),
            "schemaVersion": self.version,
        }
        if len(self.sources) == 1:
            event["source"] = self.sources[0]
        return event | beside(said)

    def read(self, event: Readable) -> P | None:
        """The payload of an event of this type; None for an event of another.

        EventRefused when it is of this type but does not fit: it has an older version, which the
        registry's upcasters bring up to this one.
        """
        name, payload = said_by(event)
        return fit(self.payload, payload, name) if name == self.name else None


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A named page of event types."""

    name: str
    events: tuple[EventType, ...]

    def read(self, event: Readable) -> Payload | None:
        """The payload of an event of this vocabulary, to `match` on; None for any other event."""
        name, _ = said_by(event)
        kind = next((each for each in self.events if each.name == name), None)
        return None if kind is None else cast("Payload | None", kind.read(event))


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
