"""Look at dead letters, and send what would pass now on its way again."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from penstock.cli import report
from penstock.cli.commands.events import say_more
from penstock.cli.connect import connect
from penstock.cli.fields import inner, number, rows, text
from penstock.cli.options import AsJson, Cursor, Limit
from penstock.envelope.envelope import JsonObject, JsonValue

app = typer.Typer(
    help="Look at rejected messages and redrive them.", no_args_is_help=True, rich_markup_mode=None
)

Reason = Annotated[str | None, typer.Option(help="Only this reason, such as payload_invalid.")]
Source = Annotated[str | None, typer.Option(help="Only from this source.")]
Type = Annotated[str | None, typer.Option("--type", help="Only of this type.")]
Ids = Annotated[list[str] | None, typer.Option("--id", help="This letter; may be repeated.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")]
Everything = Annotated[bool, typer.Option("--all", help="Every letter there is.")]


@app.command("list")
def list_letters(
    reason: Reason = None,
    source: Source = None,
    event_type: Type = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List dead letters, newest first: id, last seen, count, reason, type, source, detail."""
    parameters = [*_filter(reason, source, event_type), ("limit", str(limit))]
    parameters += [("cursor", cursor)] if cursor else []
    with connect() as client:
        data = client.get("/admin/dead-letters", parameters)
    if as_json:
        report.document(data)
        return
    names = ("id", "lastSeenAt", "count", "reason", "type", "source", "detail")
    report.columns([[text(row, name) for name in names] for row in rows(data, "deadLetters")])
    say_more(text(inner(data, "page"), "nextCursor"))


@app.command("groups")
def list_groups(
    reason: Reason = None, source: Source = None, event_type: Type = None, as_json: AsJson = False
) -> None:
    """List dead letters by cause: messages, reason, type, source, place, detail."""
    with connect() as client:
        data = client.get("/admin/dead-letters/groups", _filter(reason, source, event_type))
    if as_json:
        report.document(data)
        return
    names = ("messages", "reason", "type", "source", "pointer", "detail")
    report.columns([[text(row, name) for name in names] for row in rows(data, "groups")])


@app.command("show")
def show_letter(letter_id: str, as_json: AsJson = False) -> None:
    """Show one dead letter whole; `raw` is the message as it came, in base64."""
    with connect() as client:
        data = client.get(f"/admin/dead-letters/{quote(letter_id, safe='')}")
    letter = inner(data, "deadLetter")
    if as_json:
        report.document(letter)
    else:
        report.fields(letter)


@app.command("redrive")
def redrive(
    ids: Ids = None,
    reason: Reason = None,
    source: Source = None,
    event_type: Type = None,
    everything: Everything = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Judge dead letters again and store what passes now; doing it twice is harmless."""
    chosen = _filter(reason, source, event_type)
    if not (ids or chosen or everything):
        raise typer.BadParameter("expected --id, --reason, --source, --type or --all, found none")
    body: JsonObject = {"dryRun": dry_run}
    if ids:
        listed: list[JsonValue] = [*ids]
        body["ids"] = listed
    else:
        body["filter"] = dict(chosen)
    with connect() as client:
        data = client.post("/admin/dead-letters/redrive", body)
    if as_json:
        report.document(data)
        return
    names = ("wouldPass", "wouldFail") if dry_run else ("redriven",)
    report.columns([[name, number(data, name)] for name in names])
    for row in rows(data, "stillFailing"):
        report.line("stillFailing", text(row, "id"), text(row, "reason"))


def _filter(
    reason: str | None, source: str | None, event_type: str | None
) -> list[tuple[str, str]]:
    given = {"reason": reason, "source": source, "type": event_type}
    return [(name, value) for name, value in given.items() if value is not None]
