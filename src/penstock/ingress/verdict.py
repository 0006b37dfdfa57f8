"""Hold what the pipeline says about one message: Accepted, or Rejected with its reason.

Both are values. `Reason` is a closed list: dashboards count it, docs/reference/reasons.md lists it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

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
    VERSION_UNKNOWN = "version_unknown"
    PAYLOAD_INVALID = "payload_invalid"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    ID_CONFLICT = "id_conflict"
    CORRUPT_FRAME = "corrupt_frame"


@dataclass(frozen=True, slots=True)
class Arrival:
    """How and when one message reached us; everything the pipeline may not look up itself."""

    accepted_at: datetime
    fallback_id: str  # the id the event gets when it brings none; the same on every re-reading
    via: Via = Via.QUEUE
    tenant_id: str | None = None  # bound by the caller's token; None: the message may say


@dataclass(frozen=True, slots=True)
class Accepted:
    """An event that will be stored, enriched."""

    envelope: Envelope
    severity: Severity
    severity_rule: str
    schema_hash: str | None
    content_hash: bytes
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
