"""Declare what happens to assets: produced by a workflow step, and expired later.

Only `assetId` is required to publish. The typed reading (`derived`) also needs `workflowRunId`,
because the contract's own example is exactly these two fields; a reader of the typed frame may
rely on both and must treat the rest as optional. An expiry also says when and why.
"""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from penstock.catalog.platform.fields import Count, Instant, Name
from penstock.registry.declare import EventType, Payload

_SOURCES = ("core.asset-materializer",)


class Freshness(Payload):
    """For how long an asset counts as fresh."""

    max_age_ms: Count | None = None
    """Older than this is stale."""
    ttl_ms: Count | None = None
    """It expires this long after it was produced."""
    cadence_ms: Count | None = None
    """It is expected anew this often."""


class AssetProduced(Payload):
    """A workflow step produced an asset, or one partition of it."""

    asset_id: Name
    """The asset."""
    workflow_definition_id: Name | None = None
    """The workflow that produces it."""
    workflow_slug: Name | None = None
    """The workflow's name in addresses."""
    workflow_run_id: Name | None = None
    """The run that produced it."""
    workflow_run_step_id: Name | None = None
    """The step of that run."""
    step_id: Name | None = None
    """The step's name in the definition."""
    produced_at: Instant | None = None
    """When it was produced."""
    freshness: Freshness | None = None
    """For how long it is fresh."""
    partition_key: str | None = None
    """Which partition, if the asset has any."""
    payload: JsonValue = None
    """What the step said about it."""
    parameters: JsonValue = None
    """The parameters of the run."""


class AssetExpired(AssetProduced):
    """An asset is no longer fresh and wants to be produced again."""

    expires_at: Instant | None = None
    """When it stopped being fresh."""
    requested_at: Instant | None = None
    """When the expiry was asked for."""
    reason: Literal["ttl", "cadence", "manual"] | None = None
    """What made it expire."""


_PRODUCED = {
    "assetId": "asset-7",
    "workflowDefinitionId": "wf-alpha",
    "workflowSlug": "weather-daily",
    "workflowRunId": "run-42",
    "workflowRunStepId": "run-42-step-3",
    "stepId": "publish",
    "producedAt": "2026-03-01T10:30:00.000Z",
    "freshness": {"maxAgeMs": 3_600_000, "ttlMs": 86_400_000, "cadenceMs": None},
    "partitionKey": "2026-03-01",
}

EVENTS = (
    EventType(
        "asset.produced",
        AssetProduced,
        sources=_SOURCES,
        links={"assetIds": "/assetId"},
        derived_requires=("assetId", "workflowRunId"),
        example=_PRODUCED,
    ),
    EventType(
        "asset.expired",
        AssetExpired,
        sources=_SOURCES,
        links={"assetIds": "/assetId"},
        derived_requires=("assetId", "workflowRunId", "expiresAt", "requestedAt", "reason"),
        example={
            **_PRODUCED,
            "expiresAt": "2026-03-02T10:30:00.000Z",
            "requestedAt": "2026-03-02T10:30:00.000Z",
            "reason": "ttl",
        },
    ),
)

ASSET_PRODUCED, ASSET_EXPIRED = EVENTS
