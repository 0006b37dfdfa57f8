"""The vocabulary of seed 004 is there: 13 types, 8 sources, 6 kinds of entity, and its examples."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.catalog.governance.fields import EntityType, Source
from penstock.catalog.governance.profiles import METADATA_PROFILE_DUE, MetadataProfileDue
from penstock.catalog.governance.vocabulary import GOVERNANCE
from penstock.catalog.vocabularies import ALL
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, Severity
from penstock.ingress.pipeline import judge
from penstock.ingress.verdict import Accepted, Arrival, Reason, Rejected
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.registry import Registry
from penstock.registry.schema import check_payload

# Type, and who reads it, as the table of the seed has them.
SEED = {
    "metadata.profile.due": "Metadata Studio",
    "metadata.profile.completed": "Analytics, Alerts",
    "metadata.profile.failed": "Alerts, Monitoring",
    "metadata.changed": "Lineage, Impact Analysis",
    "metadata.approved": "Profiler, Analytics",
    "metadata.deprecated": "Alerts, Lineage",
    "kpi.changed": "Impact Analysis, Dashboards",
    "kpi.approved": "Analytics, Dashboards",
    "data.refreshed": "Metadata Studio",
    "data.quality.degraded": "Alerts, Monitoring",
    "approval.created": "Notifications, UI",
    "approval.approved": "Metadata services, KPI services",
    "approval.rejected": "Notifications",
}
SOURCES = [
    "kernel.scheduler",
    "metadata-studio.api",
    "metadata-studio.approval",
    "etl.pipeline",
    "finance.service",
    "bff.graphql",
    "agent.profiler",
    "system.migration",
]
ENTITY_TYPES = ["METADATA", "KPI", "GLOSSARY", "BUSINESS_RULE", "TAG", "LINEAGE"]
# Required fields of each type; a star of the specification is a required field.
REQUIRED = {
    "metadata.profile.due": "entityType entityId canonicalKey tier",
    "metadata.profile.completed": "entityType entityId canonicalKey completeness uniqueness"
    " validity qualityScore qualityGrade profileId rowCount duration triggeredBy",
    "metadata.profile.failed": "entityType entityId canonicalKey error triggeredBy",
    "metadata.changed": "entityId canonicalKey changeType tier changedBy",
    "metadata.approved": "approvalId canonicalKey tier approvedBy approvedAt",
    "metadata.deprecated": "entityId canonicalKey deprecatedBy",
    "kpi.changed": "entityId canonicalKey changeType tier changedBy",
    "kpi.approved": "approvalId canonicalKey tier approvedBy approvedAt",
    "data.refreshed": "entityUrn service rowsAffected refreshType completedAt triggeredBy",
    "data.quality.degraded": "entityUrn canonicalKey previousQualityScore currentQualityScore drop"
    " profileId",
    "approval.created": "approvalId entityType entityKey tier requiredRole requestedBy",
    "approval.approved": "approvalId entityType entityKey approvedBy approvedAt",
    "approval.rejected": "approvalId entityType entityKey rejectedBy rejectedAt",
}
LOUD = {
    "metadata.profile.failed": Severity.ERROR,
    "metadata.deprecated": Severity.WARNING,
    "data.quality.degraded": Severity.WARNING,
    "approval.rejected": Severity.WARNING,
}
EVENTS = {event.name: event for event in GOVERNANCE.events}
ARRIVAL = Arrival(datetime(2025, 12, 1, tzinfo=UTC), "fallback")


@pytest.fixture(scope="module")
def registry() -> Registry:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    return book.current()


def test_exactly_the_thirteen_types_of_the_seed_are_declared_with_their_readers() -> None:
    assert {name: ", ".join(event.consumers) for name, event in EVENTS.items()} == SEED
    assert len(SEED) == 13


def test_the_eight_sources_and_six_kinds_of_entity_are_those_of_the_seed() -> None:
    assert [source.value for source in Source] == SOURCES
    assert {source for event in GOVERNANCE.events for source in event.sources} == set(SOURCES)
    assert [kind.value for kind in EntityType] == ENTITY_TYPES


@pytest.mark.parametrize("name", sorted(SEED))
def test_the_required_fields_are_those_of_the_specification(name: str) -> None:
    assert set(EVENTS[name].schema()["required"]) == set(REQUIRED[name].split())  # type: ignore[arg-type]
    assert EVENTS[name].severity == LOUD.get(name, Severity.INFO)


@pytest.mark.parametrize("name", sorted(SEED))
def test_a_payload_without_a_required_field_is_refused_at_it(registry: Registry, name: str) -> None:
    schema = registry.find(name, None)
    example: Any = EVENTS[name].example
    assert schema is not None

    for field in REQUIRED[name].split():
        rest = {key: value for key, value in example.items() if key != field}
        assert [fault.pointer for fault in check_payload(schema, rest)] == [f"/{field}"]


def test_a_tier_is_written_in_one_way_in_events(registry: Registry) -> None:
    schema = registry.find("metadata.profile.due", None)
    payload: JsonObject = {"entityType": "KPI", "entityId": "k", "canonicalKey": "c"}
    assert schema is not None

    assert check_payload(schema, {**payload, "tier": "tier5"}) == ()
    for tier in ("T1", "tier6", "Tier1", 1):
        assert {f.pointer for f in check_payload(schema, {**payload, "tier": tier})} == {"/tier"}


def test_python_takes_the_profiler_s_short_tier_and_writes_the_long_one() -> None:
    payload = MetadataProfileDue.model_validate(
        {"entityType": "KPI", "entityId": "k", "canonicalKey": "c", "tier": "T2"}
    )

    assert payload.tier == "tier2"
    assert METADATA_PROFILE_DUE.event(payload)["payload"] == {
        "entityType": "KPI",
        "entityId": "k",
        "canonicalKey": "c",
        "tier": "tier2",
        "priority": "normal",
        "reason": "SCHEDULE",
    }


def test_the_profile_of_an_empty_table_has_no_scores(registry: Registry) -> None:
    schema = registry.find("metadata.profile.completed", None)
    example: Any = EVENTS["metadata.profile.completed"].example
    scores = ("completeness", "uniqueness", "validity", "qualityScore")
    assert schema is not None

    empty = {**example, **dict.fromkeys(scores), "qualityGrade": "N/A", "rowCount": 0}

    assert check_payload(schema, empty) == ()
    assert check_payload(schema, {**example, "qualityScore": 100.1}) != ()


GOVERNED: dict[str, JsonObject] = {
    "scheduled profiling": {
        "type": "metadata.profile.due",
        "source": "kernel.scheduler",
        "payload": {
            "entityType": "METADATA",
            "entityId": "meta-456",
            "canonicalKey": "revenue_gross",
            "tier": "tier1",
            "priority": "high",
            "reason": "SCHEDULE",
            "lastProfiledAt": "2025-11-24T10:30:00Z",
        },
    },
    "profile completed": {
        "type": "metadata.profile.completed",
        "source": "metadata-studio.api",
        "payload": {
            "entityType": "METADATA",
            "entityId": "meta-456",
            "canonicalKey": "revenue_gross",
            "completeness": 98.5,
            "uniqueness": 95.2,
            "validity": 96.8,
            "qualityScore": 96.8,
            "qualityGrade": "A",
            "profileId": "profile-789",
            "rowCount": 150000,
            "duration": 2.5,
            "triggeredBy": {"actorId": "kernel.scheduler", "actorType": "SYSTEM"},
        },
    },
    "data refresh": {
        "type": "data.refreshed",
        "source": "etl.pipeline",
        "payload": {
            "entityUrn": "sales.transactions",
            "service": {"schema": "public", "table": "sales_transactions"},
            "rowsAffected": 25000,
            "refreshType": "incremental",
            "completedAt": "2025-12-01T08:00:00.000Z",
            "triggeredBy": {"actorId": "etl-daily-sales", "actorType": "SYSTEM"},
        },
    },
    "approval": {
        "type": "metadata.approved",
        "source": "metadata-studio.approval",
        "payload": {
            "approvalId": "approval-123",
            "entityId": "meta-456",
            "canonicalKey": "earnings_per_share",
            "tier": "tier1",
            "approvedBy": {"actorId": "cfo@example.com", "actorType": "HUMAN"},
            "approvedAt": "2025-12-01T08:00:00.000Z",
        },
    },
}


@pytest.mark.parametrize("flow", sorted(GOVERNED))
def test_the_examples_of_the_seed_are_accepted_as_they_stand_there(
    registry: Registry, flow: str
) -> None:
    governed: JsonObject = {
        "id": "7b1c9e1e-5a50-4c0f-9b1e-0d3f8d1f2a10",
        "version": "1.0.0",
        "tenantId": "tenant-123",
        "createdAt": "2025-12-01T08:00:00.000Z",
        **GOVERNED[flow],
    }

    verdict = judge(encode(governed), ARRIVAL, registry)

    assert isinstance(verdict, Accepted), verdict
    assert verdict.envelope.tenant_id == "tenant-123"
    assert verdict.envelope.payload == GOVERNED[flow]["payload"]


def test_an_unknown_actor_is_refused_at_its_place(registry: Registry) -> None:
    event: Any = {**GOVERNED["approval"]}
    event["payload"] = {**event["payload"], "approvedBy": {"actorId": "x", "actorType": "GHOST"}}

    verdict = judge(encode(event), ARRIVAL, registry)

    assert isinstance(verdict, Rejected)
    assert verdict.reason == Reason.PAYLOAD_INVALID
    assert verdict.pointer == "/payload/approvedBy/actorType"
