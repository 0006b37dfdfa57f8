"""Hold the dialect of governed events to seed 004, and to losing nothing on the way."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from tests.catalog.envelopes import TRACE, envelopes, read_back, stored

from penstock.base.clock import parse_instant
from penstock.catalog.governed_event import from_stored, recognises, to_native
from penstock.catalog.vocabularies import ALL
from penstock.envelope.codec import decode, encode
from penstock.envelope.envelope import Envelope, JsonObject
from penstock.ingress.pipeline import judge
from penstock.ingress.verdict import Accepted, Arrival, Reason, Rejected, Verdict
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.registry import Registry

PAYLOAD: JsonObject = {
    "entityUrn": "sales.transactions",
    "service": {"schema": "public", "table": "sales_transactions"},
    "rowsAffected": 25000,
    "refreshType": "incremental",
    "completedAt": "2025-12-01T08:00:00Z",
    "triggeredBy": {"actorId": "etl-daily-sales", "actorType": "SYSTEM"},
}
WHOLE: JsonObject = {
    "id": "7b1c9e1e-5a50-4c0f-9b1e-0d3f8d1f2a10",
    "type": "data.refreshed",
    "version": "1.0.0",
    "tenantId": "tenant-123",
    "source": "etl.pipeline",
    "correlationId": "approval-1",
    "createdAt": "2025-12-01T08:00:00.000Z",
    "traceContext": {"traceId": TRACE[3:35], "spanId": TRACE[36:52]},
    "payload": PAYLOAD,
}
ARRIVAL = Arrival(datetime(2026, 3, 1, tzinfo=UTC), "fallback")


@pytest.fixture(scope="module")
def registry() -> Registry:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    return book.current()


def judged(registry: Registry, **changes: Any) -> Verdict:
    return judge(encode({**WHOLE, **changes}), ARRIVAL, registry)


def accepted(verdict: Verdict) -> Envelope:
    assert isinstance(verdict, Accepted), verdict
    return verdict.envelope


def refused(verdict: Verdict) -> tuple[Reason, str]:
    assert isinstance(verdict, Rejected), verdict
    return verdict.reason, verdict.pointer


def test_a_governed_event_is_recognised_by_its_version_in_words() -> None:
    assert recognises(WHOLE)
    assert not recognises({"type": "a.b", "source": "a.b", "version": 1})
    assert not recognises({**WHOLE, "schemaVersion": 1})
    assert not recognises({**WHOLE, "occurredAt": "2025-12-01T08:00:00.000Z"})


def test_a_governed_event_is_accepted_and_stored_in_the_one_shape(registry: Registry) -> None:
    assert accepted(judged(registry)) == Envelope(
        id="7b1c9e1e-5a50-4c0f-9b1e-0d3f8d1f2a10",
        type="data.refreshed",
        source="etl.pipeline",
        occurred_at=parse_instant("2025-12-01T08:00:00.000Z"),
        payload=PAYLOAD,
        tags={"entityUrn": "sales.transactions"},
        correlation_id="approval-1",
        traceparent=TRACE,
        metadata={"traceContext": {"traceId": TRACE[3:35], "spanId": TRACE[36:52]}},
        schema_version=1,
        tenant_id="tenant-123",
    )


def test_what_a_publisher_may_leave_to_us_is_filled_in(registry: Registry) -> None:
    given = ("id", "createdAt", "tenantId", "correlationId", "traceContext")
    least = {name: value for name, value in WHOLE.items() if name not in given}

    event = accepted(judge(encode(least), ARRIVAL, registry))

    assert (event.id, event.occurred_at, event.tenant_id) == (
        "fallback",
        ARRIVAL.accepted_at,
        "default",
    )


@pytest.mark.parametrize(
    ("version", "number", "kept"),
    [("1.0.0", 1, None), ("1.2.3", 1, "1.2.3"), ("1.0.1", 1, "1.0.1")],
)
def test_the_first_number_of_a_semantic_version_counts_and_the_rest_is_kept(
    registry: Registry, version: str, number: int, kept: str | None
) -> None:
    event = accepted(judged(registry, version=version))

    assert event.schema_version == number
    assert event.metadata.get("version") == kept


def test_a_version_that_nobody_registered_is_unknown_at_the_place_it_was_said(
    registry: Registry,
) -> None:
    assert refused(judged(registry, version="2.0.0")) == (Reason.VERSION_UNKNOWN, "/version")


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"version": "1"}, "/version"),
        ({"version": "one"}, "/version"),
        ({"version": "01.0.0"}, "/version"),
        ({"version": "0.1.0"}, "/version"),
        ({"version": "9999999999.0.0"}, "/version"),
        ({"createdAt": "2025-12-01T08:00:00"}, "/createdAt"),
        ({"createdAt": None}, "/createdAt"),
        ({"traceContext": "x"}, "/traceContext"),
        ({"traceContext": {"traceId": 7}}, "/traceContext"),
        ({"traceContext": {"deep": [[[]]]}}, "/traceContext"),
        ({"tenantId": "no such tenant"}, "/tenantId"),
        ({"source": ""}, "/source"),
        ({"id": ""}, "/id"),
        ({"surprise": 1}, "/surprise"),
    ],
)
def test_what_is_wrong_is_said_at_the_place_the_sender_knows(
    registry: Registry, changes: JsonObject, pointer: str
) -> None:
    assert refused(judged(registry, **changes)) == (Reason.ENVELOPE_INVALID, pointer)


def test_a_tenant_that_is_not_the_token_s_is_refused(registry: Registry) -> None:
    bound = ARRIVAL._replace(tenant_id="acme")

    assert refused(judge(encode(WHOLE), bound, registry)) == (Reason.TENANT_MISMATCH, "/tenantId")


@pytest.mark.parametrize(
    "context",
    [
        {},
        {"traceId": TRACE[3:35]},
        {"traceId": "0" * 32, "spanId": TRACE[36:52]},
        {"traceId": "trace-1", "spanId": "span-1"},
    ],
)
def test_a_trace_context_that_w3c_cannot_say_is_kept_as_it_came(
    registry: Registry, context: JsonObject
) -> None:
    event = accepted(judged(registry, traceContext=context))

    assert event.traceparent is None
    assert event.metadata == {"traceContext": context}
    assert from_stored(stored(event))["traceContext"] == context


def test_a_stored_event_is_written_with_every_field_of_a_governed_one(registry: Registry) -> None:
    written = from_stored(stored(accepted(judged(registry))))

    assert {name: written[name] for name in WHOLE} == WHOLE


@given(envelopes)
def test_what_is_written_as_a_governed_event_is_read_back_the_same(envelope: Envelope) -> None:
    sent = decode(encode(from_stored(stored(envelope))))
    assert isinstance(sent, dict)

    assert recognises(sent)
    assert read_back(to_native(sent)) == envelope
