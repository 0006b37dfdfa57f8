"""Make stored events, and put them into PostgreSQL past the intake."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from penstock.envelope.codec import encode
from penstock.envelope.envelope import Envelope, Severity, Stored

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = b"a key for cursors in these tests"

_EVENT = """
INSERT INTO workflow_events (position, tenant_id, id, type, source, occurred_at, received_at,
  payload, tags, correlation_id, causation_id, traceparent, ttl_ms, metadata, schema_version,
  schema_hash, severity, severity_rule, content_hash, hash)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, '')
"""
_TAG = "INSERT INTO event_tags (tenant_id, tag, position) VALUES (%s, %s, %s)"
_HEAD = "UPDATE head SET position = greatest(position, %s)"


def stored(position: int, *, severity: Severity = Severity.INFO, **said: Any) -> Stored:
    """An event at a position; occurred that many seconds after noon unless it says otherwise."""
    plain: dict[str, Any] = {
        "id": f"evt-{position}",
        "type": "metastore.record.updated",
        "source": "metastore.api",
        "occurred_at": NOON + timedelta(seconds=position % 10**6),
        "payload": {},
    }
    return Stored(
        position=position,
        envelope=Envelope(**(plain | said)),
        received_at=NOON + timedelta(seconds=position % 10**6, milliseconds=5),
        severity=severity,
        severity_rule="default",
        schema_hash=None,
        content_hash=bytes(32),
    )


def load(database: str, events: Sequence[Stored]) -> None:
    """Insert events as they are, in one commit, the way an intake would leave them."""
    with psycopg.connect(database) as connection, connection.cursor() as cursor:
        cursor.executemany(_EVENT, [_row(event) for event in events])
        cursor.executemany(
            _TAG,
            [
                (e.envelope.tenant_id, f"{key}:{value}", e.position)
                for e in events
                for key, value in e.envelope.tags.items()
            ],
        )
        cursor.execute(_HEAD, (max((event.position for event in events), default=0),))


def load_many(database: str, statement: str) -> None:
    """Run one INSERT … SELECT for tests that need thousands of rows."""
    with psycopg.connect(database) as connection:
        connection.execute(statement.encode())
        connection.execute("UPDATE head SET position = (SELECT max(position) FROM workflow_events)")


def _row(event: Stored) -> tuple[object, ...]:
    e = event.envelope
    return (
        event.position, e.tenant_id, e.id, e.type, e.source, e.occurred_at, event.received_at,
        encode(e.payload).decode(), encode(dict(e.tags)).decode(), e.correlation_id,
        e.causation_id, e.traceparent, e.ttl_ms, encode(dict(e.metadata)).decode(),
        e.schema_version, event.schema_hash, str(event.severity), event.severity_rule,
        event.content_hash,
    )  # fmt: skip
