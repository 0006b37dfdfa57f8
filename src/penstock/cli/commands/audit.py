"""Check that the log is what it was: against its seals and what was signed, or event by event."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from penstock.cli import report
from penstock.cli.connect import connect
from penstock.cli.fields import text
from penstock.cli.options import AsJson

if TYPE_CHECKING:
    from penstock.base.settings import Settings
    from penstock.store.audit.check.report import AuditReport
    from penstock.store.audit.checkpoint import VerifierKey

app = typer.Typer(
    help="Check that the log is what it was.", no_args_is_help=True, rich_markup_mode=None
)

_SHOWN = 10
Key = Annotated[
    str | None, typer.Option("--key", help="The public key to check by; this installation's.")
]
Checkpoints = Annotated[
    Path | None,
    typer.Option("--checkpoints", help="A folder of signed checkpoints, or one; our own."),
]
DatabaseOnly = Annotated[
    bool, typer.Option("--database-only", help="Go without checkpoints outside the database.")
]
EventId = Annotated[str, typer.Argument(metavar="ID", help="The event's id.")]


@app.command("verify")
def verify(
    key: Key = None,
    checkpoints: Checkpoints = None,
    database_only: DatabaseOnly = False,
    as_json: AsJson = False,
) -> None:
    """Check every event, seal and checkpoint, straight in the database.

    Exit 1 when something is not what it was; the first damaged position is named.
    """
    found = _verified(_settings(), key, checkpoints)
    if found.checkpoints == 0 and found.seals and not found.damages and not database_only:
        from penstock.base.errors import SetupIncomplete

        raise SetupIncomplete(
            "expected a signed checkpoint outside the database, found none",
            remedy="Name where they are kept with --checkpoints, or pass --database-only.",
        )
    if as_json:
        report.document(found.to_json())
    else:
        _tell(found)
    if found.damages:
        raise typer.Exit(1)


@app.command("key")
def key(as_json: AsJson = False) -> None:
    """Print the public key that checkpoints are signed with; keep it somewhere else."""
    found = _own_key(_settings())
    if as_json:
        report.document({"key": str(found), "origin": found.name})
    else:
        report.line(str(found))


@app.command("proof")
def proof(event_id: EventId, key: Key = None, as_json: AsJson = False) -> None:
    """Prove that an event is in the log, and check the proof here."""
    from penstock.base.errors import AuditDamaged
    from penstock.store.audit.proof import check_proof

    verifier = _read_key(key) if key is not None else _own_key(_settings())
    with connect() as client:
        found = client.get(f"/v1/audit/proof/{quote(event_id, safe='')}")
    try:
        checkpoint = check_proof(found, verifier)
    except ValueError as error:
        raise AuditDamaged(f"the proof does not hold: {error}") from None
    if as_json:
        report.document(found)
        return
    report.line("proven", event_id, f"position {text(found, 'position')}", tone="ok")
    report.line("leaf", text(found, "entryHash"))
    report.line("root", checkpoint.root.hex(), f"of {checkpoint.size} events")
    report.line("signed", checkpoint.origin, f"{len(text(found, 'checkpoint'))} bytes")


def _verified(settings: Settings, key: str | None, checkpoints: Path | None) -> AuditReport:
    from penstock.cli.part import reaching_the_store
    from penstock.house.audit import verify_log

    verifier = _read_key(key) if key is not None else None
    with _bar() as (begin, advance), reaching_the_store():
        return verify_log(
            settings, key=verifier, checkpoints=checkpoints, begin=begin, progress=advance
        )


@contextlib.contextmanager
def _bar() -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """A progress bar on stderr, when that is a terminal: how to begin it, and how to move it."""
    if not sys.stderr.isatty():
        yield _ignore, _ignore
        return
    from rich import progress as bars
    from rich.console import Console

    shown = bars.Progress(
        bars.TextColumn("verifying"), bars.BarColumn(), bars.MofNCompleteColumn(),
        bars.TimeRemainingColumn(), console=Console(stderr=True), transient=True,
    )  # fmt: skip
    with shown:
        task = shown.add_task("verifying", total=None)
        yield (
            lambda total: shown.update(task, total=total),
            lambda events: shown.update(task, advance=events),
        )


def _ignore(_events: int) -> None:
    """Nobody watches."""


def _tell(found: AuditReport) -> None:
    """Say what was checked, or what is damaged and where."""
    for damage in found.damages[:_SHOWN]:
        report.line("damaged", str(damage), tone="error")
    if len(found.damages) > _SHOWN:
        report.say(f"and {len(found.damages) - _SHOWN} more; --json lists them")
    report.columns(
        [
            ["events", f"{found.events} rows, each with its hash and its tags"],
            ["tag rows", f"{found.tag_rows}"],
            ["sealed", f"{found.sealed} events in {found.seals} seals"],
            ["unsealed", f"{found.unsealed} events since; they are sealed within a second"],
            ["checkpoints", f"{found.checkpoints} signed, outside the database"],
            ["root", found.root],
        ]
    )
    if found.damages:
        report.say(f"first damage at position {found.damages[0].position}")
    else:
        report.line("verified", tone="ok")


def _settings() -> Settings:
    import os

    from penstock.base.settings import load_settings

    return load_settings(os.environ)


def _own_key(settings: Settings) -> VerifierKey:
    from penstock.house.audit import audit_key

    return audit_key(settings)


def _read_key(given: str) -> VerifierKey:
    from penstock.store.audit.checkpoint import read_key

    try:
        return read_key(given)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--key") from None
