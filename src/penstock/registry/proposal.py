"""Decide what registering a schema does: add a version, change one, or nothing at all.

    the newest version has the same schema, or that version has  ──▶ nothing, or only its status
    the version is new, or was left out                          ──▶ a new version
    another schema under a draft                                 ──▶ the draft changes
    another schema under a published version                     ──▶ SchemaConflict
    it breaks the published version before it, not overridden    ──▶ SchemaBreaking

The first version and drafts are free. Pure: both stores ask `settle`, so they cannot disagree.
Registering the same thing again changes nothing, which is why a restart never adds a version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from penstock.base.errors import Fault, SchemaBreaking, SchemaConflict, SchemaInvalid
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue, Severity
from penstock.envelope.names import type_fault
from penstock.registry.compatibility import breaks, compare
from penstock.registry.declare import EventType, Status
from penstock.registry.links import KINDS
from penstock.registry.schema import SchemaVersion, compile_faults, schema_hash

VERSION_MAX = 2**31 - 1
METADATA_BYTES_MAX = 16 * 1024

_RECORD = "override"  # where the metadata of a version says who overrode what
_BREAKS_KEPT = 20


@dataclass(frozen=True, slots=True)
class Override:
    """Somebody's word that a breaking change is meant, kept with the version."""

    reason: str
    also: tuple[str, ...] = ()  # what breaks beside the schema: stored events, readers


@dataclass(frozen=True, slots=True)
class Proposal:
    """A schema that somebody wants registered."""

    event_type: str
    schema: JsonObject
    version: int | None = None  # None: the next one, unless the newest already says the same
    status: Status | None = None  # None: active when new, else as it is
    metadata: JsonObject | None = None  # None: nothing when new, else as it is
    override: Override | None = None  # None: a breaking change is refused


def declared(event: EventType, vocabulary: str) -> Proposal:
    """The proposal that a declaration in code makes."""
    return Proposal(
        event.name,
        event.schema(),
        version=event.version,
        metadata=event.metadata(vocabulary),
        override=Override("upcasters beside the type") if event.upcasts else None,
    )


def check(proposal: Proposal) -> None:
    """Raise SchemaInvalid with every fault, if the proposal has any."""
    found = [
        *_plain_faults(proposal),
        *(Fault(f"/schema{each.pointer}", each.detail) for each in compile_faults(proposal.schema)),
        *_metadata_faults(proposal.metadata or {}),
    ]
    if found:
        raise SchemaInvalid(
            "; ".join(f"{fault.pointer}: {fault.detail}" for fault in found[:5]),
            faults=tuple(found),
        )


def settle(
    existing: Sequence[SchemaVersion], proposal: Proposal, *, by: str, at: datetime
) -> tuple[SchemaVersion, bool]:
    """The version as it should be, and whether that changes what is kept.

    `existing` holds every version of this type and of no other.
    """
    digest = schema_hash(proposal.schema)
    held = _held(existing, proposal, digest)
    if held is None:
        wanted = _new(proposal, number_of(existing, proposal), digest, by=by, at=at)
    else:
        wanted = _changed(held, proposal, digest)
    if wanted == held:
        return held, False
    if _publishes(held, wanted.status):
        wanted = _published(existing, wanted, proposal.override, by=by)
    return replace(wanted, updated_by=by, updated_at=at), True


def publishes(existing: Sequence[SchemaVersion], proposal: Proposal) -> bool:
    """Whether the proposal makes a version public that was not."""
    held = _held(existing, proposal, schema_hash(proposal.schema))
    return _publishes(held, proposal.status or (held.status if held is not None else "active"))


def number_of(existing: Sequence[SchemaVersion], proposal: Proposal) -> int:
    """The version that the proposal is about: the one it names, the newest, or the next."""
    held = _held(existing, proposal, schema_hash(proposal.schema))
    if held is not None:
        return held.version
    return proposal.version or max((each.version for each in existing), default=0) + 1


def version_before(existing: Sequence[SchemaVersion], number: int) -> SchemaVersion | None:
    """The published version that one of this number comes after; None for the first."""
    older = [each for each in existing if each.version < number and each.status != "draft"]
    return max(older, key=lambda each: each.version, default=None)


def _publishes(held: SchemaVersion | None, status: Status) -> bool:
    return status != "draft" and (held is None or held.status == "draft")


