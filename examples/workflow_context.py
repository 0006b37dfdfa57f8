"""Let every event say which workflow run it comes from: here, in threads and in child processes.

    python examples/workflow_context.py

A runner sets the context once. Whatever publishes inside it, however deep, needs to know nothing:
the publisher puts the context into `metadata.__apphubWorkflow`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from penstock import (
    Envelope,
    EventBus,
    WorkflowContext,
    carry,
    get_workflow_event_context,
    to_environment,
    workflow_event_context,
)


def show(event: Envelope) -> None:
    workflow = event.metadata.get("__apphubWorkflow")
    run = workflow.get("workflowRunId") if isinstance(workflow, dict) else None
    print(f"{event.source:<16} {event.type} from run {run}", flush=True)


def step(source: str) -> None:
    """What a job does: it publishes, and knows nothing of workflows."""
    bus = EventBus(source=source)
    bus.subscribe("*", show)
    bus.publish("asset.produced", payload={"assetId": "weather"})


def main() -> None:
    if sys.argv[1:] == ["child"]:
        step("example.child")
        return
    context = WorkflowContext(
        workflow_definition_id="wf-alpha",
        workflow_run_id="run-42",
        workflow_run_step_id="run-42-step-3",
        job_run_id="job-run-7",
        job_slug="publish-weather",
    )
    step("example.before")
    with workflow_event_context(context):
        step("example.here")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(carry(step), "example.thread").result()
        subprocess.run(
            [sys.executable, __file__, "child"],
            env={**os.environ, **to_environment(get_workflow_event_context())},
            check=True,
        )
    step("example.after")


if __name__ == "__main__":
    main()
