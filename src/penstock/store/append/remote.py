"""Write what a server is asked about decisions, and read what it answers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from penstock.base.clock import parse_instant
from penstock.base.errors import (
    AccessDenied,
    AppendConflict,
    ConditionInvalid,
    EventRefused,
    Fault,
    PenstockError,
    StoreUnavailable,
)
from penstock.envelope.envelope import (
    DEFAULT_TENANT,
    Envelope,
    JsonObject,
    JsonValue,
    Severity,
    Stored,
)
from penstock.store.append.condition import Condition, Criteria
from penstock.store.append.request import Appended, Found


def append_body(events: Sequence[JsonValue], condition: Condition | None) -> JsonObject:
    """The body of POST /v1/append."""
    body: JsonObject = {"events": [*events]}
    if condition is None or condition == Condition():
        return body
    said: JsonObject = {}
    if condition.criteria:
        said["query"] = _items(condition.criteria)
    if condition.after is not None:
        said["after"] = str(condition.after)
    if condition.fail_if_exists:
        said["failIfExists"] = _items(condition.fail_if_exists)
    return {**body, "condition": said}


def read_body(criteria: Criteria, after: int, limit: int) -> JsonObject:
    """The body of POST /v1/decide/read."""
    return {"query": _items(criteria), "from": str(after + 1), "limit": limit}


def _items(criteria: Criteria) -> JsonObject:
    items: list[JsonValue] = []
    for criterion in criteria:
        item: JsonObject = {}
        if criterion.types:
            item["types"] = [*criterion.types]
        if criterion.tags:
            item["tags"] = dict(criterion.tags)
        items.append(item)
    return {"items": items}


def read_appended(tree: JsonValue) -> Appended:
    """Where a server says the events are."""
    try:
        positions = cast("JsonObject", cast("JsonObject", tree)["data"])["positions"]
        return Appended(
            tuple(int(cast("str", each)) for each in cast("list[JsonValue]", positions))
        )
    except (KeyError, TypeError, ValueError):
        raise _stranger() from None


def read_found(tree: JsonValue) -> Found:
    """The events and the `after` of a decision."""
    try:
        data = cast("JsonObject", cast("JsonObject", tree)["data"])
        events = [
            _stored(cast("JsonObject", each)) for each in cast("list[JsonValue]", data["events"])
        ]
        return Found(events, int(cast("str", data["after"])))
    except (KeyError, TypeError, ValueError):
        raise _stranger() from None


def _stored(shown: JsonObject) -> Stored:
    """An event as the API shows it; the hash of its content stays on the server."""

    def text(name: str) -> str | None:
        return cast("str | None", shown.get(name))

    return Stored(
        position=int(cast("str", shown["position"])),
        envelope=Envelope(
            id=cast("str", shown["id"]),
            type=cast("str", shown["type"]),
            source=cast("str", shown["source"]),
            occurred_at=parse_instant(cast("str", shown["occurredAt"])),
            payload=shown.get("payload"),
            tags=cast("dict[str, str]", shown.get("tags") or {}),
            correlation_id=text("correlationId"),
            causation_id=text("causationId"),
            traceparent=text("traceparent"),
            ttl_ms=cast("int | None", shown.get("ttlMs")),
            metadata=cast("JsonObject", shown.get("metadata") or {}),
            schema_version=cast("int | None", shown.get("schemaVersion")),
            tenant_id=text("tenantId") or DEFAULT_TENANT,
        ),
        received_at=parse_instant(cast("str", shown["receivedAt"])),
        severity=Severity(cast("str", shown["severity"])),
        severity_rule=cast("str", shown["severityRule"]),
        schema_hash=text("schemaHash"),
        content_hash=b"",
    )


def error_of(status: int, tree: JsonValue, condition: Condition | None) -> PenstockError:
    """What a problem document says, as the error it was at the server."""
    said = tree if isinstance(tree, dict) else {}
    code, detail, remedy = (str(said.get(name) or "") for name in ("code", "detail", "remedy"))
    faults = tuple(_fault(each) for each in cast("list[JsonValue]", said.get("errors") or []))
    if code == AppendConflict.code:
        found = cast("list[str]", said.get("conflictingPositions") or [])
        after = 0 if condition is None else condition.after or 0
        exists = said.get("clause") == "failIfExists"
        return AppendConflict(tuple(map(int, found)), after=after, exists=exists)
    if code == ConditionInvalid.code:
        pointer = faults[0].pointer if faults else ""
        return ConditionInvalid(detail, pointer=pointer, remedy=remedy)
    if status in (401, 403):
        return AccessDenied(detail or "the token was refused", known=status == 403)
    if code and 400 <= status < 500 and status not in (404, 405, 408, 429):
        return EventRefused(detail, reason=code, remedy=remedy, faults=faults)
    return StoreUnavailable(detail or f"expected an answer of Penstock, found status {status}")


def _fault(tree: JsonValue) -> Fault:
    said = tree if isinstance(tree, dict) else {}
    return Fault(str(said.get("pointer") or ""), str(said.get("detail") or ""))


def _stranger() -> StoreUnavailable:
    return StoreUnavailable("expected an answer of Penstock, found another one")
