"""Say why an event did, or did not, start something at a trigger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated
from urllib.parse import quote

import typer

from penstock.cli import report
from penstock.cli.commands.triggers import TriggerName
from penstock.cli.connect import connect
from penstock.cli.fields import inner, rows, text, warnings
from penstock.cli.finding import TRIGGERS, find_trigger, full_name
from penstock.cli.options import AsJson
from penstock.envelope.envelope import JsonObject

EventId = Annotated[str, typer.Argument(metavar="EVENT", help="The event's id.")]
Recompute = Annotated[
    bool, typer.Option("--recompute", help="Run the recorded passes again to find out.")
]


def why(
    event: EventId, trigger: TriggerName, recompute: Recompute = False, as_json: AsJson = False
) -> None:
    """Say why an event did, or did not, start something at a trigger.

    First the answer, then every comparison with what was found, then what each pass made of it.
    """
    asked = [("event", event), *([("recompute", "true")] if recompute else [])]
    with connect(timeout_s=300) as client:
        found = find_trigger(client, trigger)
        data = client.get(f"{TRIGGERS}/{quote(text(found, 'id'), safe='')}/explain", asked)
    if as_json:
        report.document(data)
        return
    verdict = text(data, "sentence") or text(data, "verdict")
    report.line(verdict, full_name(found), f"version {text(data, 'triggerVersion')}")
    for line in trace_lines(inner(data, "predicates")):
        report.line(line)
    report.warn(warnings(data))
    names = ("judgedAt", "status", "stage", "reason")
    report.columns([[text(row, name) for name in names] for row in rows(data, "history")])


def trace_lines(trace: JsonObject, depth: int = 0) -> Iterator[str]:
    """One line for each comparison and group: whether it holds, and what was found."""
    if not trace:
        return
    mark = "yes" if trace.get("outcome") else "no"
    if "path" not in trace:
        nested = rows(trace, "inner")
        if depth or nested:
            yield f"{'  ' * depth}{mark:<3}  {text(trace, 'operator')}"
        for each in nested:
            yield from trace_lines(each, depth + 1)
        return
    operand = "" if text(trace, "operator") == "exists" else report.to_json(trace.get("operand"))
    actual = trace.get("actual")
    found = "nothing" if trace.get("missing") else "hidden"
    if isinstance(actual, list) and actual:
        found = ", ".join(report.to_json(value) for value in actual)
    words = (text(trace, "path"), text(trace, "operator"), operand)
    said = " ".join(word for word in words if word)
    yield f"{'  ' * depth}{mark:<3}  {said}; found {found}"
