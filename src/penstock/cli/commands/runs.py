"""Look at runs, cancel and replay them, and follow one trace from event to event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated
from urllib.parse import quote

import typer

from penstock.cli import report
from penstock.cli.commands.events import say_more
from penstock.cli.connect import connect
from penstock.cli.fields import inner, rows, text
from penstock.cli.options import AsJson, Cursor, Limit
from penstock.envelope.envelope import JsonObject

app = typer.Typer(
    help="Look at runs of workflows, cancel and replay them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_PATH = "/workflow-runs"
_SHOWN = ("id", "createdAt", "status", "workflowSlug", "runKey", "durationMs", "errorMessage")
_FIELDS = (
    "id", "workflowSlug", "workflowVersion", "status", "runKey", "triggeredBy", "correlationId",
    "replayOf", "createdAt", "startedAt", "completedAt", "durationMs", "failureReason",
    "errorMessage", "parameters", "output",
)  # fmt: skip
RunId = Annotated[str, typer.Argument(metavar="RUN_ID", help="The run's id.")]


@app.command("list")
def list_runs(
    workflow: Annotated[str | None, typer.Option(help="Only of this workflow.")] = None,
    statuses: Annotated[
        list[str] | None,
        typer.Option("--status", help="pending running succeeded failed canceled; repeat it."),
    ] = None,
    created_from: Annotated[
        str | None, typer.Option("--from", help="Made at or after (RFC 3339).")
    ] = None,
    created_to: Annotated[
        str | None, typer.Option("--to", help="Made at or before (RFC 3339).")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first: id, made, status, workflow, key, duration in ms, error."""
    given = {"workflow": workflow, "from": created_from, "to": created_to, "cursor": cursor}
    parameters = [(name, value) for name, value in given.items() if value is not None]
    parameters += [("status", each) for each in statuses or []]
    with connect() as client:
        data = client.get(_PATH, [*parameters, ("limit", str(limit))])
    if as_json:
        report.document(data)
        return
    report.columns([[text(row, name) for name in _SHOWN] for row in rows(data, "runs")], tone=2)
    say_more(text(inner(data, "page"), "nextCursor"))


@app.command("show")
def show_run(run_id: RunId, as_json: AsJson = False) -> None:
    """Show one run and a line for each of its steps: step, status, attempt, ms, error."""
    with connect() as client:
        run = inner(client.get(_of(run_id)), "run")
        found = client.get(f"{_of(run_id)}/steps")
    steps = rows(found, "steps")
    if as_json:
        report.document({"run": run, "steps": [*steps]})
        return
    report.fields({name: run[name] for name in _FIELDS if run.get(name) is not None})
    names = ("stepId", "status", "attempt", "durationMs", "errorMessage")
    report.columns([["step", *(text(each, name) for name in names)] for each in steps], tone=2)


@app.command("cancel")
def cancel_run(run_id: RunId, as_json: AsJson = False) -> None:
    """End a run; what is queued is dropped, what runs is told to stop."""
    _act(f"{_of(run_id)}/cancel", as_json=as_json)


@app.command("replay")
def replay_run(run_id: RunId, as_json: AsJson = False) -> None:
    """Start a new run with the same parameters: its id, status and workflow."""
    _act(f"{_of(run_id)}/replay", as_json=as_json)


def trace(
    correlation_id: Annotated[
        str, typer.Argument(metavar="CORRELATION_ID", help="What the events have in common.")
    ],
    as_json: AsJson = False,
) -> None:
    """Show what led to what: events, deliveries, runs and steps of one correlation, as a tree."""
    with connect() as client:
        data = client.get("/v1/traces", [("correlationId", correlation_id)])
    if as_json:
        report.document(data)
        return
    report.columns(
        [
            [text(node, "at"), f"{'  ' * depth}{text(node, 'kind')}", *_cells(node)]
            for depth, node in _walk(rows(data, "tree"))
        ]
    )
    if data.get("complete") is False:
        report.say("there is more than is shown here")


def _act(path: str, *, as_json: bool) -> None:
    with connect() as client:
        run = inner(client.post(path, {}), "run")
    if as_json:
        report.document(run)
    else:
        report.line(*(text(run, name) for name in ("id", "status", "workflowSlug")))


def _walk(roots: list[JsonObject], depth: int = 0) -> Iterator[tuple[int, JsonObject]]:
    """Every node with its depth; the server sends no more levels than can be walked."""
    for node in roots:
        yield depth, node
        yield from _walk(rows(node, "children"), depth + 1)


def _cells(node: JsonObject) -> list[str]:
    """What a node is, what became of it, and its id."""
    about = next(
        (text(node, name) for name in ("type", "stepId", "workflowSlug") if node.get(name)), ""
    )
    state = [text(node, name) for name in ("status", "reason", "failureReason") if node.get(name)]
    missing = [f"cause {text(node, 'missing')} is not here"] if node.get("missing") else []
    return [about, " ".join([*state, *missing]), text(node, "id")]


def _of(run_id: str) -> str:
    return f"{_PATH}/{quote(run_id, safe='')}"
