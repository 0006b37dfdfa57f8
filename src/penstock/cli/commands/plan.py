"""Show what files would change on a server and what that would have done; and make it so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.base.clock import format_instant
from penstock.cli import report
from penstock.cli.commands.backtest import WAIT_S
from penstock.cli.connect import connect
from penstock.cli.finding import agree
from penstock.cli.options import AsJson
from penstock.cli.refused import Refused
from penstock.envelope.envelope import JsonObject, JsonValue

if TYPE_CHECKING:
    from penstock.cli.client import Client
    from penstock.cli.effects import Effect
    from penstock.cli.planning import Planned
    from penstock.triggers.files import Change

Files = Annotated[
    Path, typer.Argument(metavar="PATH", help="A YAML file, or a folder of them; - for stdin.")
]
Prune = Annotated[
    bool, typer.Option("--prune", help="Also delete what no file names, of the same kinds.")
]
Days = Annotated[int, typer.Option(min=1, max=365, help="How far back triggers are tried.")]
NoBacktest = Annotated[bool, typer.Option("--no-backtest", help="Only compare.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
_MARKS = {"create": "+", "update": "~", "delete": "-", "unchanged": "="}
_VALUE_CHARS_MAX = 120


def plan(
    path: Files,
    prune: Prune = False,
    days: Days = 7,
    no_backtest: NoBacktest = False,
    as_json: AsJson = False,
) -> None:
    """Compare files with the server, and try every changed trigger over the last days.

    Nothing is changed and nothing is started.
    """
    from penstock.cli.planning import make_plan

    with connect(timeout_s=WAIT_S) as client:
        planned = make_plan(client, path, prune=prune)
        effects = {} if no_backtest else _effects(client, planned, days)
    if as_json:
        report.document(_document(planned, effects))
    else:
        _print(planned, effects)


def apply(
    path: Files,
    prune: Prune = False,
    yes: Yes = False,
    days: Days = 7,
    no_backtest: NoBacktest = False,
    as_json: AsJson = False,
) -> None:
    """Make the server have what files want, after showing the plan and asking.

    Each thing is changed only if it is still what the plan saw; the first refusal ends it.
    """
    from penstock.cli.planning import make_plan

    with connect(timeout_s=WAIT_S) as client:
        planned = make_plan(client, path, prune=prune)
        # Whoever has said yes already needs no forecast.
        effects = {} if yes or no_backtest else _effects(client, planned, days)
        if not as_json:
            _print(planned, effects)
        if planned.due:
            agree(f"Make these {len(planned.due)} changes?", yes=yes)
        _carry_out(client, planned, as_json=as_json)
    if as_json:
        report.document(_document(planned, effects) | {"applied": len(planned.due)})


def _effects(client: Client, planned: Planned, days: int) -> dict[str, Effect]:
    """What each changed trigger would have done, by its name; it says how far it has come."""
    from penstock.cli.effects import effect_of
    from penstock.triggers.files import Kind

    since = format_instant(datetime.now(UTC) - timedelta(days=days))
    changed = [each for each in planned.due if each.kind is Kind.TRIGGER]
    found: dict[str, Effect] = {}
    for n, change in enumerate(changed, 1):
        report.say(f"trying {n} of {len(changed)}: {change.name}")
        found[change.name] = effect_of(client, change, planned.there, since=since, days=days)
    return found


def _carry_out(client: Client, planned: Planned, *, as_json: bool) -> None:
    from penstock.cli.planning import carry_out

    for n, change in enumerate(planned.due):
        try:
            carry_out(client, change, planned.there.get((change.kind, change.name)))
        except Refused as error:
            raise Refused(
                error.code,
                f"{change.kind} {change.name}: {error.detail}; {n} of {len(planned.due)} changes"
                " were made before it",
                error.remedy,
                faults=error.faults,
                status=error.status,
            ) from None
        if not as_json:
            report.line("done", change.action, change.kind, change.name)


def _print(planned: Planned, effects: dict[str, Effect]) -> None:
    for change in planned.due:
        report.line(_MARKS[change.action], change.action, change.kind, change.name)
        if change.action == "update":
            for field in change.fields:
                report.line("     ", field.field, f"{_cut(field.before)} -> {_cut(field.after)}")
        effect = effects.get(change.name) if change.kind == "Trigger" else None
        if effect is not None:
            report.line("     ", effect.sentence())
            report.warn(effect.warnings())
    same = len(planned.changes) - len(planned.due)
    counts = [sum(each.action == word for each in planned.due) for word in list(_MARKS)[:3]]
    said = [f"{n} to {word}" for n, word in zip(counts, _MARKS, strict=False) if n]
    report.say(f"{', '.join(said) or 'nothing to do'}; {same} unchanged")


def _document(planned: Planned, effects: dict[str, Effect]) -> JsonObject:
    changes: list[JsonValue] = [_change(each, effects.get(each.name)) for each in planned.changes]
    return {"changes": changes, "due": len(planned.due)}


def _change(change: Change, effect: Effect | None) -> JsonObject:
    fields: list[JsonValue] = [
        {"field": each.field, "before": each.before, "after": each.after} for each in change.fields
    ]
    said: JsonObject = {
        "action": str(change.action),
        "kind": str(change.kind),
        "name": change.name,
        "file": None if change.wanted is None else change.wanted.file,
        "line": None if change.wanted is None else change.wanted.line,
        "fields": fields,
    }
    if effect is not None and change.kind == "Trigger":
        said["backtest"] = effect.wire()
    return said


def _cut(value: JsonValue) -> str:
    shown = report.to_json(value)
    return shown if len(shown) <= _VALUE_CHARS_MAX else f"{shown[:_VALUE_CHARS_MAX]}…"
