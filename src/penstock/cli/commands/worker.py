"""Run the part that acts on events and keeps the house in order."""

from __future__ import annotations

from penstock.cli.options import ParentPid
from penstock.cli.part import begin_stoppable, reaching_the_store


def worker(parent_pid: ParentPid = None) -> None:
    """Judge events, run workflows and do the chores of the house until stopped."""
    settings, stop = begin_stoppable("worker", parent_pid)
    from penstock.house import run_worker

    with reaching_the_store():
        run_worker(settings, stop.event)
