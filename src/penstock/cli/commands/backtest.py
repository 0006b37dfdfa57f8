"""Say what a trigger would have done over past events, or that its record can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import report
from penstock.cli.connect import connect
from penstock.cli.fields import inner, number, rows, text, warnings
from penstock.cli.finding import TRIGGERS, find_trigger, read_triggers
from penstock.cli.options import AsJson
from penstock.cli.refused import Refused
from penstock.envelope.envelope import JsonObject

if TYPE_CHECKING:
    from penstock.cli.client import Client

WAIT_S = 600.0
Named = Annotated[
    str | None, typer.Argument(metavar="[TRIGGER]", help="Its id, its name, or workflow/name.")
]
File = Annotated[
    Path | None, typer.Option("--file", help="Or a draft: the one document of kind Trigger in it.")
]
Begins = Annotated[
    str | None,
    typer.Option("--from", help="After this position or instant; its first, or 7 days ago."),
]
Ends = Annotated[str | None, typer.Option("--to", help="Up to this position or instant; now.")]
RunMs = Annotated[int | None, typer.Option(min=0, help="How long a run takes; as usual.")]
Events = Annotated[int | None, typer.Option(min=1, help="How many events to read at most.")]
AsDraft = Annotated[
    bool, typer.Option("--as-draft", help="As it is now, over events of any time, like a draft.")
]
_FIGURES = (
    "matches", "launches", "distinctKeys", "throttled", "peakLaunchesPerMinute", "renderFailures",
)  # fmt: skip


def backtest(
    trigger: Named = None,
    file: File = None,
    begins: Begins = None,
    ends: Ends = None,
    run_ms: RunMs = None,
    events_max: Events = None,
    as_draft: AsDraft = False,
    as_json: AsJson = False,
) -> None:
    """Run a trigger over past events; nothing is launched.

    A TRIGGER runs its own recorded past again, and exits with 1 if that gives anything else than
    its record. With --as-draft, or a --file, it says what would have happened.
    """
    if (trigger is None) == (file is None):
        raise typer.BadParameter("expected a TRIGGER or a --file", param_hint="TRIGGER / --file")
    mode = "hypothetical" if as_draft else None
    given = {"from": begins, "to": ends, "runMs": run_ms, "eventsMax": events_max, "mode": mode}
    body: JsonObject = {name: value for name, value in given.items() if value is not None}
    with connect(timeout_s=WAIT_S) as client:
        data = ask(client, body | _what(client, trigger, file))
    if as_json:
        report.document(data)
    elif text(data, "mode") == "recorded":
        _print_recorded(data)
    else:
        _print_hypothetical(data)
    if data.get("equalsRecord") is False:
        raise Refused(
            "backtest_differs",
            f"expected the record, found {number(data, 'differences')} differences",
            "This is a bug of Penstock: keep the output of --json and report it.",
        )


def ask(client: Client, body: JsonObject) -> JsonObject:
    """What the server says; it may take a while."""
    return client.post(f"{TRIGGERS}/backtest", body)


def _what(client: Client, trigger: str | None, file: Path | None) -> JsonObject:
    if trigger is not None:
        return {"triggerId": text(find_trigger(client, trigger), "id")}
    items = read_triggers(file or Path("-"), only=False)
    if len(items) != 1:
        raise Refused(
            "files_invalid",
            f"expected one trigger in {file}, found {len(items)}",
            "`penstock plan` tries several at once.",
        )
    return {"trigger": items[0].body, "workflow": items[0].name.partition("/")[0]}


def _print_recorded(data: JsonObject) -> None:
    report.line("equal" if data.get("equalsRecord") else "different", "to the record")
    report.columns([[name, number(data, name)] for name in ("passes", "deliveries", *_FIGURES)])
    report.columns([[name, str(count)] for name, count in inner(data, "byStatus").items()])
    _print_runs(data)
    for row in rows(data, "differenceSamples"):
        report.line(
            "differs", *(text(row, name) for name in ("deliveryId", "recorded", "replayed"))
        )


def _print_hypothetical(data: JsonObject) -> None:
    coverage = inner(data, "coverage")
    report.columns([[name, number(data, name)] for name in ("eventsRead", "verdicts", *_FIGURES)])
    _print_runs(data)
    if coverage:
        report.say(f"over {text(coverage, 'from')} to {text(coverage, 'to')}")
    report.warn(warnings(data))
    if data.get("complete") is False:
        report.say("not all of it: there are more events; raise --events-max or narrow --from")


def _print_runs(data: JsonObject) -> None:
    for reason, count in inner(data, "skippedByReason").items():
        report.line("skipped", reason, str(count))
    for row in rows(data, "failureSamples"):
        report.line("failed", text(row, "eventId"), text(row, "error"))
    for row in rows(data, "samples"):
        names = ("launchedAt", "eventId", "runKey")
        shown = report.to_json(row.get("parameters"))
        report.line("launch", *(text(row, name) for name in names), shown)
