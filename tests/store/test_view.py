"""A view shows what was published, and beside it what we know."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.store.support import NOON, stored

from penstock.base.errors import QueryInvalid
from penstock.envelope.check import read
from penstock.envelope.envelope import Envelope, JsonObject, Severity
from penstock.registry.declare import EventType, Payload, Upcast, Vocabulary
from penstock.registry.registry import Registry
from penstock.registry.schema import SchemaVersion, schema_hash
from penstock.registry.upcast import Upcasts
from penstock.store.view import envelope_wire, is_expired, page_schema, read_upcast, view

REGISTRY = Registry([], mode="open")


def test_a_view_is_the_wire_form_and_what_we_know_beside_it() -> None:
    event = stored(
        42,
        payload={"assetId": "asset-7", "workflowRunId": "run-42"},
        tags={"userId": "u1"},
        correlation_id="req-1",
        ttl_ms=60_000,
        severity=Severity.WARNING,
    )

    shown = view(event, REGISTRY, now=NOON + timedelta(minutes=1))

    assert shown == {
        "id": "evt-42",
        "type": "metastore.record.updated",
        "source": "metastore.api",
        "occurredAt": "2026-03-01T12:00:42.000Z",
        "receivedAt": "2026-03-01T12:00:42.005Z",
        "payload": {"assetId": "asset-7", "workflowRunId": "run-42"},
        "tags": {"userId": "u1"},
        "metadata": {},
        "correlationId": "req-1",
        "ttl": 60_000,
        "ttlMs": 60_000,
        "expired": False,
        "position": "42",
        "severity": "warning",
        "severityRule": "default",
        "links": {"assetIds": ["asset-7"], "workflowRunIds": ["run-42"]},
        "derived": None,
        "schemaHash": None,
    }


def test_a_position_beyond_what_javascript_counts_is_kept_exactly() -> None:
    assert view(stored(2**53 + 1, occurred_at=NOON), REGISTRY)["position"] == "9007199254740993"


@pytest.mark.parametrize(
    ("ttl_ms", "after_ms", "expired"),
    [
        (None, 10**12, False),
        (1_000, 999, False),
        (1_000, 1_000, False),
        (1_000, 1_001, True),
        (1, -5_000, False),
        (2**62, 10**12, False),
    ],
)
def test_an_event_expires_when_its_time_to_live_has_passed(
    ttl_ms: int | None, after_ms: int, expired: bool
) -> None:
    event = Envelope("e", "a.b", "s", occurred_at=NOON, payload={}, ttl_ms=ttl_ms)

    assert is_expired(event, NOON + timedelta(milliseconds=after_ms)) is expired


def test_without_a_time_the_machines_own_is_used() -> None:
    long_ago = stored(1, ttl_ms=1, occurred_at=NOON - timedelta(days=9_999))

    assert view(long_ago, REGISTRY)["expired"] is True


def test_the_wire_form_can_be_published_again() -> None:
    event = stored(1, payload={"n": 1}, tags={"a": "b"}, ttl_ms=5, tenant_id="acme")

    again = read(envelope_wire(event), accepted_at=NOON, fallback_id="x", tenant_id=None)

    assert again == event.envelope


def test_the_schema_of_a_page_lists_the_fields_of_its_events() -> None:
    schema = page_schema([stored(1, payload={"n": 1}), stored(2, payload={"n": 2, "m": "x"})])

    assert schema["totalSamples"] == 2
    fields = schema["fields"]
    assert isinstance(fields, list)
    paths = {f["jsonPath"]: f["occurrences"] for f in fields if isinstance(f, dict)}
    assert (paths["$.payload.n"], paths["$.payload.m"]) == (2, 1)


def shop(upcast: Upcast, newest: JsonObject) -> Registry:
    """A registry with two versions of one type, and what makes the second of the first."""
    versions = [
        SchemaVersion(TYPE, n, "active", schema, schema_hash(schema), {}, NOON, "a", NOON, "a")
        for n, schema in enumerate(({"type": "object"}, newest), 1)
    ]
    page = Vocabulary("shop", (EventType(TYPE, Payload, version=2, upcasts={1: upcast}),))
    return Registry(versions, mode="strict", upcasts=Upcasts((page,)))


TYPE = "metastore.record.updated"
OLD: JsonObject = {"old": "asset-7"}
RENAMED = shop(lambda payload: {"assetId": payload["old"]}, {"required": ["assetId"]})


def test_a_payload_of_an_older_version_is_shown_upcasted_and_both_versions_are_named() -> None:
    shown = view(stored(1, payload=OLD, schema_version=1), RENAMED)

    assert shown["payload"] == {"assetId": "asset-7"}
    assert (shown["schemaVersion"], shown["upcastTo"]) == (1, 2)
    assert shown["links"] == {"assetIds": ["asset-7"]}
    assert "upcastFailed" not in shown


def test_whoever_asks_for_the_original_gets_it() -> None:
    shown = view(stored(1, payload=OLD, schema_version=1), RENAMED, upcast=False)

    assert shown["payload"] == OLD
    assert shown["schemaVersion"] == 1
    assert "upcastTo" not in shown


def test_a_payload_of_the_newest_version_is_shown_as_it_is() -> None:
    shown = view(stored(1, payload={"assetId": "a"}, schema_version=2), RENAMED)

    assert shown["payload"] == {"assetId": "a"}
    assert "upcastTo" not in shown


def test_an_upcaster_that_fails_shows_the_original_and_says_so() -> None:
    shown = view(stored(1, payload={}, schema_version=1), RENAMED)

    assert shown["payload"] == {}
    assert shown["upcastFailed"] == {
        "to": 2,
        "detail": "the upcaster from version 1 failed with KeyError: 'old'",
    }
    assert "upcastTo" not in shown


def test_showing_an_event_never_changes_what_is_stored() -> None:
    event = stored(1, payload={"old": "asset-7"}, schema_version=1)

    view(event, RENAMED)

    assert event.envelope.payload == {"old": "asset-7"}


@pytest.mark.parametrize(("text", "upcast"), [(None, True), ("true", True), ("false", False)])
def test_the_parameter_upcast_is_true_unless_it_is_false(text: str | None, upcast: bool) -> None:
    assert read_upcast(text) is upcast


@pytest.mark.parametrize("text", ["", "no", "False", "0"])
def test_any_other_value_of_upcast_is_refused(text: str) -> None:
    with pytest.raises(QueryInvalid) as refused:
        read_upcast(text)

    assert refused.value.parameter == "upcast"
