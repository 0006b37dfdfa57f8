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
    report.line("erased", text(found, "subject"), text(found, "erasedAt"))
    report.say(_told(number(found, "keys"), number(found, "deadLetters")))


def _told(keys: int, letters: int) -> str:
    if not keys and not letters:
        return (
            "nothing of that subject was there: it was erased before, or is spelt otherwise; what"
            " happened to it until now and comes late is stored erased"
        )
    destroyed = f"{keys} key{'' if keys == 1 else 's'} destroyed"
    blanked = f"{letters} dead letter{'' if letters == 1 else 's'} blanked"
    return f"{destroyed}, {blanked}; the log still verifies"
