"""Name the words that governed events share: sources, kinds of entity, tiers, actors.

A tier is written `tier1` … `tier5` in every event, so that a filter by tier misses none. Python
takes the short form of the profiler, `T1`, too, and writes the long one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from penstock.catalog.platform.fields import Name
from penstock.envelope.envelope import Severity
from penstock.registry.declare import EventType, P, Payload

# Fields that a type promises as tags, where its payload has them.
TAGS: Final = (
    "entityId",
    "entityType",
    "entityKey",
    "entityUrn",
    "canonicalKey",
    "tier",
    "profileId",
    "approvalId",
)


class Source(StrEnum):
    """Who publishes governed events."""

    SCHEDULER = "kernel.scheduler"
    API = "metadata-studio.api"
    APPROVAL = "metadata-studio.approval"
    PIPELINE = "etl.pipeline"
    FINANCE = "finance.service"
    GRAPHQL = "bff.graphql"
    PROFILER = "agent.profiler"
    MIGRATION = "system.migration"


class EntityType(StrEnum):
    """What can be governed."""

    METADATA = "METADATA"
    KPI = "KPI"
    GLOSSARY = "GLOSSARY"
    BUSINESS_RULE = "BUSINESS_RULE"
    TAG = "TAG"
    LINEAGE = "LINEAGE"


def _long_tier(value: object) -> object:
    is_short = isinstance(value, str) and len(value) == 2 and value.startswith("T")
    return f"tier{value[1:]}" if is_short and isinstance(value, str) else value


Tier: TypeAlias = Annotated[
    Literal["tier1", "tier2", "tier3", "tier4", "tier5"], BeforeValidator(_long_tier)
]
Score: TypeAlias = Annotated[float, Field(ge=0, le=100)]
Seconds: TypeAlias = Annotated[float, Field(ge=0)]
ChangeType: TypeAlias = Literal["APPROVAL", "MIGRATION", "MANUAL"]


class Actor(Payload):
    """Who did something."""

    actor_id: Name
    """The person, agent or service."""
    actor_type: Literal["HUMAN", "AGENT", "SYSTEM"]
    """Which of the three it is."""


class Service(Payload):
    """Where a table lives."""

    schema_name: Name = Field(alias="schema")
    """The schema."""
    table: Name
    """The table."""


def governed(
    name: str,
    payload: type[P],
    *,
    sources: tuple[Source, ...],
    consumers: tuple[str, ...],
    example: dict[str, Any],
    severity: Severity = Severity.INFO,
) -> EventType[P]:
    """One type of this vocabulary; what of `TAGS` its payload has is promised as tags."""
    fields = {info.alias for info in payload.model_fields.values()}
    return EventType(
        name,
        payload,
        sources=tuple(source.value for source in sources),
        consumers=consumers,
        severity=severity,
        tags={key: f"/{key}" for key in TAGS if key in fields},
        example=example,
    )