def _changed(held: SchemaVersion, proposal: Proposal, digest: str) -> SchemaVersion:
    """A kept version as the proposal wants it."""
    wanted = replace(held, status=_status(held, proposal))
    if held.schema_hash != digest:
        if held.status != "draft":
            raise SchemaConflict(
                f"expected the published schema of {held.event_type} version {held.version},"
                " found another one"
            )
        wanted = replace(wanted, schema=proposal.schema, schema_hash=digest)
    if proposal.metadata is not None:
        record = {_RECORD: held.metadata[_RECORD]} if _RECORD in held.metadata else {}
        wanted = replace(wanted, metadata={**proposal.metadata, **record})
    return wanted


def _published(
    existing: Sequence[SchemaVersion],
    version: SchemaVersion,
    override: Override | None,
    *,
    by: str,
) -> SchemaVersion:
    """The version as it may be published; SchemaBreaking when it may not."""
    before = version_before(existing, version.version)
    if before is None:
        return version
    broken = breaks(compare(before.schema, version.schema))
    if broken and override is None:
        raise SchemaBreaking(
            f"expected a schema compatible with {before.event_type} version {before.version},"
            f" found that {'; '.join(each.sentence for each in broken[:5])}",
            faults=tuple(Fault(each.pointer, each.detail) for each in broken),
        )
    if override is None or not (broken or override.also):
        return version
    record: JsonObject = {
        "reason": override.reason,
        "by": by,
        "breaks": [*(each.sentence for each in broken[:_BREAKS_KEPT]), *override.also],
    }
    return replace(version, metadata={**version.metadata, _RECORD: record})


def _held(
    existing: Sequence[SchemaVersion], proposal: Proposal, digest: str
) -> SchemaVersion | None:
    """The kept version that the proposal speaks of, if there is one."""
    if proposal.version is not None:
        return next((each for each in existing if each.version == proposal.version), None)
    newest = max(existing, key=lambda each: each.version, default=None)
    return newest if newest is not None and newest.schema_hash == digest else None


def _status(held: SchemaVersion, proposal: Proposal) -> Status:
    if proposal.status == "draft" and held.status != "draft":
        raise SchemaConflict(
            f"expected {held.event_type} version {held.version} to stay published,"
            " found a request to make it a draft"
        )
    return proposal.status or held.status


def _new(proposal: Proposal, version: int, digest: str, *, by: str, at: datetime) -> SchemaVersion:
    return SchemaVersion(
        event_type=proposal.event_type,
        version=version,
        status=proposal.status or "active",
        schema=proposal.schema,
        schema_hash=digest,
        metadata=proposal.metadata or {},
        created_at=at,
        created_by=by,
        updated_at=at,
        updated_by=by,
    )


def _plain_faults(proposal: Proposal) -> list[Fault]:
    found = []
    name = type_fault(proposal.event_type)
    if name is not None:
        found.append(Fault("/eventType", name))
    if proposal.version is not None and not 0 < proposal.version <= VERSION_MAX:
        detail = f"expected an integer from 1 to {VERSION_MAX}, found {proposal.version}"
        found.append(Fault("/version", detail))
    return found


def _metadata_faults(metadata: JsonObject) -> list[Fault]:
    """What in the metadata could not be acted on later."""
    size = len(encode(metadata))
    if size > METADATA_BYTES_MAX:
        return [Fault("/metadata", f"expected at most {METADATA_BYTES_MAX} bytes, found {size}")]
    rules = (
        ("severity", _is_severity, "one of the five severities"),
        ("links", _is_links, "an object of link kind to JSON Pointer"),
        ("tags", _is_pointers, "an object of tag key to JSON Pointer"),
        ("derivedRequires", _is_names, "an array of field names"),
        ("sources", _is_names, "an array of source names"),
        ("consumers", _is_names, "an array of consumer names"),
        ("metadataFrom", _is_pointers, "an object of metadata key to JSON Pointer"),
        ("eventSource", lambda value: value in ("system", "plugin"), "system or plugin"),
        ("purpose", lambda value: isinstance(value, str), "a sentence"),
        ("needsUuid7", lambda value: isinstance(value, bool), "true or false"),
        (_RECORD, lambda _value: False, "nothing: Penstock writes it"),
    )
    return [
        Fault(f"/metadata/{key}", f"expected {wanted}, found something else")
        for key, fits, wanted in rules
        if key in metadata and not fits(metadata[key])
    ]


def _is_severity(value: JsonValue) -> bool:
    return isinstance(value, str) and value in set(Severity)


def _is_names(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_pointers(value: JsonValue) -> bool:
    return isinstance(value, dict) and all(
        isinstance(pointer, str) and pointer[:1] in ("", "/") for pointer in value.values()
    )


def _is_links(value: JsonValue) -> bool:
    return _is_pointers(value) and isinstance(value, dict) and set(value) <= set(KINDS)
