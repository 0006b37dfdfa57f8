"""Show the account of every event that was ever accepted."""

from __future__ import annotations

import typer

from penstock.cli import report
from penstock.cli.connect import connect
from penstock.cli.fields import number, rows, text
from penstock.cli.options import AsJson

_TOTALS = (
    "accepted", "stored", "duplicates", "deadLettered", "inFlight", "unexplained", "refused",
)  # fmt: skip


def ledger(as_json: AsJson = False) -> None:
    """Show the account of every accepted event.

    accepted = stored + duplicates + dead-lettered + in flight; exit 1 when it does not add up.
    """
    with connect() as client:
        data = client.get("/admin/ledger")
    if as_json:
        report.document(data)
    else:
        report.columns([[name, number(data, name)] for name in _TOTALS])
        sources = [
            ["source", text(row, "source"), *(f"{n} {number(row, n)}" for n in _SOURCE)]
            for row in rows(data, "sources")
        ]
        report.columns(sources)
    if number(data, "unexplained") != 0:
        raise typer.Exit(1)


_SOURCE = ("stored", "duplicates", "deadLettered")
