"""Decide what registering a schema does: add a version, change one, or nothing at all.

    the newest version has the same schema, or that version has  ──▶ nothing, or only its status
    the version is new, or was left out                          ──▶ a new version
    another schema under a draft                                 ──▶ the draft changes
    another schema under a published version                     ──▶ SchemaConflict

Pure: both stores ask `settle`, so they cannot disagree. Registering the same thing again changes
nothing, which is why a restart never adds a version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from penstock.base.errors import Fault, SchemaConflict, SchemaInvalid
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue, Severity
from penstock.envelope.names import type_fault
from penstock.registry.declare import EventType, Status
from penstock.registry.links import KINDS
from penstock.registry.schema import SchemaVersion, compile_faults, schema_hash

VERSION_MAX = 2**31 - 1
METADATA_BYTES_MAX = 16 * 1024


@dataclass(frozen=True, slots=True)
class Proposal:
    """A schema that somebody wants registered."""

    event_type: str
    schema: JsonObject
    version: int | None = None  # None: the next one, unless the newest already says the same
    status: Status | None = None  # None: active when new, else as it is
    metadata: JsonObject | None = None  # None: nothing when new, else as it is


def declared(event: EventType, vocabulary: str) -> Proposal:
    """The proposal that a declaration in code makes."""
    return Proposal(
        event.name, event.schema(), version=event.version, metadata=event.metadata(vocabulary)
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
        newest = max((each.version for each in existing), default=0)
        return _new(proposal, proposal.version or newest + 1, digest, by=by, at=at), True
    wanted = replace(held, status=_status(held, proposal))
    if held.schema_hash != digest:
        if held.status != "draft":
            raise SchemaConflict(
                f"expected the published schema of {held.event_type} version {held.version},"
                " found another one"
            )
        wanted = replace(wanted, schema=proposal.schema, schema_hash=digest)
    if proposal.metadata is not None:
        wanted = replace(wanted, metadata=proposal.metadata)
    if wanted == held:
        return held, False
    return replace(wanted, updated_by=by, updated_at=at), True


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
        ("needsUuid7", lambda value: isinstance(value, bool), "true or false"),
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
