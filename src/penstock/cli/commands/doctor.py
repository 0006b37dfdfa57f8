"""Say what is missing on this machine and how to fix it."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import typer

from penstock.base.settings import load_settings
from penstock.cli import report
from penstock.cli.checks import check_machine
from penstock.cli.options import AsJson


def doctor(as_json: AsJson = False) -> None:
    """Say what is missing and how to fix it."""
    checks = check_machine(load_settings(os.environ), os.environ, datetime.now(UTC))
    if as_json:
        report.document(
            {"checks": [{"state": c.state, "what": c.what, "fix": c.fix or None} for c in checks]}
        )
    else:
        for check in checks:
            fix = (f"fix: {check.fix}",) if check.fix else ()
            report.line(check.state, check.what, *fix, tone=check.state)
    if any(check.state == "missing" for check in checks):
        raise typer.Exit(1)
