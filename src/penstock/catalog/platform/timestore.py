"""Declare what happens to time-series datasets: partitions, exports, schemas.

Only the dataset is required to publish. The typed reading of a new partition needs everything that
finds its file again.
"""

from __future__ import annotations

from pydantic import JsonValue

from penstock.catalog.platform.fields import Count, Fields, Instant, Name
from penstock.registry.declare import EventType, Payload

_SOURCES = ("timestore.ingest", "timestore.lifecycle", "timestore.service")
_LINKS = {"datasetIds": "/datasetId", "timestoreDatasetIds": "/datasetId"}
_DATASET = {"datasetId": "ds-1", "datasetSlug": "weather", "manifestId": "manifest-9"}


class _Dataset(Payload):
    """Which dataset an event is about."""

    dataset_id: Name
    """The dataset."""
    dataset_slug: Name | None = None
    """The dataset's name in addresses."""
    manifest_id: Name | None = None
    """The manifest that the change belongs to."""


class PartitionCreated(_Dataset):
    """A partition was written and can be read."""

    partition_id: Name | None = None
    """The partition."""
    partition_key: JsonValue = None
    """What the partition holds, as one key."""
    partition_key_fields: Fields | None = None
    """The same, field by field."""
    storage_target_id: Name | None = None
    """Where its file is kept."""
    file_path: Name | None = None
    """The file."""
    row_count: Count | None = None
    """How many rows it has."""
    file_size_bytes: Count | None = None
    """How large the file is."""
    checksum: str | None = None
    """What the file's content hashes to."""
    received_at: Instant | None = None
    """When the rows arrived."""
    attributes: Fields | None = None
    """Whatever else the writer noted."""


class DeletedPartition(Payload):
    """One partition that is gone."""

    id: Name
    """The partition."""
    storage_target_id: Name | None = None
    """Where its file was kept."""
    partition_key: JsonValue = None
    """What it held, as one key."""
    start_time: Instant | None = None
    """The first instant it held."""
    end_time: Instant | None = None
    """The last instant it held."""
    file_path: str | None = None
    """The file that was removed."""
    file_size_bytes: Count | None = None
    """How large the file was."""
    reason: str | None = None
    """Why it was removed."""


class PartitionDeleted(_Dataset):
    """Partitions were removed, by retention or by hand."""

    partitions: list[DeletedPartition] | None = None
    """The partitions that are gone."""


class ExportCompleted(_Dataset):
    """A dataset was exported to one file."""

    export_id: Name | None = None
    """The export."""
    storage_target_id: Name | None = None
    """Where its file is kept."""
    file_path: str | None = None
    """The file."""
    row_count: Count | None = None
    """How many rows it has."""
    file_size_bytes: Count | None = None
    """How large the file is."""
    exported_at: Instant | None = None
    """When it was finished."""


class _SchemaChange(_Dataset):
    """How a dataset's columns change."""

    schema_version_id: Name | None = None
    """The schema that holds from here on."""
    added_columns: list[JsonValue] | None = None
    """The columns that are new."""
    defaults: Fields | None = None
    """What the new columns hold in old rows."""


class SchemaEvolved(_SchemaChange):
    """A dataset got new columns."""


class BackfillRequested(_SchemaChange):
    """Old rows shall be filled in for new columns."""


_EVOLVED = {
    **_DATASET,
    "schemaVersionId": "schema-4",
    "addedColumns": ["humidity"],
    "defaults": {"humidity": None},
}

EVENTS = (
    EventType(
        "timestore.partition.created",
        PartitionCreated,
        sources=_SOURCES,
        links=_LINKS,
        derived_requires=(
            "datasetId",
            "datasetSlug",
            "manifestId",
            "partitionId",
            "storageTargetId",
            "filePath",
            "rowCount",
            "fileSizeBytes",
            "receivedAt",
        ),
        example={
            **_DATASET,
            "partitionId": "part-2026-03-01",
            "partitionKey": "2026-03-01",
            "partitionKeyFields": {"day": "2026-03-01"},
            "storageTargetId": "local",
            "filePath": "weather/2026-03-01.parquet",
            "rowCount": 1440,
            "fileSizeBytes": 48_213,
            "checksum": "sha256:9f2c",
            "receivedAt": "2026-03-01T10:30:00.000Z",
            "attributes": {"station": "north"},
        },
    ),
    EventType(
        "timestore.partition.deleted",
        PartitionDeleted,
        sources=_SOURCES,
        links=_LINKS,
        derived_requires=("datasetId", "datasetSlug", "manifestId", "partitions"),
        example={
            **_DATASET,
            "partitions": [
                {
                    "id": "part-2025-03-01",
                    "storageTargetId": "local",
                    "filePath": "weather/2025-03-01.parquet",
                    "fileSizeBytes": 47_900,
                    "reason": "retention",
                }
            ],
        },
    ),
    EventType(
        "timestore.dataset.export.completed",
        ExportCompleted,
        sources=_SOURCES,
        links=_LINKS,
        derived_requires=("datasetId", "datasetSlug", "manifestId", "exportId"),
        example={
            **_DATASET,
            "exportId": "export-3",
            "storageTargetId": "local",
            "filePath": "exports/weather.parquet",
            "rowCount": 525_600,
            "fileSizeBytes": 17_301_504,
            "exportedAt": "2026-03-01T10:30:00.000Z",
        },
    ),
    EventType(
        "timestore.schema.evolved", SchemaEvolved, sources=_SOURCES, links=_LINKS, example=_EVOLVED
    ),
    EventType(
        "timestore.schema.backfill.requested",
        BackfillRequested,
        sources=_SOURCES,
        links=_LINKS,
        example=_EVOLVED,
    ),
)

(
    PARTITION_CREATED,
    PARTITION_DELETED,
    DATASET_EXPORT_COMPLETED,
    SCHEMA_EVOLVED,
    SCHEMA_BACKFILL_REQUESTED,
) = EVENTS
