"""Look at workflows, apply one from a file, start it, delete it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from penstock.cli import report
from penstock.cli.connect import connect
from penstock.cli.fields import inner, rows, text
from penstock.cli.finding import version_of
from penstock.cli.options import AsJson
from penstock.cli.refused import Refused
from penstock.envelope.envelope import JsonObject, JsonValue

if TYPE_CHECKING:
    from penstock.cli.client import Client
    from penstock.triggers.files import Item

app = typer.Typer(
    help="Look at workflows, apply, run and delete them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_PATH = "/workflows"
_OPTIONAL = ("description", "parametersSchema", "defaultParameters", "outputSchema", "metadata")
Slug = Annotated[str, typer.Argument(metavar="SLUG", help="The workflow's name in addresses.")]
File = Annotated[str, typer.Argument(metavar="FILE", help="YAML or JSON; - for stdin.")]
Parameters = Annotated[str, typer.Option(help="A JSON object, @FILE, or - for stdin.")]


@app.command("list")
def list_workflows(
    status: Annotated[str | None, typer.Option(help="Only active, or only disabled.")] = None,
    as_json: AsJson = False,
) -> None:
    """List workflows by slug: slug, version, status, steps, name."""
    with connect() as client:
        data = client.get(_PATH, [("status", status)] if status else [])
    if as_json:
        report.document(data)
        return
    report.columns(
        [
            [
                *(text(row, name) for name in ("slug", "version", "status")),
                len(rows(row, "steps")),
                text(row, "name"),
            ]
            for row in rows(data, "workflows")
        ]
    )


@app.command("show")
def show_workflow(
    slug: Slug,
    version: Annotated[int | None, typer.Option(min=1, help="This one; the newest.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show one workflow: its steps and what each waits for, its schedules, triggers, versions."""
    with connect() as client:
        data = client.get(_of(slug), [("version", str(version))] if version else [])
    if as_json:
        report.document(data)
        return
    workflow = inner(data, "workflow")
    report.columns([[name, text(workflow, name)] for name in ("slug", "version", "status", "name")])
    lines = [_step(each) for each in rows(workflow, "steps")]
    lines += [_schedule(each) for each in rows(workflow, "schedules")]
    lines += [_trigger(each) for each in rows(workflow, "eventTriggers")]
    lines += [_version(each) for each in rows(data, "versions")]
    report.columns(lines)


@app.command("apply-file")
def apply_file(file: File, as_json: AsJson = False) -> None:
    """Make the workflows that a file says what it says; doing it twice changes nothing."""
    from penstock.triggers.files import Kind, read_files
    from penstock.workflows.documents import CHECKS

    items = read_files([(file, _read(file).decode("utf-8", "replace"))], CHECKS)
    others = [item for item in items if item.kind is not Kind.WORKFLOW]
    if others:
        raise Refused(
            "files_invalid",
            f"{file}:{others[0].line}: expected documents of kind Workflow, found a"
            f" {others[0].kind}",
            "Apply schedules, services and triggers with `penstock apply`.",
        )
    with connect() as client:
        applied = [_apply(client, item) for item in items]
    if as_json:
        shown: list[JsonValue] = [*applied]
        report.document({"applied": shown})
        return
    report.columns([[text(each, n) for n in ("action", "slug", "version")] for each in applied])


@app.command("run")
def run_workflow(
    slug: Slug,
    parameters: Parameters = "{}",
    run_key: Annotated[str | None, typer.Option(help="One active run at a time has it.")] = None,
    partition_key: Annotated[str | None, typer.Option(help="Which partition it works on.")] = None,
    correlation_id: Annotated[str | None, typer.Option(help="The trace it is part of.")] = None,
    as_json: AsJson = False,
) -> None:
    """Start a run: its id, status and workflow."""
    body: JsonObject = {"parameters": _json(parameters)}
    given = {"runKey": run_key, "partitionKey": partition_key, "correlationId": correlation_id}
    body |= {name: value for name, value in given.items() if value is not None}
    with connect() as client:
        run = inner(client.post(f"{_of(slug)}/run", body), "run")
    if as_json:
        report.document(run)
    else:
        report.line(*(text(run, name) for name in ("id", "status", "workflowSlug")))


@app.command("delete")
def delete_workflow(slug: Slug, as_json: AsJson = False) -> None:
    """Let a workflow launch nothing more; its versions and runs stay."""
    with connect() as client:
        client.delete(_of(slug))
    if as_json:
        report.document({"slug": slug, "deleted": True})
    else:
        report.line("deleted", slug)


def _apply(client: Client, item: Item) -> JsonObject:
    """Make one workflow, or bring the one of that name to what the file says."""
    try:
        before = inner(client.get(_of(item.name)), "workflow")
    except Refused as refused:
        if refused.status != 404:
            raise
        after = inner(client.post(_PATH, item.body), "workflow")
        return {"action": "created", "slug": item.name, "version": after.get("version")}
    absent: JsonObject = {name: None for name in _OPTIONAL if name not in item.body}
    change = {**absent, **item.body}
    after = inner(client.patch(_of(item.name), change, version_of(before)), "workflow")
    is_same = after.get("version") == before.get("version")
    action = "unchanged" if is_same else "updated"
    return {"action": action, "slug": item.name, "version": after.get("version")}


def _step(step: JsonObject) -> list[str]:
    after = step.get("dependsOn")
    waits = ",".join(map(str, after)) if isinstance(after, list) else ""
    called = next((text(step, n) for n in ("handler", "serviceSlug", "url") if step.get(n)), "")
    return ["step", text(step, "id"), text(step, "type"), called, waits and f"after {waits}"]


def _schedule(schedule: JsonObject) -> list[str]:
    state = "" if schedule.get("isActive") else "off"
    when = f"{text(schedule, 'cron')} {text(schedule, 'timezone')}"
    return ["schedule", text(schedule, "name"), when, text(schedule, "nextRunAt"), state]


def _trigger(trigger: JsonObject) -> list[str]:
    names = ("name", "eventType", "status", "id")
    return ["trigger", *(text(trigger, name) for name in names)]


def _version(version: JsonObject) -> list[str]:
    return ["version", *(text(version, n) for n in ("version", "createdAt", "createdBy")), ""]


def _of(slug: str) -> str:
    return f"{_PATH}/{quote(slug, safe='')}"


def _json(given: str) -> JsonValue:
    from penstock.envelope.codec import decode

    raw = _read(given.removeprefix("@")) if given == "-" or given[:1] == "@" else given.encode()
    return decode(raw, bytes_max=max(1, len(raw)))


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"expected a readable file, found {error.strerror}") from None
