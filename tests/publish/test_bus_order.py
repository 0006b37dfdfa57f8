"""Hold the bus to its order and its contexts when threads, tasks and handlers publish at once."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable

import pytest

from penstock.envelope.context import (
    WorkflowContext,
    get_workflow_event_context,
    workflow_event_context,
)
from penstock.envelope.envelope import Envelope
from penstock.publish.bus import EventBus
from penstock.publish.cause import current_cause


def bus() -> EventBus:
    return EventBus(source="test.bus", on_error=lambda failure: pytest.fail(str(failure)))


def context(run: str) -> WorkflowContext:
    return WorkflowContext(
        workflow_definition_id="wf",
        workflow_run_id=run,
        workflow_run_step_id="step",
        job_run_id="job",
        job_slug="slug",
    )


def in_threads(count: int, work: Callable[[int], object]) -> None:
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_handler_that_publishes_sees_the_next_event_after_this_one() -> None:
    events, inside = bus(), [0]
    seen: list[object] = []

    def react(event: Envelope) -> None:
        inside[0] += 1
        assert inside[0] == 1, "a handler was called while it was at work"
        seen.append(event.payload)
        if event.payload == 1:
            events.publish("a.b", payload=2)
            events.publish("a.b", payload=3)
            seen.append("done with 1")
        inside[0] -= 1

    events.subscribe("a.b", react)
    events.publish("a.b", payload=1)

    assert seen == [1, "done with 1", 2, 3]


def test_everybody_sees_the_same_order_when_a_handler_publishes() -> None:
    events = bus()
    seen: dict[str, list[object]] = defaultdict(list)

    def first(event: Envelope) -> None:
        seen["first"].append(event.payload)
        if event.payload == 1:
            events.publish("a.b", payload=2)

    events.subscribe("a.b", first)
    events.subscribe("a.b", lambda event: seen["second"].append(event.payload))
    events.publish("a.b", payload=1)

    assert dict(seen) == {"first": [1, 2], "second": [1, 2]}


def test_a_thousand_reactions_in_a_row_need_no_stack() -> None:
    events, seen = bus(), []

    def react(event: Envelope) -> None:
        seen.append(event.payload)
        if isinstance(event.payload, int) and event.payload < 3000:
            events.publish("a.b", payload=event.payload + 1)

    events.subscribe("a.b", react)
    events.publish("a.b", payload=1)

    assert seen == list(range(1, 3001))


def test_threads_that_publish_at_once_lose_nothing_and_keep_their_order() -> None:
    events, overlaps = bus(), []
    seen: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def subscriber(name: str) -> None:
        at_work = threading.Lock()

        def handle(event: Envelope) -> None:
            if not at_work.acquire(blocking=False):
                overlaps.append(name)
            assert isinstance(event.payload, list)
            thread, number = event.payload
            seen[name].append((int(str(thread)), int(str(number))))
            at_work.release()

        events.subscribe("a.b", handle)

    for name in ("first", "second", "third"):
        subscriber(name)
    in_threads(8, lambda t: [events.publish("a.b", payload=[t, n]) for n in range(50)])

    assert overlaps == []
    assert seen["first"] == seen["second"] == seen["third"]
    assert len(seen["first"]) == 400
    for thread in range(8):
        assert [n for t, n in seen["first"] if t == thread] == list(range(50))


def test_threads_that_publish_to_awaitable_handlers_keep_the_order() -> None:
    events, seen = bus(), list[list[object]]()

    async def handle(event: Envelope) -> None:
        await asyncio.sleep(0)
        assert isinstance(event.payload, list)
        seen.append([*event.payload])

    events.subscribe("a.b", handle)
    in_threads(4, lambda t: [events.publish("a.b", payload=[t, n]) for n in range(10)])

    assert len(seen) == 40
    for thread in range(4):
        mine = [payload for payload in seen if payload[0] == thread]
        assert mine == [[thread, n] for n in range(10)]


def test_tasks_that_publish_at_once_keep_the_order_of_publishing() -> None:
    events, seen = bus(), []

    async def handle(event: Envelope) -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        seen.append(event.payload)

    async def main() -> None:
        events.subscribe("a.b", handle)
        await asyncio.gather(*(events.apublish("a.b", payload=n) for n in range(20)))
        await events.settle()

    asyncio.run(main())
    assert seen == list(range(20))


def test_a_slow_awaitable_handler_keeps_no_other_waiting() -> None:
    async def main() -> None:
        events, gate, seen = bus(), asyncio.Event(), asyncio.Event()

        async def slow(_: Envelope) -> None:
            await gate.wait()

        events.subscribe("a.b", slow)
        events.subscribe("a.b", lambda _: seen.set())
        publishing = asyncio.create_task(events.apublish("a.b"))
        await seen.wait()  # while the slow one still waits
        assert not publishing.done()
        gate.set()
        await publishing

    asyncio.run(main())


def test_an_awaitable_handler_that_publishes_to_itself_does_not_wait_for_itself() -> None:
    events, seen = bus(), []

    async def react(event: Envelope) -> None:
        seen.append(event.payload)
        if event.payload == 1:
            await events.apublish("a.b", payload=2)
            seen.append("done with 1")

    events.subscribe("a.b", react)
    asyncio.run(asyncio.wait_for(events.apublish("a.b", payload=1), 10))

    assert seen == [1, "done with 1", 2]


def test_a_publisher_that_is_cancelled_cancels_no_handler() -> None:
    async def main() -> list[object]:
        events, started, gate = bus(), asyncio.Event(), asyncio.Event()
        seen: list[object] = []

        async def handle(event: Envelope) -> None:
            started.set()
            await gate.wait()
            seen.append(event.payload)

        events.subscribe("a.b", handle)
        publishing = asyncio.create_task(events.apublish("a.b", payload=1))
        await started.wait()
        publishing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await publishing
        gate.set()
        await events.settle()
        return seen

    assert asyncio.run(main()) == [1]


def test_a_loop_that_ends_half_way_leaves_no_subscriber_deaf() -> None:
    events, seen = bus(), []

    async def handle(event: Envelope) -> None:
        if event.payload == "for ever":
            await asyncio.Event().wait()
        seen.append(event.payload)

    async def leave_early() -> None:
        events.publish("a.b", payload="for ever")

    events.subscribe("a.b", handle)
    asyncio.run(leave_early())
    events.publish("a.b", payload="again")

    assert seen == ["again"]


def test_a_handler_runs_in_the_context_its_event_was_published_in() -> None:
    """A reader may read what another thread published; the contexts must not be exchanged."""
    events, wrong = bus(), []

    def handle(event: Envelope) -> None:
        found, cause = get_workflow_event_context(), current_cause()
        if found is None or found.workflow_run_id != event.payload:
            wrong.append(event)
        if cause is None or cause.id != event.id:
            wrong.append(event)

    def publish(number: int) -> None:
        with workflow_event_context(context(f"run-{number}")):
            for _ in range(50):
                events.publish("a.b", payload=f"run-{number}")

    events.subscribe("a.b", handle)
    events.subscribe("a.*", handle)
    in_threads(8, publish)

    assert wrong == []


def test_what_a_handler_sets_in_its_context_stays_there() -> None:
    events = bus()

    def handle(event: Envelope) -> None:
        workflow_event_context(context("leaked")).__enter__()

    events.subscribe("a.b", handle)
    events.publish("a.b")

    assert get_workflow_event_context() is None
    assert current_cause() is None


def test_subscribing_and_cancelling_while_others_publish_breaks_nothing() -> None:
    events = bus()
    steady: list[object] = []
    events.subscribe("a.b", lambda event: steady.append(event.payload))

    def work(number: int) -> None:
        if number % 2:
            for n in range(100):
                events.publish("a.b", payload=n)
        else:
            for _ in range(100):
                subscription = events.subscribe("a.b", lambda _: None)
                events.subscribe_once("a.b", lambda _: None)
                subscription.cancel()

    in_threads(6, work)

    assert len(steady) == 300


def test_once_is_once_when_threads_publish_at_once() -> None:
    for _ in range(20):
        events, calls = bus(), list[Envelope]()
        events.subscribe_once("a.b", calls.append)
        in_threads(4, lambda _, events=events: events.publish("a.b"))  # type: ignore[misc]

        assert len(calls) == 1
