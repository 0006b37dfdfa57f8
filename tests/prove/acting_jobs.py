"""Jobs for proofs, named to workers by PENSTOCK_JOBS: some behave, some do everything wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from penstock import (
    Publisher,
    WorkflowContext,
    carry,
    get_workflow_event_context,
    workflow_event_context,
)
from penstock.envelope.context import VARIABLE
from penstock.workflows.launch.functions import JobContext, job


@job("prove.mark")
def mark(job: JobContext) -> dict[str, Any]:
    """Leave a line in a file for every execution: what a killed worker did is still counted."""
    with Path(str(job.parameters["file"])).open("a") as lines:
        lines.write(f"{job.workflow.workflow_run_id} {os.getpid()}\n")
    time.sleep(0.005)  # so that a killed worker has often done what it could not yet say
    return {"attempt": job.attempt}


@job("prove.die")
def die(job: JobContext) -> None:
    """Take the process along, whoever's it is."""
    mark(job)
    os.kill(os.getpid(), signal.SIGKILL)


@job("prove.never")
def never(_job: JobContext) -> None:
    """Wait for what never comes."""
    threading.Event().wait()


@job("prove.spin")
def spin(_job: JobContext) -> None:
    """Compute without an end."""
    while True:
        pass


@job("prove.print")
def print_megabytes(_job: JobContext) -> str:
    """Print five megabytes."""
    for _ in range(50):
        print("x" * 99_999)
    print("and done", file=sys.stderr)
    return "printed"


@job("prove.context")
async def context(job: JobContext) -> dict[str, Any]:
    """Say the workflow's context as everything that runs here sees it."""

    def seen() -> Any:
        found = get_workflow_event_context()
        return None if found is None else found.wire()

    async def task() -> Any:
        await asyncio.sleep(0)
        return seen()

    with ThreadPoolExecutor(1) as pool:
        thread = pool.submit(carry(seen)).result()
    offered = job.get_workflow_event_context()
    return {
        "given": job.workflow_event_context.wire(),
        "offered": offered.wire(),
        "here": seen(),
        "task": await asyncio.create_task(task()),
        "thread": thread,
        "variable": os.environ.get(VARIABLE),
    }


@job("prove.publish")
def publish(job: JobContext) -> dict[str, Any]:
    """Publish three events: plainly, with a context of one's own, and in one that is too big."""
    said = job.parameters
    own = {name: f" {value} " for name, value in job.workflow.wire().items()} | {"jobSlug": "mine"}
    huge = WorkflowContext.model_validate(job.workflow.wire() | {"jobSlug": "x" * 2_048})
    with Publisher(url=str(said["url"]), token=str(said["token"]), source="prove.jobs") as out:
        plain = out.publish("asset.produced", payload={"assetId": "plain"})
        manual = out.publish(
            "asset.produced", payload={"assetId": "manual"}, metadata={"__apphubWorkflow": own}
        )
        with workflow_event_context(huge):
            dropped = out.publish("asset.produced", payload={"assetId": "huge"})
    return {"plain": plain.id, "manual": manual.id, "huge": dropped.id}
