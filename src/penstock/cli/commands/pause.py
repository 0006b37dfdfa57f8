"""Hold back a trigger or a source, and let it go on."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import quote

import typer

from penstock.cli import report
from penstock.cli.commands.triggers import TriggerName
from penstock.cli.connect import connect
from penstock.cli.fields import text
from penstock.cli.finding import find_trigger, full_name
from penstock.cli.options import AsJson
from penstock.envelope.envelope import JsonObject

pausing = typer.Typer(
    help="Hold back a trigger or a source; what comes meanwhile waits.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
resuming = typer.Typer(
    help="Let a trigger or a source go on with what has waited.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

SourceName = Annotated[str, typer.Argument(metavar="SOURCE", help="As its events name it.")]
Until = Annotated[str | None, typer.Option(help="Until this instant (RFC 3339).")]
For = Annotated[str | None, typer.Option("--for", help="For so long: 90s, 10m, 2h, 1d.")]
Reason = Annotated[str | None, typer.Option(help="Why; kept in the log.")]
Skip = Annotated[bool, typer.Option("--skip", help="Drop what has waited.")]
_LENGTH = re.compile(r"([1-9][0-9]{0,8})(ms|s|m|h|d)", re.ASCII)
_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@pausing.command("trigger")
def pause_trigger(
    trigger: TriggerName,
    until: Until = None,
    length: For = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Let a trigger wait; its events are judged when it goes on."""
    _on_trigger(trigger, "pause", _pause_body(until, length, reason), as_json=as_json)


@pausing.command("source")
def pause_source(
    source: SourceName,
    until: Until = None,
    length: For = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Let the events of a source wait before any trigger sees them."""
    _on_source(source, "pause", _pause_body(until, length, reason), as_json=as_json)


@resuming.command("trigger")
def resume_trigger(
    trigger: TriggerName, skip: Skip = False, reason: Reason = None, as_json: AsJson = False
) -> None:
    """Let a trigger go on."""
    _on_trigger(trigger, "resume", _resume_body(reason, skip=skip), as_json=as_json)


@resuming.command("source")
def resume_source(
    source: SourceName, skip: Skip = False, reason: Reason = None, as_json: AsJson = False
) -> None:
    """Let the events of a source go on."""
    _on_source(source, "resume", _resume_body(reason, skip=skip), as_json=as_json)


def _on_trigger(trigger: str, verb: str, body: JsonObject, *, as_json: bool) -> None:
    with connect() as client:
        found = find_trigger(client, trigger)
        data = client.post(f"/admin/triggers/{quote(text(found, 'id'), safe='')}/{verb}", body)
    _print(data, full_name(found), as_json=as_json)


def _on_source(source: str, verb: str, body: JsonObject, *, as_json: bool) -> None:
    with connect() as client:
        data = client.post(f"/admin/sources/{quote(source, safe='')}/{verb}", body)
    _print(data, source, as_json=as_json)


def _print(data: JsonObject, name: str, *, as_json: bool) -> None:
    if as_json:
        report.document(data)
        return
    is_paused, is_changed = bool(data.get("paused")), bool(data.get("changed"))
    word = "paused" if is_paused else "resumed" if is_changed else "not paused"
    until = [f"until {text(data, 'until') or 'resumed'}"] if is_paused else []
    report.line(word, name, *until)


def _pause_body(until: str | None, length: str | None, reason: str | None) -> JsonObject:
    if until is not None and length is not None:
        raise typer.BadParameter("expected --until or --for", param_hint="--until / --for")
    body: JsonObject = {} if until is None else {"until": until}
    if length is not None:
        found = _LENGTH.fullmatch(length)
        if found is None:
            raise typer.BadParameter(
                f"expected a length such as 10m, found {length!r}", param_hint="--for"
            )
        body["forMs"] = int(found[1]) * _MS[found[2]]
    return body if reason is None else {**body, "reason": reason}


def _resume_body(reason: str | None, *, skip: bool) -> JsonObject:
    body: JsonObject = {"skip": skip}
    return body if reason is None else {**body, "reason": reason}
