"""Look at triggers and what became of events there; make, change and disable them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from penstock.cli import report
from penstock.cli.connect import connect
from penstock.cli.fields import rows, text, warnings
from penstock.cli.finding import (
    TRIGGERS,
    agree,
    find_trigger,
    full_name,
    path_of,
    read_triggers,
    version_of,
)
from penstock.cli.options import AsJson
from penstock.cli.refused import Refused
from penstock.envelope.envelope import JsonObject, JsonValue

app = typer.Typer(
    help="Look at triggers, make, change and disable them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

TriggerName = Annotated[
    str, typer.Argument(metavar="TRIGGER", help="Its id, its name, or workflow/name.")
]
File = Annotated[Path, typer.Option("--file", help="YAML documents of kind Trigger; - for stdin.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
_SHOWN = ("id", "version", "status", "eventType")
_DELIVERY = ("position", "eventId", "status", "stage", "reason", "attempts", "workflowRunId")


@app.command("list")
def list_triggers(
    workflow: Annotated[str | None, typer.Option(help="Only of this workflow.")] = None,
    status: Annotated[str | None, typer.Option(help="active, shadow or disabled.")] = None,
    event_type: Annotated[str | None, typer.Option("--type", help="Of this event type.")] = None,
    source: Annotated[str | None, typer.Option(help="Of this event source.")] = None,
    as_of: Annotated[str | None, typer.Option(help="As of a position or an instant.")] = None,
    as_json: AsJson = False,
) -> None:
    """List triggers: id, version, status, event type, workflow and name."""
    given = {
        "workflow": workflow, "status": status, "eventType": event_type, "eventSource": source,
        "asOf": as_of,
    }  # fmt: skip
    with connect() as client:
        data = client.get(TRIGGERS, [(name, value) for name, value in given.items() if value])
    if as_json:
        report.document(data)
    else:
        found = rows(data, "triggers")
        report.columns([[*(text(row, name) for name in _SHOWN), full_name(row)] for row in found])


@app.command("show")
def show_trigger(
    trigger: TriggerName,
    versions: Annotated[bool, typer.Option("--versions", help="Every version of it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show one trigger whole, or all its versions."""
    with connect() as client:
        found = find_trigger(client, trigger)
        data = client.get(f"{path_of(found)}/versions") if versions else found
    if as_json:
        report.document(data)
    elif versions:
        names = ("version", "status", "updatedAt", "updatedBy", "name")
        report.columns([[text(row, name) for name in names] for row in rows(data, "versions")])
    else:
        report.fields(data)


@app.command("deliveries")
def list_deliveries(
    trigger: TriggerName,
    status: Annotated[str | None, typer.Option(help="Only with this status.")] = None,
    event_id: Annotated[str | None, typer.Option(help="Only of this event.")] = None,
    dedupe_key: Annotated[str | None, typer.Option(help="Only with this key.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many at most.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List what became of events, newest first."""
    given = {"status": status, "eventId": event_id, "dedupeKey": dedupe_key, "limit": str(limit)}
    with connect() as client:
        path = f"{path_of(find_trigger(client, trigger))}/deliveries"
        data = client.get(path, [(name, value) for name, value in given.items() if value])
    if as_json:
        report.document(data)
    else:
        report.columns([[text(row, name) for name in _DELIVERY] for row in rows(data, "data")])


@app.command("create")
def create_triggers(file: File, as_json: AsJson = False) -> None:
    """Make the triggers that a file describes; they judge what is stored from now on."""
    items = read_triggers(file)
    made: list[JsonValue] = []
    with connect() as client:
        for item in items:
            slug = quote(item.name.partition("/")[0], safe="")
            data = client.post(f"/workflows/{slug}/triggers", item.body)
            made.append(data)
            if not as_json:
                _say("created", data)
    if as_json:
        report.document({"created": made})


@app.command("update")
def update_trigger(trigger: TriggerName, file: File, as_json: AsJson = False) -> None:
    """Make a trigger say what a file says; what the file leaves out is taken back."""
    items = read_triggers(file)
    if len(items) != 1:
        raise Refused(
            "files_invalid",
            f"expected one trigger in {file}, found {len(items)}",
            "Several are for `penstock apply`.",
        )
    _change(trigger, items[0].body, "updated", as_json=as_json)


@app.command("disable")
def disable_trigger(trigger: TriggerName, yes: Yes = False, as_json: AsJson = False) -> None:
    """Let a trigger judge nothing more; `update` or `apply` brings it back."""
    agree(f"Disable {trigger}?", yes=yes)
    _change(trigger, {"status": "disabled"}, "disabled", as_json=as_json)


def _change(trigger: str, changes: JsonObject, word: str, *, as_json: bool) -> None:
    with connect() as client:
        found = find_trigger(client, trigger)
        data = client.patch(path_of(found), changes, version_of(found))
    if as_json:
        report.document(data)
    else:
        is_same = data.get("version") == found.get("version")
        _say("unchanged" if is_same else word, data)


def _say(word: str, data: JsonObject) -> None:
    report.line(word, *(text(data, name) for name in _SHOWN), full_name(data))
    report.warn(warnings(data))
