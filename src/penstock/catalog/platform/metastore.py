"""Declare what happens to metastore records: created, updated, deleted.

A record is named by its namespace and key, and that is all an event must carry. The typed reading
(`derived`) needs the whole record beside them.
"""

from __future__ import annotations

from typing import Literal

from penstock.catalog.platform.fields import Count, Fields, Instant, Name
from penstock.registry.declare import EventType, Payload

_SOURCES = ("metastore.api", "metastore.worker")
_DERIVED = ("namespace", "key", "record")


class Record(Payload):
    """A metastore record as it was after the change."""

    namespace: Name | None = None
    """The space it lives in."""
    key: Name | None = None
    """Its name in that space."""
    metadata: Fields | None = None
    """What it holds."""
    tags: list[str] | None = None
    """Words it is found by."""
    owner: str | None = None
    """Who it belongs to."""
    schema_hash: str | None = None
    """Which schema its content fits."""
    version: Count | None = None
    """How often it was changed."""
    created_at: Instant | None = None
    """When it came into being."""
    updated_at: Instant | None = None
    """When it last changed."""
    deleted_at: Instant | None = None
    """When it was deleted."""
    created_by: str | None = None
    """Who made it."""
    updated_by: str | None = None
    """Who last changed it."""


class _RecordChange(Payload):
    """What every change of a record says."""

    namespace: Name
    """The space the record lives in."""
    key: Name
    """The record's name in that space."""
    version: Count | None = None
    """The record's version after the change."""
    actor: str | None = None
    """Who changed it."""
    record: Record | None = None
    """The whole record."""


class RecordCreated(_RecordChange):
    """A record came into being."""


class RecordUpdated(_RecordChange):
    """A record's content changed, and its version went up by one."""

    restored_from: Fields | None = None
    """What was restored, when the change is a restore."""


class RecordDeleted(_RecordChange):
    """A record was deleted: marked as gone, or gone for good."""

    mode: Literal["soft", "hard"] | None = None
    """Whether it can be restored."""


def _example(version: int) -> dict[str, object]:
    named = {"namespace": "feature-flags", "key": "frontend-search", "version": version}
    return {
        **named,
        "actor": "ana",
        "record": {
            **named,
            "metadata": {"enabled": True},
            "tags": ["search"],
            "owner": "web",
            "updatedAt": "2026-03-01T10:30:00.000Z",
        },
    }


EVENTS = (
    EventType(
        "metastore.record.created",
        RecordCreated,
        sources=_SOURCES,
        derived_requires=_DERIVED,
        example=_example(1),
    ),
    EventType(
        "metastore.record.updated",
        RecordUpdated,
        sources=_SOURCES,
        derived_requires=_DERIVED,
        example=_example(12),
    ),
    EventType(
        "metastore.record.deleted",
        RecordDeleted,
        sources=_SOURCES,
        derived_requires=_DERIVED,
        example={**_example(13), "mode": "soft"},
    ),
)

RECORD_CREATED, RECORD_UPDATED, RECORD_DELETED = EVENTS
