"""The loop goes on while there is work, sleeps until the next is due, and outlives faults."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from penstock.base.backoff import Backoff
from penstock.base.errors import StoreUnavailable
from penstock.triggers.host.loop import TriggerLoop, sleep_s
from penstock.triggers.host.summary import PassSummary

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
IDLE = PassSummary(None, NOON, 0)


class Script:
    """A host and an alarm that do as they are told, and then stop the loop."""

    def __init__(self, *turns: PassSummary | Exception) -> None:
        self.turns, self.slept, self.closed = list(turns), list[float](), 0
        self.stop: Callable[[], None] = lambda: None

    def run_pass(self) -> PassSummary:
        turn = self.turns.pop(0)
        if not self.turns:
            self.stop()
        if isinstance(turn, Exception):
            raise turn
        return turn

    def wait(self, timeout_s: float) -> None:
        self.slept.append(timeout_s)

    def nudge(self) -> None: ...

    def close(self) -> None:
        self.closed += 1


def run(*turns: PassSummary | Exception) -> tuple[Script, TriggerLoop]:
    script = Script(*turns)
    loop = TriggerLoop(script, script, backoff=Backoff(base_s=0.001, max_s=0.002))
    script.stop = loop.stop
    loop.run()
    return script, loop


def test_while_there_is_more_to_do_it_does_not_sleep() -> None:
    busy = PassSummary(1, NOON, 500, has_more=True)

    script, loop = run(busy, busy, IDLE)

    assert script.slept == [1.0]
    assert (loop.passes, script.closed) == (2, 2)


def test_it_sleeps_until_the_next_is_due_and_at_most_a_second() -> None:
    def due(in_ms: int) -> float:
        return sleep_s(PassSummary(1, NOON, 0, next_due_at=NOON + timedelta(milliseconds=in_ms)))

    assert due(250) == 0.25
    assert due(60_000) == 1.0
    assert due(-5) == 0.001
    assert sleep_s(IDLE) == 1.0


def test_a_pass_that_fails_does_not_end_the_loop() -> None:
    script, loop = run(StoreUnavailable("away"), ZeroDivisionError(), PassSummary(1, NOON, 1), IDLE)

    assert loop.passes == 1
    assert script.turns == []
