"""Be a worker in its own process, for tests that kill it: `… DSN NAME LEASE_S [PACE]`.

Its handlers leave a mark in the table `marks` for every execution, on a connection of their own, so
that what a killed worker did is still counted.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import psycopg

from penstock.workflows.engine.on_postgres import Engine
from penstock.workflows.port import Failed, Failure, StepCall, StepResult, Succeeded
from penstock.workflows.queue.ear.on_postgres import Ear
from penstock.workflows.queue.on_postgres import WorkerQueue
from penstock.workflows.worker import Pace, WorkflowWorker

SLOTS = 4
MARKS = (
    "CREATE TABLE marks (job_run_id text, pid integer, at timestamptz DEFAULT clock_timestamp())"
)


class Marking:
    """Marks every execution; `slow` takes its time, `poison` takes the process."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._lock = threading.Lock()
        self._stopped: set[str] = set()

    def run(self, call: StepCall) -> StepResult:
        with self._lock:
            self._connection.execute(
                "INSERT INTO marks (job_run_id, pid) VALUES (%s, %s)",
                (call.job_run_id, os.getpid()),
            )
        if call.slug == "poison":
            os._exit(1)
        until = time.monotonic() + (30 if call.slug == "slow" else 0.004)
        while time.monotonic() < until:
            if call.job_run_id in self._stopped:
                return Failed(Failure.CANCELED, "told to stop", retryable=False)
            time.sleep(0.002)
        return Succeeded({"pid": os.getpid()})

    def cancel(self, call_id: str) -> None:
        self._stopped.add(call_id)


QUICK = Pace(slots=SLOTS, poll_s=0.1, reap_s=0.1, heartbeat_s=0.2, cancel_s=0.2, leave_s=1.0)


def main(dsn: str, name: str, lease_s: str, pace: str = "quick") -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    jobs = WorkerQueue(dsn, Engine(), name=name, lease_s=float(lease_s))
    wanted = QUICK if pace == "quick" else Pace()
    WorkflowWorker(jobs, Marking(dsn), Ear(dsn), pace=wanted, name=name).run(stop)


if __name__ == "__main__":
    main(*sys.argv[1:])
