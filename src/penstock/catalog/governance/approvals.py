"""Declare what happens to requests for approval: made, granted, refused."""

from __future__ import annotations

from penstock.catalog.governance.fields import Actor, EntityType, Source, Tier, governed
from penstock.catalog.platform.fields import Instant, Name
from penstock.envelope.envelope import Severity
from penstock.registry.declare import Payload


class _Approval(Payload):
    """Which approval it is, and of what."""

    approval_id: Name
    """The approval."""
    entity_type: EntityType
    """What kind of entity."""
    entity_key: Name
    """The entity's name."""


class ApprovalCreated(_Approval):
    """Somebody asked for an approval."""

    tier: Tier
    """How much depends on the entity; tier1 is the most."""
    required_role: Name
    """Who may decide."""
    requested_by: Actor
    """Who asked."""


class ApprovalApproved(_Approval):
    """An approval was granted."""

    entity_id: Name | None = None
    """The entity; one that is new has none yet."""
    approved_by: Actor
    """Who granted it."""
    approved_at: Instant
    """When."""


class ApprovalRejected(_Approval):
    """An approval was refused."""

    reason: str | None = None
    """Why."""
    rejected_by: Actor
    """Who refused it."""
    rejected_at: Instant
    """When."""


_APPROVAL = {
    "approvalId": "approval-123",
    "entityType": "METADATA",
    "entityKey": "earnings_per_share",
}
_CFO = {"actorId": "cfo@example.com", "actorType": "HUMAN"}

APPROVAL_CREATED = governed(
    "approval.created",
    ApprovalCreated,
    sources=(Source.API, Source.APPROVAL, Source.GRAPHQL),
    consumers=("Notifications", "UI"),
    example={
        **_APPROVAL,
        "tier": "tier1",
        "requiredRole": "kernel_architect",
        "requestedBy": {"actorId": "ana@example.com", "actorType": "HUMAN"},
    },
)
APPROVAL_APPROVED = governed(
    "approval.approved",
    ApprovalApproved,
    sources=(Source.APPROVAL,),
    consumers=("Metadata services", "KPI services"),
    example={
        **_APPROVAL,
        "entityId": "meta-456",
        "approvedBy": _CFO,
        "approvedAt": "2025-12-01T10:30:00Z",
    },
)
APPROVAL_REJECTED = governed(
    "approval.rejected",
    ApprovalRejected,
    sources=(Source.APPROVAL,),
    consumers=("Notifications",),
    severity=Severity.WARNING,
    example={
        **_APPROVAL,
        "reason": "no owner named",
        "rejectedBy": _CFO,
        "rejectedAt": "2025-12-01T10:30:00Z",
    },
)

EVENTS = (APPROVAL_CREATED, APPROVAL_APPROVED, APPROVAL_REJECTED)
