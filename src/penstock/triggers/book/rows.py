"""Turn deliveries, their history and held events into rows, and rows into what they were.

Every query that reads one of these gives its columns in the order below, so that there is one place
that knows it. Reading back gives an equal value: tests/triggers/on_postgres/test_rows.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from penstock.envelope.codec import encode, load_stored
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.triggers.delivery import (
    Delivery,
    Held,
    HistoryEntry,
    Reason,
    RetryState,
    Role,
    Stage,
    Status,
)

Row: TypeAlias = tuple[Any, ...]

DELIVERY: Final = (
    "id", "tenant_id", "trigger_id", "trigger_version", "workflow_slug", "event_id",
    "event_position", "event_type", "event_source", "correlation_id", "status", "stage", "reason",
    "created_at", "updated_at", "first_pass", "last_pass", "ticket", "shadow", "role", "attempts",
    "last_error", "workflow_run_id", "run_key", "parameters", "dedupe_key", "group_key",
    "group_id", "next_attempt_at", "throttled_until", "retry_state", "retry_attempts",
    "retry_metadata",
)  # fmt: skip
HISTORY: Final = (
    "delivery_id", "pass", "judged_at", "trigger_version", "attempt", "status", "stage", "reason",
    "detail",
)  # fmt: skip
HELD: Final = (
    "position", "event_id", "tenant_id", "source", "held_pass", "created_at", "last_error",
    "next_attempt_at", "attempts", "retry_state", "released_pass", "metadata",
)  # fmt: skip

_NOTHING: Final = "{}"
_STATUS: Final = {str(word): word for word in Status}
_STAGE: Final = {str(word): word for word in Stage}
_REASON: Final[dict[str | None, Reason | None]] = {None: None} | {str(w): w for w in Reason}
_ROLE: Final[dict[str | None, Role | None]] = {None: None} | {str(word): word for word in Role}
_RETRY: Final = {str(word): word for word in RetryState}


def delivery_row(d: Delivery) -> Row:
    """A delivery in the order of DELIVERY."""
    return (
        d.id, d.tenant_id, d.trigger_id, d.trigger_version, d.workflow_slug, d.event_id,
        d.event_position, d.event_type, d.event_source, d.correlation_id, d.status.value,
        d.stage.value, d.reason and d.reason.value, d.created_at, d.updated_at, d.first_pass,
        d.last_pass, d.ticket, d.shadow, d.role and d.role.value, d.attempts, d.last_error,
        d.run_id, d.run_key, None if d.parameters is None else write(d.parameters), d.dedupe_key,
        d.group_key, d.group_id, d.next_attempt_at, d.throttled_until, d.retry_state.value,
        d.retry_attempts, write(d.retry_metadata),
    )  # fmt: skip


def delivery_of(row: Sequence[Any]) -> Delivery:
    """The delivery that a row was."""
    said: list[Any] = list(row[: len(DELIVERY)])
    said[10], said[11], said[12] = _STATUS[row[10]], _STAGE[row[11]], _REASON[row[12]]
    said[19] = _ROLE[row[19]]
    said[24] = None if row[24] is None else load_stored(row[24])
    said[30], said[32] = _RETRY[row[30]], read(row[32])
    return Delivery(*said)


def history_row(e: HistoryEntry) -> Row:
    """An entry in the order of HISTORY."""
    return (
        e.delivery_id, e.pass_number, e.judged_at, e.trigger_version, e.attempt, e.status.value,
        e.stage.value, e.reason and e.reason.value, write(e.detail),
    )  # fmt: skip


def history_of_row(row: Sequence[Any]) -> HistoryEntry:
    """The entry that a row was."""
    said: list[Any] = list(row)
    said[5], said[6], said[7] = _STATUS[row[5]], _STAGE[row[6]], _REASON[row[7]]
    said[8] = read(row[8])
    return HistoryEntry(*said)


def held_row(h: Held) -> Row:
    """A held event in the order of HELD."""
    return (
        h.position, h.event_id, h.tenant_id, h.source, h.held_pass, h.held_at, h.reason,
        h.next_attempt_at, h.attempts, h.retry_state.value, h.released_pass, write(h.metadata),
    )  # fmt: skip


def held_of(row: Sequence[Any]) -> Held:
    """The held event that a row was."""
    said: list[Any] = list(row)
    said[9], said[11] = _RETRY[row[9]], read(row[11])
    return Held(*said)


def write(value: JsonValue | Mapping[str, JsonValue]) -> str:
    """JSON as text; a mapping of any kind is an object."""
    if isinstance(value, Mapping):
        return encode(dict(value)).decode() if value else _NOTHING
    return encode(value).decode()


def read(text: str) -> JsonObject:
    """An object from its text."""
    return {} if text == _NOTHING else cast("JsonObject", load_stored(text))
