"""Declare what happens to governed definitions, of metadata and of KPIs.

proposed ──▶ approved ──▶ changed ──▶ … ──▶ deprecated
"""

from __future__ import annotations

from penstock.catalog.governance.fields import Actor, ChangeType, Source, Tier, governed
from penstock.catalog.platform.fields import Instant, Name
from penstock.envelope.envelope import Severity
from penstock.registry.declare import Payload


class _Changed(Payload):
    """What every changed definition says."""

    entity_id: Name
    """The definition."""
    canonical_key: Name
    """Its name that never changes."""
    change_type: ChangeType
    """What brought the change about."""
    tier: Tier
    """How much depends on it; tier1 is the most."""
    standard_pack_id: Name | None = None
    """The pack of standards it follows."""
    changed_by: Actor
    """Who changed it."""


class _Approved(Payload):
    """What every approved definition says."""

    approval_id: Name
    """The approval."""
    entity_id: Name | None = None
    """The definition; one that is new has none yet."""
    canonical_key: Name
    """Its name that never changes."""
    tier: Tier
    """How much depends on it; tier1 is the most."""
    approved_by: Actor
    """Who approved it."""
    approved_at: Instant
    """When."""


class MetadataChanged(_Changed):
    """A definition of metadata changed."""

    changed_fields: list[str] | None = None
    """Which of its fields."""


class MetadataApproved(_Approved):
    """A change of a metadata definition was approved."""


class MetadataDeprecated(Payload):
    """A definition of metadata should be used no more."""

    entity_id: Name
    """The definition."""
    canonical_key: Name
    """Its name that never changes."""
    reason: str | None = None
    """Why."""
    deprecated_by: Actor
    """Who said so."""


class KpiChanged(_Changed):
    """A KPI's definition changed."""


class KpiApproved(_Approved):
    """A change of a KPI was approved."""


_METADATA = {"entityId": "meta-456", "canonicalKey": "earnings_per_share"}
_KPI = {"entityId": "kpi-12", "canonicalKey": "gross_margin"}
_CFO = {"actorId": "cfo@example.com", "actorType": "HUMAN"}
_APPROVED = {
    "approvalId": "approval-123",
    "tier": "tier1",
    "approvedBy": _CFO,
    "approvedAt": "2025-12-01T10:30:00Z",
}
_CHANGED = {"changeType": "APPROVAL", "tier": "tier1", "standardPackId": "ifrs-15"}
_CHANGERS = (Source.API, Source.APPROVAL, Source.MIGRATION)

METADATA_CHANGED = governed(
    "metadata.changed",
    MetadataChanged,
    sources=_CHANGERS,
    consumers=("Lineage", "Impact Analysis"),
    example={**_METADATA, **_CHANGED, "changedFields": ["label"], "changedBy": _CFO},
)
METADATA_APPROVED = governed(
    "metadata.approved",
    MetadataApproved,
    sources=(Source.APPROVAL,),
    consumers=("Profiler", "Analytics"),
    example={**_METADATA, **_APPROVED},
)
METADATA_DEPRECATED = governed(
    "metadata.deprecated",
    MetadataDeprecated,
    sources=(Source.API, Source.GRAPHQL),
    consumers=("Alerts", "Lineage"),
    severity=Severity.WARNING,
    example={**_METADATA, "reason": "replaced by eps_diluted", "deprecatedBy": _CFO},
)
KPI_CHANGED = governed(
    "kpi.changed",
    KpiChanged,
    sources=_CHANGERS,
    consumers=("Impact Analysis", "Dashboards"),
    example={**_KPI, **_CHANGED, "changedBy": _CFO},
)
KPI_APPROVED = governed(
    "kpi.approved",
    KpiApproved,
    sources=(Source.APPROVAL,),
    consumers=("Analytics", "Dashboards"),
    example={**_KPI, **_APPROVED},
)

EVENTS = (METADATA_CHANGED, METADATA_APPROVED, METADATA_DEPRECATED, KPI_CHANGED, KPI_APPROVED)
