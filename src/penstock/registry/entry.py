"""Gather what is known about one event type: the data of its reference page.

    versions in the registry ─┐
    the declaration in code ──┴──▶ TypeEntry ──▶ GET /admin/event-schemas/{type}
                                       ├───────▶ handbook (Markdown)
                                       └───────▶ asyncapi

The registry keeps schemas without their prose, so what fields mean and the example come from the
declaration; a type registered over HTTP tells them in its schema (`description`, `examples`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, cast

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.base.clock import format_instant
from penstock.envelope.codec import load_stored
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.compatibility import compare
from penstock.registry.declare import EventType, Vocabulary
from penstock.registry.outline import outline
from penstock.registry.schema import PayloadCheck, SchemaVersion, schema_hash
from penstock.registry.severity import read_suffix

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)  # a declaration has no date
_DECLARED_BY = "declaration"


class _Wire(BaseModel):
    """What crosses the wire in camelCase."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True
    )


class FieldEntry(_Wire):
    """One field of the payload."""

    path: str
    kind: str
    required: bool
    meaning: str
    personal: bool = False  # stored encrypted, shown masked


class VersionEntry(_Wire):
    """One version of the type."""

    version: int
    status: str
    schema_hash: str
    schema_id: int | None = None
    created_at: str | None = None
    created_by: str | None = None
    changes: tuple[str, ...] = ()  # since the version before it
    override: dict[str, Any] | None = None  # why a breaking change was let in


class TypeEntry(_Wire):
    """Everything a reference page says about one type."""

    event_type: str
    vocabulary: str | None
    purpose: str
    severity: str
    severity_rule: str  # declared, suffix or default
    sources: tuple[str, ...]
    consumers: tuple[str, ...]
    tags: dict[str, str]  # tag key -> JSON Pointer into the payload
    links: dict[str, str]
    needs_uuid7: bool
    derived_requires: tuple[str, ...] | None
    version: int  # the one whose fields, example and schema are shown
    fields: tuple[FieldEntry, ...]
    example: dict[str, Any] | None
    document: dict[str, Any] = Field(alias="schema")  # its JSON Schema
    versions: tuple[VersionEntry, ...]

    def wire(self) -> JsonObject:
        """The entry as the API shows it."""
        return cast("JsonObject", self.model_dump(by_alias=True))


def entry_of(versions: Sequence[SchemaVersion], declared: EventType | None = None) -> TypeEntry:
    """The entry of one type from all its versions, oldest first, and its declaration if any."""
    shown = _shown(versions)
    if declared is not None and schema_hash(declared.schema()) != shown.schema_hash:
        declared = None  # another schema is registered; the declaration's words are not about it
    metadata = shown.metadata
    told = shown.schema if declared is None else _described(declared)
    severity, rule = _severity(shown)
    needs = metadata.get("derivedRequires")
    return TypeEntry(
        event_type=shown.event_type,
        vocabulary=_text(metadata.get("vocabulary")),
        purpose=_purpose(shown),
        severity=severity,
        severity_rule=rule,
        sources=_names(metadata.get("sources")),
        consumers=_names(metadata.get("consumers")),
        tags=_pointers(metadata.get("tags")),
        links=_pointers(metadata.get("links")),
        needs_uuid7=metadata.get("needsUuid7") is True,
        derived_requires=_names(needs) if isinstance(needs, list) else None,
        version=shown.version,
        fields=tuple(FieldEntry(**field._asdict()) for field in outline(told)),
        example=_example(shown, declared),
        schema=shown.schema,
        versions=tuple(_version_entries(versions)),
    )


def declared_entries(
    vocabularies: Iterable[Vocabulary], frozen: Mapping[str, str] | None = None
) -> list[TypeEntry]:
    """Entries of what code declares; older versions are those that are frozen in contracts/."""
    found = []
    for vocabulary in vocabularies:
        for event in vocabulary.events:
            older = [
                _declared_version(event, number, schema, vocabulary.name)
                for number, schema in _frozen_versions(event, vocabulary.name, frozen or {})
            ]
            newest = _declared_version(event, event.version, event.schema(), vocabulary.name)
            found.append(entry_of([*older, newest], event))
    return found


def _frozen_versions(
    event: EventType, vocabulary: str, frozen: Mapping[str, str]
) -> Iterator[tuple[int, JsonObject]]:
    for number in range(1, event.version):
        text = frozen.get(f"{vocabulary}/{event.name}.{number}.json")
        if text is not None:
            yield number, cast("JsonObject", load_stored(text))


def _declared_version(
    event: EventType, number: int, schema: JsonObject, vocabulary: str
) -> SchemaVersion:
    return SchemaVersion(
        event_type=event.name,
        version=number,
        status="active",
        schema=schema,
        schema_hash=schema_hash(schema),
        metadata=event.metadata(vocabulary),
        created_at=_NEVER,
        created_by=_DECLARED_BY,
        updated_at=_NEVER,
        updated_by=_DECLARED_BY,
    )


def _shown(versions: Sequence[SchemaVersion]) -> SchemaVersion:
    """The newest active version; without one, the newest."""
    active = [each for each in versions if each.status == "active"]
    return (active or list(versions))[-1]


def _version_entries(versions: Sequence[SchemaVersion]) -> Iterator[VersionEntry]:
    before: SchemaVersion | None = None
    for each in versions:
        changes = () if before is None else compare(before.schema, each.schema)
        record = each.metadata.get("override")
        dated = each.created_at != _NEVER
        yield VersionEntry(
            version=each.version,
            status=each.status,
            schema_hash=each.schema_hash,
            schema_id=each.id or None,
            created_at=format_instant(each.created_at) if dated else None,
            created_by=each.created_by if dated else None,
            changes=tuple(difference.sentence for difference in changes),
            override=record if isinstance(record, dict) else None,
        )
        before = each


def _described(event: EventType) -> JsonObject:
    """The schema with the sentences that the registry leaves out."""
    return cast("JsonObject", event.payload.model_json_schema(by_alias=True, mode="validation"))


def _severity(version: SchemaVersion) -> tuple[str, str]:
    word = version.metadata.get("severity")
    if isinstance(word, str):
        return word, "declared"
    suffix = read_suffix(version.event_type)
    return ("info", "default") if suffix is None else (suffix.value, "suffix")


def _purpose(version: SchemaVersion) -> str:
    said = (version.metadata.get("purpose"), version.schema.get("description"))
    found = next((text for text in (*said, version.schema.get("title")) if _text(text)), None)
    return " ".join(str(found).split()) if found is not None else ""


def _example(version: SchemaVersion, declared: EventType | None) -> JsonObject | None:
    """A payload that fits, if somebody gave one."""
    if declared is not None and declared.example is not None:
        return declared.example
    given = version.schema.get("examples")
    for example in given if isinstance(given, list) else ():
        if isinstance(example, dict) and not PayloadCheck(version.schema).faults(example):
            return example
    return None


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _names(value: JsonValue) -> tuple[str, ...]:
    return tuple(str(name) for name in value) if isinstance(value, list) else ()


def _pointers(value: JsonValue) -> dict[str, str]:
    return {key: str(place) for key, place in value.items()} if isinstance(value, dict) else {}
