"""Hold one event in the one shape that everything else speaks.

    wire (camelCase JSON) ── check.read ──▶ Envelope ── check.write ──▶ wire

`Envelope` is what a publisher says. `Stored` is the same event read back: it has a position in the
gapless commit order and what the store knows about it. Both are values and never change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

# A number that a float cannot hold exactly is a Decimal, so a value is never silently changed.
JsonValue: TypeAlias = (
    "bool | int | float | Decimal | str | list[JsonValue] | dict[str, JsonValue] | None"
)
JsonObject: TypeAlias = dict[str, JsonValue]

DEFAULT_TENANT = "default"
PAYLOAD_BYTES_MAX = 256 * 1024
MESSAGE_BYTES_MAX = 320 * 1024  # a full payload with its envelope around it


class Severity(StrEnum):
    """How loud an event is, loudest first."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    DEBUG = "debug"


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Envelope(NamedTuple):
    """One event as its publisher means it, with every default filled in.

    A tuple: one is made for every message, and a tuple is the cheapest frozen value there is.
    """

    id: str
    type: str
    source: str
    occurred_at: datetime
    payload: JsonValue
    tags: Mapping[str, str] = _NOTHING
    correlation_id: str | None = None
    causation_id: str | None = None
    traceparent: str | None = None
    ttl_ms: int | None = None
    metadata: Mapping[str, JsonValue] = _NOTHING
    schema_version: int | None = None
    tenant_id: str = DEFAULT_TENANT


@dataclass(frozen=True, slots=True)
class Stored:
    """One event as the store keeps it."""

    position: int
    envelope: Envelope
    received_at: datetime
    severity: Severity
    severity_rule: str  # which rule decided: declared | explicit | suffix | default
    schema_hash: str | None
    content_hash: bytes  # SHA-256 of what the publisher claimed; equal means duplicate
