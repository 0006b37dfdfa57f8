"""Run the part that judges and stores what is on the queue."""

from __future__ import annotations

from penstock.base.errors import SettingsInvalid
from penstock.cli.options import ParentPid
from penstock.cli.part import begin_stoppable, reaching_the_store


def ingress(parent_pid: ParentPid = None) -> None:
    """Judge and store what is on the queue."""
    settings, stop = begin_stoppable("ingress", parent_pid)
    if settings.events_mode == "inline":
        raise SettingsInvalid(
            "expected PENSTOCK_EVENTS_MODE=spool, found inline, which needs no ingress",
            remedy="Unset PENSTOCK_EVENTS_MODE, or run `penstock serve` alone.",
        )
    from penstock.house import run_ingress

    with reaching_the_store():
        run_ingress(settings, stop.event)
