"""Look at event types and their versions, compare and check them, register them, document them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, urlsplit

import typer

from penstock.cli import report
from penstock.cli.connect import connect
from penstock.cli.fields import number, rows, text, warnings, words
from penstock.cli.options import AsJson
from penstock.cli.refused import Refused
from penstock.envelope.envelope import JsonObject, JsonValue

if TYPE_CHECKING:
    from penstock.cli.client import Client
    from penstock.registry.entry import TypeEntry

app = typer.Typer(
    help="Look at event types, check, register and document them.",
    no_args_is_help=True,
    rich_markup_mode=None,
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
    as_of: Annotated[
        str | None, typer.Option(help="As it was at a position or an instant (RFC 3339).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List registered types: type, version, status, hash."""
    given = {"eventType": event_type, "status": status, "asOf": as_of}
    with connect() as client:
        found = _every(client, [(name, value) for name, value in given.items() if value])
    if as_json:
        report.document({"schemas": [*found]})
    else:
        report.columns([[text(row, name) for name in _SHOWN] for row in found])


@app.command("show")
def show_schema(
    event_type: EventTypeName,
    version: Annotated[int | None, typer.Option(min=1, help="The newest active one.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show one version of a type with its schema."""
    with connect() as client:
        data = client.get(f"{_of(event_type)}/{version or 'latest'}")
    if as_json:
        report.document(data)
    else:
        report.fields(data)


@app.command("diff")
def diff(
    event_type: EventTypeName,
    old: Annotated[int | None, typer.Argument(min=1, help="The one before the newer.")] = None,
    new: Annotated[int | None, typer.Argument(min=1, help="The newest.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two versions of a type: whom it breaks, where, what changed."""
    from penstock.registry.compatibility import compare, verdict

    with connect() as client:
        found = {number(v, "version"): v for v in _every(client, [("eventType", event_type)])}
    newer = new or max(found, default=0)
    older = old or max((n for n in found if n < newer), default=0)
    for wanted in (older, newer):
        if wanted not in found:
            raise Refused(
                "not_found",
                f"expected two versions of {event_type} to compare, found {sorted(found)}",
                f"`penstock registry list --type {event_type}` shows what there is.",
            )
    differences = compare(_schema(found[older]), _schema(found[newer]))
    shown: list[JsonValue] = [each.wire() for each in differences]
    data: JsonObject = {
        "eventType": event_type,
        "from": older,
        "to": newer,
        "verdict": verdict(differences),
        "differences": shown,
    }
    _print_differences(data, as_json=as_json)


@app.command("check")
def check(
    event_type: EventTypeName,
    file: File,
    version: Version = None,
    days: Annotated[int, typer.Option(min=1, max=3650, help="How old events may be.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Say what registering a schema would break, in schemas and in stored events.

    Nothing is registered. Exit 1 when it is breaking, so that a build can stop there.
    """
    body: JsonObject = {"eventType": event_type, "schema": _read_schema(file), "days": days}
    if version is not None:
        body["version"] = version
    with connect() as client:
        data = client.post(f"{_PATH}/check", body)
    _print_differences(data, as_json=as_json)
    if not as_json:
        for sentence in words(data, "sentences")[len(rows(data, "differences")) :]:
            report.line("found", sentence)
        report.warn(warnings(data))
    if data.get("breaking"):
        raise Refused(
            "schema_breaking",
            f"{event_type} version {number(data, 'version')} breaks"
            f" version {number(data, 'comparedWith')}",
            "Keep what was promised, or register it with --override --reason.",
        )


@app.command("register")
def register(
    event_type: EventTypeName,
    file: File,
    version: Version = None,
    status: Status = None,
    override: Annotated[bool, typer.Option("--override", help="Although it breaks.")] = False,
    reason: Annotated[str | None, typer.Option(help="Why it is meant to break.")] = None,
    as_json: AsJson = False,
) -> None:
    """Register a type; it can be published at once, through every door."""
    if override and not (reason or "").strip():
        raise typer.BadParameter("expected a reason beside --override", param_hint="--reason")
    body: JsonObject = {"eventType": event_type, "schema": _read_schema(file)}
    given = {"version": version, "status": status, "override": override or None, "reason": reason}
    body |= {name: value for name, value in given.items() if value is not None}
    with connect() as client:
        data = client.post(_PATH, body)
    if as_json:
        report.document(data)
    else:
        report.line("registered", *(text(data, name) for name in _SHOWN))
        report.warn(warnings(data))


@app.command("docs")
def docs(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("reference"),
    declared: Annotated[
        bool, typer.Option("--declared", help="What the code declares; asks no server.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a Markdown page for every type, and an AsyncAPI document."""
    from importlib.metadata import version

    from penstock.registry.asyncapi import HOST
    from penstock.registry.handbook import reference
    from penstock.registry.on_disk import write_reference

    if declared:
        entries, host = _declared_entries(), HOST
    else:
        with connect() as client:
            entries, host = _entries(client), urlsplit(client.url).netloc
    pages = reference(entries, release=version("penstock"), host=host)
    written = [str(out / path) for path in write_reference(out, pages)]
    if as_json:
        report.document({"written": [*written]})
    else:
        for path in written:
            report.line("written", path)


def _declared_entries() -> list[TypeEntry]:
    from penstock.catalog.vocabularies import ALL
    from penstock.registry.entry import declared_entries
    from penstock.registry.on_disk import read_contracts

    return declared_entries(ALL, read_contracts(Path("contracts")))


def _entries(client: Client) -> list[TypeEntry]:
    from penstock.registry.entry import TypeEntry

    names = dict.fromkeys(text(row, "eventType") for row in _every(client, []))
    return [TypeEntry.model_validate(client.get(_of(name))) for name in names]


def _every(client: Client, parameters: list[tuple[str, str]]) -> list[JsonObject]:
    found: list[JsonObject] = []
    while True:
        place = [("limit", str(_PAGE)), ("offset", str(len(found)))]
        data = client.get(_PATH, [*parameters, *place])
        found += rows(data, "schemas")
        if not rows(data, "schemas") or len(found) >= number(data, "total"):
            return found


def _print_differences(data: JsonObject, *, as_json: bool) -> None:
    if as_json:
        report.document(data)
        return
    report.columns(
        [
            [_whom(each), text(each, "pointer") or "/", text(each, "detail")]
            for each in rows(data, "differences")
        ]
    )
    report.line("verdict", text(data, "verdict"))


def _whom(difference: JsonObject) -> str:
    """Whom a change breaks: those who publish, those who read, both or nobody."""
    publishers, readers = difference.get("breaksBackward"), difference.get("breaksForward")
    if publishers and readers:
        return "breaks all"
    return "breaks publishers" if publishers else "breaks readers" if readers else "breaks none"


def _schema(version: JsonObject) -> JsonObject:
    found = version.get("schema")
    return found if isinstance(found, dict) else {}


def _of(event_type: str) -> str:
    return f"{_PATH}/{quote(event_type, safe='')}"


def _read_schema(file: str) -> JsonValue:
    from penstock.envelope.codec import decode
    from penstock.registry.schema import SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX

    raw = _read(file)
    return decode(raw, bytes_max=max(SCHEMA_BYTES_MAX, len(raw)), depth_max=SCHEMA_DEPTH_MAX)


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"expected a readable file, found {error.strerror}") from None
