"""A worker says what ended, one by one if it must, and never falls over what it is given."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.base.errors import StoreUnavailable
from penstock.workflows.definition import read_definition
from penstock.workflows.hands import checked
from penstock.workflows.plan import Plan, WorkPlan
from penstock.workflows.port import Failed, Failure, StepCall, StepResult, Succeeded, Waiting
from penstock.workflows.queue.job import BatchRefused, Claimed, Ended
from penstock.workflows.run import RunStatus
from penstock.workflows.worker import Pace, WorkflowWorker

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PACE = Pace(slots=3, poll_s=0.005, reap_s=0.01, heartbeat_s=0.01, cancel_s=0.01, leave_s=1.0)
WORK = Plan(
    read_definition(
        {
            "slug": "w", "name": "w",
            "steps": [{"id": "a", "type": "function", "handler": "echo", "timeoutMs": 1_000}],
        }
    )
).work_at("a")  # fmt: skip


def claimed(n: int, **fields: Any) -> Claimed:
    found = Claimed(
        n, 1, f"run-{n}", "a", 1, 1, 0, None, NOW, NOW, NOW, "a", {"n": n}, "acme",
        RunStatus.RUNNING, "def", 1, None, f"run-{n}", None,
    )  # fmt: skip
    return found._replace(**fields)


@dataclass
class Did:
    claimed: Sequence[tuple[Claimed, WorkPlan]] = ()
    dropped: Sequence[tuple[str, str]] = ()
    fenced: int = 0
    delay_ms: int | None = None


@dataclass
class ListQueue:
    """A queue over a list; `refuses` names jobs whose success it cannot store."""

    waiting: list[Claimed]
    refuses: set[int] = field(default_factory=set)
    outages: int = 0
    is_open: bool = False
    ended: list[Ended] = field(default_factory=list)
    limits: list[int] = field(default_factory=list)
    beats: list[bool] = field(default_factory=list)
    opened: int = 0

    def open(self, held: Sequence[Claimed] = ()) -> set[int]:
        self.is_open, self.opened = True, self.opened + 1
        return {each.id for each in held}

    def turn(self, ended: Sequence[Ended], limit: int) -> Did:
        if self.outages:
            self.outages -= 1
            self.is_open = False
            raise StoreUnavailable("away")
        if any(e.claimed.id in self.refuses and isinstance(e.result, Succeeded) for e in ended):
            raise BatchRefused("no")
        self.ended += ended
        self.limits.append(limit)
        taken, self.waiting = self.waiting[:limit], self.waiting[limit:]
        return Did([(each, WORK) for each in taken])

    def heartbeat(self) -> bool:
        return self.beats.pop() if self.beats else True

    def reap(self) -> int:
        return 0

    def called_off(self) -> set[int]:
        return set()

    def leave(self) -> None:
        self.close()

    def close(self) -> None:
        self.is_open = False


class Echo:
    def __init__(self) -> None:
        self.calls: list[StepCall] = []

    def run(self, call: StepCall) -> StepResult:
        self.calls.append(call)
        return Succeeded(call.input)

    def cancel(self, call_id: str) -> None: ...


def work_off(queue: ListQueue, count: int, *, inline: bool = False) -> Echo:
    executor, stop = Echo(), threading.Event()
    worker = WorkflowWorker(queue, executor, pace=PACE, is_inline=lambda _call: inline)
    thread = threading.Thread(target=worker.run, args=(stop,))
    thread.start()
    until = time.monotonic() + 10
    while len(queue.ended) < count and time.monotonic() < until:
        time.sleep(0.002)
    stop.set()
    worker.wake()
    thread.join(10)
    assert not thread.is_alive()
    return executor


def test_a_batch_that_is_refused_is_said_one_by_one_and_only_the_bad_one_fails() -> None:
    queue = ListQueue([claimed(n) for n in range(1, 8)], refuses={4})

    work_off(queue, 7, inline=True)

    results = {each.claimed.id: each.result for each in queue.ended}
    assert set(results) == set(range(1, 8))
    bad = results.pop(4)
    assert isinstance(bad, Failed)
    assert (bad.reason, bad.retryable) == (Failure.OUTPUT_INVALID, False)
    assert all(isinstance(result, Succeeded) for result in results.values())


def test_what_ended_while_the_queue_was_away_is_said_when_it_is_back() -> None:
    queue = ListQueue([claimed(n) for n in range(1, 5)], outages=3)

    executor = work_off(queue, 4)

    assert sorted(each.claimed.id for each in queue.ended) == [1, 2, 3, 4]
    assert len(executor.calls) == 4
    assert queue.opened >= 2


def test_a_worker_claims_no_more_than_its_threads_can_begin() -> None:
    queue = ListQueue([claimed(n) for n in range(1, 200)])

    work_off(queue, 199)

    assert max(queue.limits) <= PACE.slots


def test_inline_steps_come_in_growing_batches() -> None:
    queue = ListQueue([claimed(n) for n in range(1, 2_000)])

    work_off(queue, 1_999, inline=True)

    assert max(queue.limits) > 100


def test_a_worker_that_peers_took_for_dead_begins_anew() -> None:
    queue = ListQueue([claimed(n) for n in range(1, 400)], beats=[False])

    work_off(queue, 399)

    assert queue.opened >= 2


def test_what_must_not_run_is_not_run() -> None:
    late = NOW + timedelta(seconds=5)
    queue = ListQueue(
        [
            claimed(1, run_status=RunStatus.CANCELED),
            claimed(2, lost=5),
            claimed(3, token={"remote": 1}, claimed_at=late),
            claimed(4, claimed_at=late),  # it only waited in the queue
        ]
    )

    executor = work_off(queue, 4)

    reasons = {e.claimed.id: e.result.reason for e in queue.ended if isinstance(e.result, Failed)}
    assert reasons == {1: Failure.CANCELED, 2: Failure.WORKER_LOST, 3: Failure.TIMED_OUT}
    assert [call.input for call in executor.calls] == [{"n": 4}]


def test_a_result_is_left_alone_unless_its_output_cannot_be_kept() -> None:
    for good in (Succeeded({"n": 1}), Succeeded(None), Waiting(1.0, "t"), Failed("x", "y")):
        assert checked(good) == good
    assert isinstance(checked(Succeeded({"n": float("inf")})), Failed)
