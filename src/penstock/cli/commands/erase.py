"""Erase a subject: its personal data can never be read again."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from penstock.cli import report
from penstock.cli.connect import connect
from penstock.cli.fields import inner, number, text
from penstock.cli.options import AsJson
from penstock.envelope.envelope import JsonObject

Subject = Annotated[
    str, typer.Argument(metavar="SUBJECT", help="Its id, as payloads have it; - reads it.")
]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; must not say who.")]


def erase(subject: Subject, reason: Reason = None, as_json: AsJson = False) -> None:
    """Destroy the key of a subject; its personal data can never be read again.

    What stands on a command line is seen by others: `-` reads the subject from stdin instead.
    """
    named = sys.stdin.readline().strip() if subject == "-" else subject
    body: JsonObject = {"subject": named}
    if reason is not None:
        body["reason"] = reason
    with connect() as client:
        found = inner(client.post("/admin/erasures", body), "erasure")
    if as_json:
        report.document(found)
        return
    keys, letters = number(found, "keys"), number(found, "deadLetters")
    report.line("erased", text(found, "subject"), text(found, "erasedAt"))
    report.say(f"{keys} keys destroyed, {letters} dead letters blanked; the log still verifies")
