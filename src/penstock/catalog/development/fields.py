"""Hold what every type of development shares: the standard tags, and where they come from.

    payload {"issueId": 42, "mode": "dev"} ── promised by the type ──▶ tags {"issueId": "42", …}

Nothing in a payload is required: what an event is about may stand in its tags alone, and a
publisher of `DomainEvent` promises no more than an object. What is there must fit.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from penstock.catalog.platform.fields import Count, Name
from penstock.envelope.envelope import Severity
from penstock.registry.declare import EventType, P, Payload

STANDARD_TAGS: Final = ("issueId", "prId", "userId", "mode", "provider", "platform")
SOURCES: Final = ("system", "plugin")


def _as_text(value: object) -> object:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else value


# Trackers count their issues and name them; in a tag and in Python it is always the text.
EntityId: TypeAlias = Annotated[
    Name, BeforeValidator(_as_text, json_schema_input_type=Name | Count)
]

Amount: TypeAlias = Annotated[float, Field(ge=0)]


class Work(Payload):
    """What an act of development may be about; each field becomes the tag of its name."""

    issue_id: EntityId | None = None
    """The issue that is worked on."""
    pr_id: EntityId | None = None
    """The pull request that the work ends in."""
    user_id: EntityId | None = None
    """Who acted, or for whom."""
    mode: Literal["dev", "business"] | None = None
    """For whom the work is explained: developers or the business."""
    provider: Name | None = None
    """The provider of the model at work."""
    platform: Name | None = None
    """The platform that hosts the repository."""


def work(
    name: str,
    payload: type[P],
    *,
    example: dict[str, Any],
    severity: Severity = Severity.INFO,
    tags: tuple[str, ...] = (),
    links: dict[str, str] | None = None,
    metadata: tuple[str, ...] = (),
) -> EventType[P]:
    """One type of this vocabulary: needs UUIDv7, promises the standard tags and its own `tags`."""
    return EventType(
        name,
        payload,
        sources=SOURCES,
        severity=severity,
        tags={key: f"/{key}" for key in (*STANDARD_TAGS, *tags)},
        links=links or {},
        needs_uuid7=True,
        event_source="system",
        metadata_from={key: f"/{key}" for key in metadata},
        example={"issueId": "42", "userId": "ana", "mode": "dev", **example},
    )
