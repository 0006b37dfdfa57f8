"""Write one event as one line that a person can scan."""

from __future__ import annotations

from penstock.cli.fields import text
from penstock.envelope.envelope import JsonObject


def event_cells(event: JsonObject) -> list[str]:
    """Position, time, severity, type, source and id of an event as the API shows it."""
    names = ("position", "occurredAt", "severity", "type", "source", "id")
    return [text(event, name) for name in names]


def filter_parameters(
    *,
    types: list[str] | None,
    sources: list[str] | None,
    severities: list[str] | None,
    tags: list[tuple[str, str]],
    correlation_id: str | None = None,
) -> list[tuple[str, str]]:
    """The filters that listing and tailing share, as query parameters."""
    found = [("type", each) for each in types or []]
    found += [("source", each) for each in sources or []]
    found += [("severity", each) for each in severities or []]
    found += [(f"tag.{key}", value) for key, value in tags]
    return found + ([("correlationId", correlation_id)] if correlation_id else [])
