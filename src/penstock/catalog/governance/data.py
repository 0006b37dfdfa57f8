"""Declare what happens to governed data: loaded anew, or found to be worse than before."""

from __future__ import annotations

from typing import Literal

from penstock.catalog.governance.fields import Actor, Score, Seconds, Service, Source, governed
from penstock.catalog.platform.fields import Count, Fields, Instant, Name
from penstock.envelope.envelope import Severity
from penstock.registry.declare import Payload


class DataRefreshed(Payload):
    """Data was loaded into a table."""

    entity_urn: Name
    """The entity that the data belongs to."""
    service: Service
    """The table."""
    rows_affected: Count
    """How many rows were written or removed."""
    refresh_type: Literal["full_load", "incremental", "upsert", "delete"]
    """How it was loaded."""
    completed_at: Instant
    """When the load was done."""
    duration: Seconds | None = None
    """How many seconds it took."""
    triggered_by: Actor
    """Who or what loaded it."""
    metadata: Fields | None = None
    """What the pipeline says beside."""


class DataQualityDegraded(Payload):
    """Data is worse than it was when it was profiled before."""

    entity_urn: Name
    """The entity that the data belongs to."""
    canonical_key: Name
    """Its name that never changes."""
    previous_quality_score: Score
    """The score before, of 100."""
    current_quality_score: Score
    """The score now, of 100."""
    drop: Score
    """By how much it fell."""
    profile_id: Name
    """The profile that found it."""


DATA_REFRESHED = governed(
    "data.refreshed",
    DataRefreshed,
    sources=(Source.PIPELINE, Source.FINANCE),
    consumers=("Metadata Studio",),
    example={
        "entityUrn": "sales.transactions",
        "service": {"schema": "public", "table": "sales_transactions"},
        "rowsAffected": 25_000,
        "refreshType": "incremental",
        "completedAt": "2025-12-01T10:30:00Z",
        "duration": 12.5,
        "triggeredBy": {"actorId": "etl-daily-sales", "actorType": "SYSTEM"},
        "metadata": {"partition": "2025-12-01"},
    },
)
DATA_QUALITY_DEGRADED = governed(
    "data.quality.degraded",
    DataQualityDegraded,
    sources=(Source.API, Source.PROFILER),
    consumers=("Alerts", "Monitoring"),
    severity=Severity.WARNING,
    example={
        "entityUrn": "sales.transactions",
        "canonicalKey": "revenue_gross",
        "previousQualityScore": 96.8,
        "currentQualityScore": 81.4,
        "drop": 15.4,
        "profileId": "profile-790",
    },
)

EVENTS = (DATA_REFRESHED, DATA_QUALITY_DEGRADED)
