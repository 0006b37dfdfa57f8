"""Hold what the pipeline says about one message: Accepted, or Rejected with its reason.

Both are values; what is made once per message is a tuple, because that is the cheapest frozen
value there is. `Reason` is a closed list: dashboards count it, docs/reference/reasons.md lists it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

from penstock.base.errors import Fault
from penstock.base.ids import derived_id
from penstock.envelope.envelope import DEFAULT_TENANT, Envelope, JsonObject, Severity


class Via(StrEnum):
    """The door a message came through."""

    HTTP = "http"
    SDK = "sdk"
    QUEUE = "queue"
    IMPORT = "import"
    REDRIVE = "redrive"
    SYSTEM = "system"


class Reason(StrEnum):
    """Why a message was rejected."""

    TOO_LARGE = "too_large"
    NOT_UTF8 = "not_utf8"
    MALFORMED_JSON = "malformed_json"
    DUPLICATE_KEY = "duplicate_key"
    TOO_DEEP = "too_deep"
    TOO_MANY_NODES = "too_many_nodes"
    NUL_CHARACTER = "nul_character"
    LONE_SURROGATE = "lone_surrogate"
    NUMBER_OUT_OF_RANGE = "number_out_of_range"
    ENVELOPE_INVALID = "envelope_invalid"
    TENANT_MISMATCH = "tenant_mismatch"
    TYPE_UNKNOWN = "type_unknown"
    TYPE_RESERVED = "type_reserved"
    VERSION_UNKNOWN = "version_unknown"
    PAYLOAD_INVALID = "payload_invalid"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    ID_CONFLICT = "id_conflict"
    CORRUPT_FRAME = "corrupt_frame"


class Arrival(NamedTuple):
    """How and when one message reached us; everything the pipeline may not look up itself."""

    accepted_at: datetime
    fallback_id: str = ""  # the id of an event that brings none; "": derived from `origin`
    via: Via = Via.QUEUE
    tenant_id: str | None = None  # bound by the caller's token; None: the message may say
    origin: tuple[str, ...] = ()  # where it was read: the same on every re-reading
    operator: bool = True  # may speak for Penstock itself; the door knows who may not

    @property
    def assigned_id(self) -> str:
        """The id that the event gets when it brings none."""
        at_ms = round(self.accepted_at.timestamp() * 1000)
        return self.fallback_id or derived_id(at_ms, *self.origin)


class Accepted(NamedTuple):
    """An event that will be stored, enriched."""

    envelope: Envelope
    severity: Severity
    severity_rule: str
    schema_hash: str | None
    content_hash: bytes
    payload_form: bytes  # the payload in its one spelling: hashed, and stored
    claimed: JsonObject  # the native wire form as claimed, before defaults: what the spool keeps


@dataclass(frozen=True, slots=True)
class Rejected:
    """A message that will be kept verbatim as a dead letter."""

    raw: bytes
    reason: Reason
    detail: str
    pointer: str = ""
    faults: tuple[Fault, ...] = ()
    remedy: str = ""
    tenant_id: str = DEFAULT_TENANT
    via: Via = Via.QUEUE
    event_type: str | None = None
    source: str | None = None
    event_id: str | None = None

    @property
    def dead_letter_id(self) -> str:
        """The same message rejected for the same reason is the same dead letter, counted up."""
        return derived_id(0, self.tenant_id, self.reason, self.raw)


Verdict: TypeAlias = Accepted | Rejected


class Named(Protocol):
    """Whatever says which event it is: an envelope, or a row."""

    @property
    def tenant_id(self) -> str: ...

    @property
    def id(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def source(self) -> str: ...


def conflict(raw: bytes, event: Named, via: Via = Via.QUEUE) -> Rejected:
    """The dead letter of an event whose id is taken by another content."""
    detail = f"expected a new id or the same content again, found other content under {event.id}"
    return Rejected(
        raw=raw,
        reason=Reason.ID_CONFLICT,
        detail=detail,
        pointer="/id",
        faults=(Fault("/id", detail),),
        remedy="Publish the event under an id of its own; the first one under this id stays.",
        tenant_id=event.tenant_id,
        via=via,
        event_type=event.type,
        source=event.source,
        event_id=event.id,
    )
