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
    key: Name | None = None
    metadata: Fields | None = None
    tags: list[str] | None = None
    owner: str | None = None
    schema_hash: str | None = None
    version: Count | None = None
    created_at: Instant | None = None
    updated_at: Instant | None = None
    deleted_at: Instant | None = None
    created_by: str | None = None
    updated_by: str | None = None


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
