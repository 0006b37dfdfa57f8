"""Jobs that behave, and jobs that do not: what tests register and what their processes import."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from penstock import EventBus, carry, get_workflow_event_context
from penstock.envelope.envelope import Envelope, JsonObject
from penstock.workflows.launch.errors import StepFailed
from penstock.workflows.launch.functions import JobContext


def add(job: JobContext) -> JsonObject:
    print("adding")  # noqa: T201
    return {"sum": sum(job.parameters["numbers"])}  # type: ignore[arg-type]


async def add_later(job: JobContext) -> JsonObject:
    await asyncio.sleep(0)
    return add(job)


def fail(_job: JobContext) -> None:
    raise ValueError("no such table")


def fail_for_good(_job: JobContext) -> None:
    raise StepFailed("the source is gone", retryable=False)


def leave(_job: JobContext) -> None:
    sys.exit(3)


def wait_for_ever(_job: JobContext) -> None:
    threading.Event().wait()


def loop_for_ever(_job: JobContext) -> None:
    while True:
        pass


async def await_for_ever(_job: JobContext) -> None:
    await asyncio.Event().wait()


def stubborn(job: JobContext) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(str(job.parameters["file"])).write_text(str(os.getpid()))
    wait_for_ever(job)


def with_a_child(job: JobContext) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(str(job.parameters["file"])).write_text(f"{os.getpid()} {child.pid}")
    if job.parameters.get("stays"):
        wait_for_ever(job)


def print_megabytes(_job: JobContext) -> str:
    for _ in range(50):
        print("x" * 99_999)  # noqa: T201
    print("done", file=sys.stderr)  # noqa: T201
    return "printed"


def print_bytes(_job: JobContext) -> None:
    os.write(1, b"\xff\x00\xfe ok\n")


def kill_itself(job: JobContext) -> None:
    os.kill(os.getpid(), int(str(job.parameters["signal"])))
    wait_for_ever(job)


def crash(_job: JobContext) -> None:
    ctypes.string_at(0)


def exit_hard(job: JobContext) -> None:
    os._exit(int(str(job.parameters["code"])))


def eat_memory(_job: JobContext) -> int:
    return len(bytearray(1 << 34))


def burn(_job: JobContext) -> None:
    loop_for_ever(_job)


def no_json(_job: JobContext) -> object:
    return {"when": object()}


def nan(_job: JobContext) -> float:
    return float("nan")


def too_much(_job: JobContext) -> str:
    return "x" * 300_000


def too_deep(_job: JobContext) -> object:
    tree: Any = []
    for _ in range(40):
        tree = [tree]
    return tree


def environment(_job: JobContext) -> JsonObject:
    return {**os.environ, "cwd": str(Path.cwd())}


def about(job: JobContext) -> JsonObject:
    return {
        "attempt": job.attempt,
        "key": job.idempotency_key,
        "parameters": job.parameters,
        "correlation": job.correlation_id,
        "stopping": job.is_stopping,
    }


def published(source: str = "test.jobs") -> JsonObject:
    """Publish one event on a bus, and say what it carried."""
    heard: list[Envelope] = []
    bus = EventBus(source=source)
    bus.subscribe("*", heard.append)
    bus.publish("asset.produced", payload={"assetId": "a"})
    (event,) = heard
    return {
        "workflow": event.metadata.get("__apphubWorkflow"),
        "causationId": event.causation_id,
        "correlationId": event.correlation_id,
    }


def publish_here(_job: JobContext) -> JsonObject:
    return published()


async def publish_from_tasks(_job: JobContext) -> list[JsonObject]:
    async def one() -> JsonObject:
        await asyncio.sleep(0.001)
        return published()

    return await asyncio.gather(*(one() for _ in range(5)))


def publish_from_threads(_job: JobContext) -> list[JsonObject]:
    with ThreadPoolExecutor(3) as pool:
        return [f.result() for f in [pool.submit(carry(published)) for _ in range(5)]]


def publish_from_a_process(_job: JobContext) -> str:
    """The process that this process starts inherits the variable."""
    code = (
        "from tests.workflows.launch.handlers import published\n"
        "print(published()['workflow']['workflowRunId'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return done.stdout.strip()


def name_run(job: JobContext) -> list[str]:
    """Say the run again and again, from here and from threads, while others do the same."""
    said: list[str] = []

    def look() -> str:
        context = get_workflow_event_context()
        return context.workflow_run_id if context else "none"

    with ThreadPoolExecutor(1) as pool:
        for _ in range(20):
            said.append(look())
            said.append(pool.submit(carry(look)).result())
            time.sleep(0)
    print(f"printed by {job.workflow.workflow_run_id}")  # noqa: T201
    return sorted(set(said))
