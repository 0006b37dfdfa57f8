"""Run the part that keeps the house in order."""

from __future__ import annotations

from penstock.cli.options import ParentPid
from penstock.cli.part import begin_stoppable, reaching_the_store


def worker(parent_pid: ParentPid = None) -> None:
    """Do the chores of the house until stopped."""
    settings, stop = begin_stoppable("worker", parent_pid)
    from penstock.house import run_worker

    with reaching_the_store():
        run_worker(settings, stop.event)
