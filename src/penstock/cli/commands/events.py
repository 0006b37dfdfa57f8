"""Look at stored events."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from penstock.cli import report
from penstock.cli.connect import connect
from penstock.cli.eventline import event_cells, filter_parameters
from penstock.cli.fields import inner, rows, text
from penstock.cli.options import (
    AsJson,
    Cursor,
    Limit,
    Severities,
    Sources,
    Tags,
    Types,
    pairs,
)

app = typer.Typer(help="Look at stored events.", no_args_is_help=True, rich_markup_mode=None)

CorrelationId = Annotated[str | None, typer.Option(help="Only with this correlation id.")]
From = Annotated[str | None, typer.Option("--from", help="Occurred at or after (RFC 3339).")]
To = Annotated[str | None, typer.Option("--to", help="Occurred at or before (RFC 3339).")]
JsonPath = Annotated[str | None, typer.Option(help="A jsonPath over the payload.")]


@app.command("list")
def list_events(
    types: Types = None,
    sources: Sources = None,
    severities: Severities = None,
    tags: Tags = None,
    correlation_id: CorrelationId = None,
    occurred_from: From = None,
    occurred_to: To = None,
    json_path: JsonPath = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List events, newest first: position, time, severity, type, source, id."""
    parameters = filter_parameters(
        types=types, sources=sources, severities=severities, tags=pairs(tags),
        correlation_id=correlation_id,
    )  # fmt: skip
    rest = {"from": occurred_from, "to": occurred_to, "jsonPath": json_path, "cursor": cursor}
    parameters += [(name, value) for name, value in rest.items() if value is not None]
    with connect() as client:
        data = client.get("/admin/events", [*parameters, ("limit", str(limit))])
    if as_json:
        report.document(data)
        return
    report.columns([event_cells(event) for event in rows(data, "events")], tone=2)
    say_more(text(inner(data, "page"), "nextCursor"))


@app.command("show")
def show_event(event_id: str, as_json: AsJson = False) -> None:
    """Show one event whole."""
    with connect() as client:
        event = inner(client.get(f"/admin/events/{quote(event_id, safe='')}"), "event")
    if as_json:
        report.document(event)
    else:
        report.fields(event)


def say_more(next_cursor: str) -> None:
    """Say how to go on, when there is more."""
    if next_cursor:
        report.say(f"there is more: --cursor {next_cursor}")
