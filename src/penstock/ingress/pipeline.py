"""Judge one raw message: accept it, or say exactly why not.

    bytes ── decode ─▶ recognise ─▶ read envelope ─▶ find type ─▶ fit payload ─▶ enrich ─▶ Accepted
                └────────────┴────────────┴─────────────┴─────────────┴─▶ Rejected(reason, detail)

Pure: no clock, no database, no Spark. The door and both hosts call `judge`, so they cannot
disagree; tests/ingress/test_hosts_agree.py holds them to it.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.base.errors import Fault, NotInProfile
from penstock.base.ids import is_uuid7
from penstock.catalog.dialects import Dialect, dialect_of
from penstock.catalog.domain_event import metadata_faults
from penstock.envelope import check, codec
from penstock.envelope.envelope import (
    DEFAULT_TENANT,
    MESSAGE_BYTES_MAX,
    Envelope,
    JsonObject,
    JsonValue,
)
from penstock.envelope.form import json_form
from penstock.envelope.limits import DEPTH_MAX, NODES_MAX
from penstock.envelope.profile import check_shape
from penstock.ingress.enrich import enrichment
from penstock.ingress.verdict import Accepted, Arrival, Reason, Rejected, Verdict
from penstock.registry.registry import Registry
from penstock.registry.schema import SchemaVersion, check_payload

_REMEDY = {
    Reason.ENVELOPE_INVALID: "Correct the fields that `errors` names; see docs/events.md.",
    Reason.TENANT_MISMATCH: "Leave tenantId out: the token decides it.",
    Reason.TYPE_UNKNOWN: "Register the type (POST /admin/event-schemas) or correct its name.",
    Reason.TYPE_RESERVED: "Leave penstock.* to Penstock, or publish with an operator's token.",
    Reason.VERSION_UNKNOWN: "Claim a registered schemaVersion, or leave it out for the newest.",
    Reason.PAYLOAD_INVALID: "Correct the payload as `errors` says, or register a schema it fits.",
    Reason.PAYLOAD_TOO_LARGE: "Keep the payload under 256 KB: store the blob, publish a reference.",
    Reason.TOO_LARGE: "Keep the whole event under 320 KB: store the blob, publish a reference.",
}
# What Penstock says of its operators must not be said by anybody else.
RESERVED = ("penstock.", "privacy.subject.erased")
_COMPACT_BYTES_MAX = 10_000  # so short that nothing added makes it too long for the profile
_JSON_REMEDY = "Send UTF-8 JSON within the strict profile of docs/events.md."


def judge(raw: bytes, arrival: Arrival, registry: Registry) -> Verdict:
    """Say what becomes of one message; the same inputs always get the same answer."""
    try:
        tree = codec.decode(raw)
    except NotInProfile as fault:
        return _reject(raw, arrival, Reason(fault.reason), (Fault(fault.pointer, fault.detail),))
    return judge_tree(tree, raw, arrival, registry)


def judge_tree(tree: JsonValue, raw: bytes, arrival: Arrival, registry: Registry) -> Verdict:
    """As `judge`, for a message that is decoded already."""
    # The marks of the dialects and a claim, asked one by one: no set operation is as cheap.
    if isinstance(tree, dict) and (
        "specversion" in tree or "version" in tree or "timestamp" in tree or "schemaHash" in tree
    ):
        return _judge_unusual(tree, raw, arrival, registry)
    return _judge_native(tree, raw, arrival, registry)


def _judge_unusual(tree: JsonObject, raw: bytes, arrival: Arrival, registry: Registry) -> Verdict:
    """Judge what is told in a dialect, or claims the hash of its schema; the claim is not kept."""
    dialect = dialect_of(tree)
    native = tree if dialect is None else dialect.to_native(tree)
    if isinstance(native, tuple):
        return _reject(raw, arrival, Reason.ENVELOPE_INVALID, native, tree)
    claimed_hash = native.get("schemaHash")
    if isinstance(claimed_hash, str):
        native = {name: value for name, value in native.items() if name != "schemaHash"}
    verdict = _judge_native(native, raw, arrival, registry)
    if isinstance(verdict, Rejected):
        return verdict if dialect is None else _in_words_of(dialect, verdict)
    if isinstance(claimed_hash, str) and claimed_hash != verdict.schema_hash:
        expected = f"expected the hash of its registered schema, {verdict.schema_hash}"
        faults = (Fault("/schemaHash", f"{expected}, found {claimed_hash[:80]!r}"),)
        return _reject(raw, arrival, Reason.VERSION_UNKNOWN, faults, native)
    return verdict


def _judge_native(native: JsonValue, raw: bytes, arrival: Arrival, registry: Registry) -> Verdict:
    envelope = check.read(
        native,
        accepted_at=arrival.accepted_at,
        fallback_id="" if isinstance(native, dict) and "id" in native else arrival.assigned_id,
        tenant_id=arrival.tenant_id,
    )
    if not isinstance(envelope, Envelope):
        return _reject(raw, arrival, _envelope_reason(envelope), envelope, native)
    if not arrival.operator and envelope.type.startswith(RESERVED):
        fault = Fault("/type", f"expected a type of the publisher's own, found {envelope.type}")
        return _reject(raw, arrival, Reason.TYPE_RESERVED, (fault,), native)
    schema = registry.find(envelope.type, envelope.schema_version)
    payload_form = json_form(envelope.payload)
    refused = _unfit(envelope, schema, len(payload_form), registry)
    if refused is not None:
        reason, faults = refused
        return _reject(raw, arrival, reason, faults, native)
    # read() has refused whatever is not an object.
    claimed = native if isinstance(native, dict) else {}
    return enrichment().enrich(envelope, claimed, payload_form, schema)


def _unfit(
    envelope: Envelope, schema: SchemaVersion | None, payload_bytes: int, registry: Registry
) -> tuple[Reason, tuple[Fault, ...]] | None:
    """Why the event may not be stored, or None."""
    fault = check.payload_bytes_fault(payload_bytes)
    if fault is not None:
        return Reason.PAYLOAD_TOO_LARGE, (Fault("/payload", fault),)
    if schema is None:
        return _unknown(envelope, registry)
    if schema.metadata.get("needsUuid7") and not is_uuid7(envelope.id):
        detail = f"expected a UUIDv7 for {envelope.type}, found {envelope.id[:80]!r}"
        return Reason.ENVELOPE_INVALID, (Fault("/id", detail),)
    if "eventSource" in schema.metadata and (found := metadata_faults(envelope.metadata)):
        return Reason.ENVELOPE_INVALID, found
    faults = check_payload(schema, envelope.payload)
    if faults:
        return Reason.PAYLOAD_INVALID, tuple(
            Fault(f"/payload{f.pointer}", f.detail) for f in faults
        )
    return None


def _unknown(envelope: Envelope, registry: Registry) -> tuple[Reason, tuple[Fault, ...]] | None:
    if registry.knows(envelope.type) and envelope.schema_version is not None:
        detail = f"{envelope.type} has no version {envelope.schema_version}"
        return Reason.VERSION_UNKNOWN, (Fault("/schemaVersion", detail),)
    if registry.mode == "open":
        return None
    near = registry.nearest(envelope.type)
    hint = f"; the nearest known type is {near}" if near else ""
    detail = f"expected a registered type, found {envelope.type!r}{hint}"
    return Reason.TYPE_UNKNOWN, (Fault("/type", detail),)


def _envelope_reason(faults: tuple[Fault, ...]) -> Reason:
    mismatch = len(faults) == 1 and faults[0].pointer == "/tenantId" and "token" in faults[0].detail
    return Reason.TENANT_MISMATCH if mismatch else Reason.ENVELOPE_INVALID


def _reject(
    raw: bytes,
    arrival: Arrival,
    reason: Reason,
    faults: tuple[Fault, ...],
    tree: JsonValue = None,
) -> Rejected:
    said: JsonObject = tree if isinstance(tree, dict) else {}
    return Rejected(
        raw=raw,
        reason=reason,
        detail=_detail(faults),
        pointer=faults[0].pointer,
        faults=faults,
        remedy=_REMEDY.get(reason, _JSON_REMEDY),
        tenant_id=arrival.tenant_id or _tenant_said(said),
        via=arrival.via,
        event_type=_text(said.get("type"), 200),
        source=_text(said.get("source"), 200),
        event_id=_text(said.get("id"), 128),
    )


def _detail(faults: tuple[Fault, ...]) -> str:
    if len(faults) == 1:
        return faults[0].detail
    return "; ".join(f"{fault.pointer or '/'}: {fault.detail}" for fault in faults[:5])


def _in_words_of(dialect: Dialect, rejected: Rejected) -> Rejected:
    """A refusal that names the places of the document as it was sent."""
    faults = tuple(dialect.in_words_of(fault) for fault in rejected.faults)
    return replace(rejected, faults=faults, pointer=faults[0].pointer, detail=_detail(faults))


def _tenant_said(said: JsonObject) -> str:
    """The tenant a rejected message names, if that is a tenant's name at all."""
    tenant = said.get("tenantId")
    return tenant if isinstance(tenant, str) and check.is_tenant(tenant) else DEFAULT_TENANT


