"""A view shows what was published, and beside it what we know."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.store.support import NOON, stored

from penstock.envelope.check import read
from penstock.envelope.envelope import Envelope, Severity
from penstock.registry.registry import Registry
from penstock.store.view import envelope_wire, is_expired, page_schema, view

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
