"""Declare what happens around profiles of governed data: one is due, one ran, one could not."""

from __future__ import annotations

from typing import Literal

from penstock.catalog.governance.fields import (
    Actor,
    EntityType,
    Score,
    Seconds,
    Source,
    Tier,
    governed,
)
from penstock.catalog.platform.fields import Count, Instant, Name
from penstock.envelope.envelope import Severity
from penstock.registry.declare import Payload


class _Profile(Payload):
    """Which entity a profile is about."""

    entity_type: EntityType
    """What kind of entity."""
    entity_id: Name
    """The entity."""
    canonical_key: Name
    """The entity's name that never changes."""


class MetadataProfileDue(_Profile):
    """An entity wants to be profiled."""

    tier: Tier
    """How much depends on it; tier1 is the most."""
    priority: Literal["low", "normal", "high", "critical"] = "normal"
    """How much it hurries."""
    reason: Literal["SCHEDULE", "STRUCTURAL_CHANGE", "QUALITY_DROP", "MANUAL"] = "SCHEDULE"
    """Why it is due."""
    last_profiled_at: Instant | None = None
    """When it was profiled before."""
    standard_pack_id: Name | None = None
    """The pack of standards it follows."""


class MetadataProfileCompleted(_Profile):
    """A profile ran, and this is what it found."""

    completeness: Score | None
    """How much is filled in, of 100; null for an empty table."""
    uniqueness: Score | None
    """How unique the keys are, of 100; null for an empty table."""
    validity: Score | None
    """How much keeps the rules, of 100; null for an empty table."""
    quality_score: Score | None
    """The three in one, of 100; null for an empty table."""
    quality_grade: Name
    """The score as a grade, A+ to F."""
    profile_id: Name
    """The profile."""
    row_count: Count
    """How many rows there were."""
    duration: Seconds
    """How many seconds it took."""
    triggered_by: Actor
    """Who or what asked for it."""


class MetadataProfileFailed(_Profile):
    """A profile could not be made."""

    error: str
    """What went wrong."""
    error_code: Name | None = None
    """The same as a word for programs."""
    triggered_by: Actor
    """Who or what asked for it."""


_ENTITY = {"entityType": "METADATA", "entityId": "meta-456", "canonicalKey": "revenue_gross"}
_BY = {"triggeredBy": {"actorId": "kernel.scheduler", "actorType": "SYSTEM"}}

METADATA_PROFILE_DUE = governed(
    "metadata.profile.due",
    MetadataProfileDue,
    sources=(Source.SCHEDULER, Source.APPROVAL),
    consumers=("Metadata Studio",),
    example={
        **_ENTITY,
        "tier": "tier1",
        "priority": "high",
        "reason": "SCHEDULE",
        "lastProfiledAt": "2025-11-24T10:30:00Z",
        "standardPackId": "ifrs-15",
    },
)
METADATA_PROFILE_COMPLETED = governed(
    "metadata.profile.completed",
    MetadataProfileCompleted,
    sources=(Source.API, Source.PROFILER),
    consumers=("Analytics", "Alerts"),
    example={
        **_ENTITY,
        "completeness": 98.5,
        "uniqueness": 95.2,
        "validity": 96.8,
        "qualityScore": 96.8,
        "qualityGrade": "A",
        "profileId": "profile-789",
        "rowCount": 150_000,
        "duration": 2.5,
        **_BY,
    },
)
METADATA_PROFILE_FAILED = governed(
    "metadata.profile.failed",
    MetadataProfileFailed,
    sources=(Source.API, Source.PROFILER),
    consumers=("Alerts", "Monitoring"),
    severity=Severity.ERROR,
    example={**_ENTITY, "error": "table not found", "errorCode": "no_table", **_BY},
)

EVENTS = (METADATA_PROFILE_DUE, METADATA_PROFILE_COMPLETED, METADATA_PROFILE_FAILED)