def _text(value: JsonValue, most: int) -> str | None:
    """What a rejected message says of itself, cut to what a column may hold."""
    return value[:most] if isinstance(value, str) and value else None


def queued_form(
    accepted: Accepted, raw: bytes, arrival: Arrival, *, is_compact: bool = False
) -> bytes | Rejected:
    """The claim with its id and version pinned: what goes on the queue, judged alike for ever.

    `is_compact` says that `raw` is what we would write for the claim.

    Written anew, a message may be longer than it came (1e15 has sixteen digits) and holds a few
    values more. What the ingress would then find too large is refused here, before anybody is told
    that it was accepted.
    """
    claimed, envelope = accepted.claimed, accepted.envelope
    added: JsonObject = {} if "id" in claimed else {"id": envelope.id}
    if envelope.schema_version is not None and "schemaVersion" not in claimed:
        added["schemaVersion"] = envelope.schema_version
    if envelope.tenant_id != DEFAULT_TENANT and "tenantId" not in claimed:
        added["tenantId"] = envelope.tenant_id
    if is_compact and len(raw) <= _COMPACT_BYTES_MAX:
        return raw if not added else b"%b,%b" % (raw[:-1], codec.encode(added)[1:])
    pinned: JsonObject = {**claimed, **added}
    written = codec.encode(pinned)
    if len(written) <= NODES_MAX:  # every value has a byte at least
        return written
    try:
        check_shape(written, depth_max=DEPTH_MAX, nodes_max=NODES_MAX)
    except NotInProfile as error:
        fault = Fault("", f"{error.detail}, once id and version are added")
        return _reject(raw, arrival, Reason(error.reason), (fault,), pinned)
    if len(written) <= MESSAGE_BYTES_MAX:
        return written
    detail = f"expected at most {MESSAGE_BYTES_MAX} bytes once written out, found {len(written)}"
    return _reject(raw, arrival, Reason.TOO_LARGE, (Fault("", detail),), pinned)
