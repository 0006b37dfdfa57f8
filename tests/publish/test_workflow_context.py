"""Hold workflow contexts of published events apart: across threads, tasks, retries, processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import orjson

from penstock import EventRefused, Publisher, WorkflowContext, carry
from penstock.base.errors import QueueUnavailable
from penstock.envelope.context import to_environment, workflow_event_context
from penstock.envelope.envelope import JsonObject
from penstock.publish.port import Outcome, Result

METADATA_KEY = "__apphubWorkflow"


class Kept:
    """A sink that keeps what it takes, after failing as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.events: list[JsonObject] = []
        self.failures = failures

    def send(self, events: Sequence[JsonObject]) -> list[Result]:
        self.events += events
        if self.failures:
            self.failures -= 1
            raise QueueUnavailable("away", retry_after_s=0)
        return [Outcome(str(event["id"]), "accepted", "", event) for event in events]


def context(run: str) -> WorkflowContext:
    return WorkflowContext(
        workflow_definition_id="wf-1",
        workflow_run_id=run,
        workflow_run_step_id="step-1",
        job_run_id="job-1",
        job_slug="load",
    )


def run_of(event: JsonObject) -> object:
    metadata = event.get("metadata", {})
    assert isinstance(metadata, dict)
    found = metadata.get(METADATA_KEY)
    return found["workflowRunId"] if isinstance(found, dict) else None


def test_an_event_published_in_a_workflow_says_so() -> None:
    sink = Kept()

    with workflow_event_context(context("run-1")):
        Publisher(sink, source="s").publish("a.b", metadata={"own": 1})

    assert sink.events[0]["metadata"] == {
        "own": 1,
        METADATA_KEY: {
            "workflowDefinitionId": "wf-1",
            "workflowRunId": "run-1",
            "workflowRunStepId": "step-1",
            "jobRunId": "job-1",
            "jobSlug": "load",
        },
    }


def test_outside_a_workflow_nothing_is_said() -> None:
    sink = Kept()

    with workflow_event_context(context("run-1")):
        pass
    Publisher(sink, source="s").publish("a.b")

    assert "metadata" not in sink.events[0]


def test_a_context_that_the_program_wrote_itself_wins_but_must_fit() -> None:
    sink = Kept()
    publisher = Publisher(sink, source="s")

    with workflow_event_context(context("run-1")):
        publisher.publish("a.b", metadata={METADATA_KEY: context("mine").wire()})
        (refused,) = publisher.publish_many(
            [{"type": "a.b", "metadata": {METADATA_KEY: {"workflowRunId": "half"}}}]
        )

    assert [run_of(event) for event in sink.events] == ["mine"]
    assert isinstance(refused, EventRefused)
    assert refused.faults[0].pointer.startswith(f"/metadata/{METADATA_KEY}/")


def test_threads_keep_their_own_contexts() -> None:
    sink, together = Kept(), threading.Barrier(8)
    publisher = Publisher(sink, source="s")

    def work(number: int) -> None:
        with workflow_event_context(context(f"run-{number}")):
            together.wait()  # everybody is inside now
            for _ in range(20):
                publisher.publish("a.b", payload=f"run-{number}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(sink.events) == 160
    assert all(run_of(event) == event["payload"] for event in sink.events)


def test_a_pool_has_no_context_unless_it_is_carried_there() -> None:
    sink = Kept()
    publisher = Publisher(sink, source="s")

    with ThreadPoolExecutor(1) as pool:
        with workflow_event_context(context("run-1")):
            pool.submit(publisher.publish, "a.b").result()
            pool.submit(carry(publisher.publish), "a.b").result()
        pool.submit(publisher.publish, "a.b").result()

    assert [run_of(event) for event in sink.events] == [None, "run-1", None]


def test_tasks_keep_their_own_contexts() -> None:
    sink = Kept()
    publisher = Publisher(sink, source="s")

    async def work(number: int, together: asyncio.Barrier) -> None:
        with workflow_event_context(context(f"run-{number}")):
            await together.wait()
            for _ in range(5):
                await publisher.apublish("a.b", payload=f"run-{number}")

    async def main() -> None:
        together = asyncio.Barrier(8)
        await asyncio.gather(*(work(n, together) for n in range(8)))

    asyncio.run(main())

    assert len(sink.events) == 40
    assert all(run_of(event) == event["payload"] for event in sink.events)


def test_a_task_keeps_the_context_it_was_started_in() -> None:
    sink = Kept()
    publisher = Publisher(sink, source="s")

    async def main() -> None:
        with workflow_event_context(context("run-1")):
            started = asyncio.create_task(publisher.apublish("a.b"))
        with workflow_event_context(context("run-2")):
            await started

    asyncio.run(main())

    assert [run_of(event) for event in sink.events] == ["run-1"]


def test_a_retry_keeps_the_context_of_the_first_attempt() -> None:
    sink = Kept(failures=2)
    publisher = Publisher(sink, source="s", sleep=lambda _: None)

    with workflow_event_context(context("run-1")):
        publisher.publish("a.b")

    assert [run_of(event) for event in sink.events] == ["run-1"] * 3
    assert sink.events[0] == sink.events[1] == sink.events[2]


CHILD = """
import sys
from penstock import EventBus
bus = EventBus(source="child")
seen = []
bus.subscribe("*", lambda event: seen.append(event.metadata.get("__apphubWorkflow")))
bus.publish("a.b")
import orjson
sys.stdout.buffer.write(orjson.dumps(seen))
"""


def child(environment: dict[str, str]) -> list[object]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        env={**os.environ, **environment},
        capture_output=True,
        check=True,
    )
    found: list[object] = orjson.loads(done.stdout)
    return found


def test_a_child_process_carries_the_context_on() -> None:
    assert child(to_environment(context("run-1"))) == [context("run-1").wire()]


def test_a_child_process_without_one_has_none() -> None:
    assert child({}) == [None]


def test_a_child_process_ignores_a_context_that_does_not_fit() -> None:
    assert child({"APPHUB_WORKFLOW_EVENT_CONTEXT": '{"workflowRunId": " "}'}) == [None]
