"""Look at the registered event types, and register new ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from penstock.cli import report
from penstock.cli.connect import connect
from penstock.cli.fields import number, rows, text
from penstock.cli.options import AsJson
from penstock.envelope.envelope import JsonObject

app = typer.Typer(
    help="Look at event types and register them.", no_args_is_help=True, rich_markup_mode=None
)

_PATH = "/admin/event-schemas"
_PAGE = 200
_SHOWN = ("eventType", "version", "status", "schemaHash")
EventTypeName = Annotated[str, typer.Argument(metavar="TYPE", help="The event type.")]
Version = Annotated[int | None, typer.Option(min=1, help="Its version; the next one.")]
Status = Annotated[str | None, typer.Option(help="draft, active or deprecated; active.")]
File = Annotated[str, typer.Argument(metavar="FILE", help="A JSON Schema; - for stdin.")]


@app.command("list")
def list_schemas(
    event_type: Annotated[str | None, typer.Option("--type", help="Only this type.")] = None,
    status: Annotated[str | None, typer.Option(help="Only with this status.")] = None,
    as_json: AsJson = False,
) -> None:
    """List registered types: type, version, status, hash."""
    given = {"eventType": event_type, "status": status}
    found = _every([(name, value) for name, value in given.items() if value])
    if as_json:
        report.document({"schemas": [*found]})
    else:
        report.columns([[text(row, name) for name in _SHOWN] for row in found])


def _every(parameters: list[tuple[str, str]]) -> list[JsonObject]:
    found: list[JsonObject] = []
    with connect() as client:
        while True:
            place = [("limit", str(_PAGE)), ("offset", str(len(found)))]
            data = client.get(_PATH, [*parameters, *place])
            found += rows(data, "schemas")
            if not rows(data, "schemas") or len(found) >= number(data, "total"):
                return found


@app.command("show")
def show_schema(
    event_type: EventTypeName,
    version: Annotated[int | None, typer.Option(min=1, help="The newest active one.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show one version of a type with its schema."""
    with connect() as client:
        data = client.get(f"{_PATH}/{quote(event_type, safe='')}/{version or 'latest'}")
    if as_json:
        report.document(data)
    else:
        report.fields(data)


@app.command("register")
def register(
    event_type: EventTypeName,
    file: File,
    version: Version = None,
    status: Status = None,
    as_json: AsJson = False,
) -> None:
    """Register a type; it can be published at once, through every door."""
    from penstock.envelope.codec import decode

    body: JsonObject = {"eventType": event_type, "schema": decode(_read(file))}
    if version is not None:
        body["version"] = version
    if status is not None:
        body["status"] = status
    with connect() as client:
        data = client.post(_PATH, body)
    if as_json:
        report.document(data)
    else:
        report.line("registered", *(text(data, name) for name in _SHOWN))


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"expected a readable file, found {error.strerror}") from None
