"""Hold the check before sending to the reasons the server gives."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import pytest

from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.publish.refusal import refusal
from penstock.registry.registry import Registry
from penstock.registry.schema import SchemaVersion, schema_hash

NOW = datetime(2026, 1, 31, tzinfo=UTC)
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"version": {"type": "integer"}},
    "required": ["version"],
}


def version(event_type: str, number: int = 1, **metadata: JsonValue) -> SchemaVersion:
    return SchemaVersion(
        event_type=event_type,
        version=number,
        status="active",
        schema=SCHEMA,
        schema_hash=schema_hash(SCHEMA),
        metadata=dict(metadata),
        created_at=NOW,
        created_by="test",
        updated_at=NOW,
        updated_by="test",
    )


def registry(mode: Literal["strict", "open"] = "strict") -> Registry:
    known = [version("metastore.record.updated"), version("issue.opened", needsUuid7=True)]
    return Registry(known, mode=mode)


def event(**said: JsonValue) -> JsonObject:
    base: JsonObject = {
        "id": "evt-1",
        "type": "metastore.record.updated",
        "source": "metastore.api",
        "payload": {"version": 1},
    }
    return {**base, **said}


def reason(said: JsonObject, known: Registry | None = None) -> tuple[str, str] | None:
    """Why it is refused, and where first."""
    refused = refusal(said, now=NOW, registry=known)
    return None if refused is None else (refused.reason, refused.faults[0].pointer)


def nested(levels: int) -> JsonValue:
    value: JsonValue = 1
    for _ in range(levels):
        value = [value]
    return value


def test_a_good_event_is_not_refused() -> None:
    assert reason(event()) is None
    assert reason(event(), registry()) is None


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ({"type": "nodots"}, "/type"),
        ({"source": ""}, "/source"),
        ({"id": "white space"}, "/id"),
        ({"occurredAt": "yesterday"}, "/occurredAt"),
        ({"tags": {"k": 1}}, "/tags/k"),
        ({"ttl": -1}, "/ttl"),
        ({"correlationID": "x"}, "/correlationID"),
    ],
)
def test_an_envelope_that_breaks_a_rule_is_refused_where_it_does(
    said: JsonObject, where: str
) -> None:
    assert reason(event(**said)) == ("envelope_invalid", where)


def test_every_fault_is_told_at_once() -> None:
    refused = refusal(event(type="nodots", ttl=0), now=NOW, registry=None)

    assert refused is not None
    assert {fault.pointer for fault in refused.faults} == {"/type", "/ttl"}
    assert "/type: " in refused.detail
    assert "/ttl: " in refused.detail


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (nested(40), "too_deep"),
        ([0] * 20_001, "too_many_nodes"),
        ("a\x00b", "nul_character"),
        ("\ud800", "lone_surrogate"),
        (2**63, "number_out_of_range"),
        ("x" * 400_000, "too_large"),
    ],
)
def test_what_is_outside_the_json_profile_is_refused(payload: JsonValue, expected: str) -> None:
    refused = refusal(event(payload=payload), now=NOW, registry=None)

    assert refused is not None
    assert refused.reason == expected


def test_a_payload_over_256_kilobytes_is_refused() -> None:
    assert reason(event(payload="x" * 262_142)) is None
    assert reason(event(payload="x" * 262_143)) == ("payload_too_large", "/payload")


def test_a_payload_that_does_not_fit_its_schema_is_refused_where_it_does_not() -> None:
    said = event(payload={"version": "one"})

    assert reason(said, registry()) == ("payload_invalid", "/payload/version")


def test_an_unknown_type_is_refused_with_the_nearest_known() -> None:
    refused = refusal(event(type="metastore.record.updatd"), now=NOW, registry=registry())

    assert refused is not None
    assert refused.reason == "type_unknown"
    assert "the nearest known type is metastore.record.updated" in refused.detail


def test_an_unknown_version_is_refused() -> None:
    assert reason(event(schemaVersion=9), registry()) == ("version_unknown", "/schemaVersion")


def test_an_open_registry_lets_unknown_types_pass() -> None:
    assert reason(event(type="brand.new"), registry("open")) is None


def test_a_type_that_needs_a_uuid7_refuses_other_ids() -> None:
    said = event(type="issue.opened")

    assert reason(said, registry()) == ("envelope_invalid", "/id")
    assert reason({**said, "id": "018f0000-0000-7000-8000-000000000000"}, registry()) is None
