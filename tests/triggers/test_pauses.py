"""A paused trigger loses nothing: its events wait, and are judged in order."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.triggers.evaluating import NOON, World, trigger

from penstock.triggers.delivery import Launch, Launched, LaunchOutcome, Refused
from penstock.triggers.limits import Breaker, Limits, RetryBackoff
from penstock.triggers.words import ActKind, RetryState, Stage, Status, Target

WANTS_A = [{"type": "jsonPath", "path": "$.payload.key", "operator": "equals", "value": "a"}]
FEW = Limits(breaker=Breaker(threshold=2, window_ms=60_000, pause_ms=60_000))


class Room:
    """A workflow room that refuses while it is told to."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses = refuses
        self.asked = 0

    def __call__(self, launch: Launch) -> LaunchOutcome:
        self.asked += 1
        return Refused("workflow unknown") if self.refuses else Launched(launch.run_id)


def pause(world: World, **said: object) -> None:
    assert world.act(ActKind.PAUSE, Target.TRIGGER, "t", **said).acts[0].is_done


def test_events_that_arrive_while_a_trigger_is_paused_are_all_judged_after_resume() -> None:
    world = World(trigger(predicates=WANTS_A))
    pause(world, reason="maintenance")
    world.judge({"key": "a"}, {"key": "b"}, {"key": "a"})
    assert world.said() == ["pending paused"] * 3

    world.act(ActKind.RESUME, Target.TRIGGER, "t")
    world.twin.catch_up()

    assert world.said() == ["launched", "skipped filtered", "launched"]
    assert world.launched == [1, 3]


def test_newer_events_queue_behind_those_that_waited() -> None:
    world = World(trigger(), due_limit=2)
    pause(world)
    world.judge({}, {}, {}, {}, {})

    world.act(ActKind.RESUME, Target.TRIGGER, "t")
    world.event({})
    world.twin.run_pass()

    assert world.said() == [*["launched"] * 2, *["pending paused"] * 3, "pending in_order"]
    world.twin.catch_up()
    assert world.launched == [1, 2, 3, 4, 5, 6]


def test_a_pause_with_an_end_ends_by_itself() -> None:
    world = World(trigger())
    pause(world, until=NOON + timedelta(minutes=5))
    world.judge({})
    world.wait(299)
    assert world.said() == ["pending paused"]

    world.wait(1)

    assert world.said() == ["launched"]
    assert world.all()[0].updated_at == NOON + timedelta(minutes=5)


def test_a_pause_without_an_end_waits_for_an_operator() -> None:
    world = World(trigger())
    pause(world)
    world.judge({})

    world.wait(86_400 * 30)

    assert world.said() == ["pending paused"]


def test_resuming_with_skip_drops_what_waited_and_only_that() -> None:
    world = World(trigger(maxConcurrency=1))
    world.judge({}, {})
    pause(world)
    world.judge({}, {})

    world.act(ActKind.RESUME, Target.TRIGGER, "t", skip=True)
    world.end(world.all()[0].run_id)

    assert world.said() == ["launched", "launched", *["skipped skipped_by_operator"] * 2]
    assert world.all()[2].retry_state is RetryState.CANCELLED


def test_skipping_leaves_the_trigger_paused() -> None:
    world = World(trigger())
    pause(world)
    world.judge({})

    assert world.act(ActKind.SKIP, Target.TRIGGER, "t").acts[0].is_done
    world.judge({})

    assert world.said() == ["skipped skipped_by_operator", "pending paused"]


@pytest.mark.parametrize("kind", [ActKind.RESUME, ActKind.SKIP])
def test_an_act_on_a_trigger_that_is_not_paused_does_nothing(kind: ActKind) -> None:
    world = World(trigger())

    assert not world.act(kind, Target.TRIGGER, "t").acts[0].is_done
    assert not world.act(kind, Target.TRIGGER, "unknown").acts[0].is_done


def test_a_paused_trigger_does_not_launch_what_waited_elsewhere() -> None:
    world = World(trigger(maxConcurrency=1))
    world.judge({}, {})
    pause(world)

    world.end(world.all()[0].run_id)

    assert world.said() == ["launched", "throttled max_concurrency"]
    world.act(ActKind.RESUME, Target.TRIGGER, "t")
    world.twin.catch_up()
    assert world.said() == ["launched", "launched"]


def test_so_many_failures_pause_a_trigger_and_its_events_wait() -> None:
    room = Room(refuses=True)
    world = World(trigger(), limits=FEW, start=room)

    world.judge({}, {}, {})

    assert world.said() == [*["failed launch_refused"] * 2, "pending paused"]
    paused = world.twin.tables.pauses["t"]
    assert (paused.until, paused.failures) == (NOON + timedelta(minutes=1), 2)
    assert paused.reason == "workflow unknown"


def test_one_probe_decides_after_an_automatic_pause() -> None:
    room = Room(refuses=True)
    world = World(trigger(), limits=FEW, start=room)
    world.judge({}, {}, {}, {})
    asked = room.asked

    world.wait(60)

    assert room.asked == asked + 1
    assert world.twin.tables.pauses["t"].until == NOON + timedelta(minutes=2)
    assert world.said()[2:] == ["pending paused"] * 2


def test_a_probe_that_succeeds_closes_the_breaker_and_everything_goes_on_in_order() -> None:
    room = Room(refuses=True)
    world = World(trigger(), limits=FEW, start=room)
    world.judge({}, {}, {}, {})
    room.refuses = False

    world.wait(60)

    assert world.said() == ["launched"] * 4
    assert world.launched == [1, 2, 3, 4]
    assert world.twin.tables.pauses == {}
    assert world.twin.tables.failures["t"] == ()


def test_an_event_that_does_not_match_is_no_probe() -> None:
    room = Room(refuses=True)
    world = World(trigger(predicates=WANTS_A, maxAttempts=1), limits=FEW, start=room)
    world.judge({"key": "a"}, {"key": "a"})
    world.wait(60)

    world.judge({"key": "b"})
    assert "t" in world.twin.tables.pauses
    world.judge({"key": "a"}, {"key": "a"})

    assert world.said()[-2:] == ["dead launch_refused", "pending paused"]


def test_failures_outside_the_window_do_not_count() -> None:
    room = Room(refuses=True)
    slow = RetryBackoff(base_ms=900_000)
    world = World(trigger(), limits=Limits(breaker=FEW.breaker, backoff=slow), start=room)
    world.judge({})
    world.wait(61)

    world.judge({})

    assert world.twin.tables.pauses == {}


def test_a_success_forgets_failures() -> None:
    room = Room(refuses=True)
    world = World(trigger(maxAttempts=1), limits=FEW, start=room)
    world.judge({})
    room.refuses = False
    world.judge({})
    room.refuses = True

    world.judge({})

    assert world.twin.tables.pauses == {}


def test_an_operators_pause_is_not_ended_by_a_forced_success() -> None:
    world = World(trigger())
    pause(world)
    world.judge({}, {})

    world.act(ActKind.FORCE, Target.DELIVERY, world.all()[0].id)
    world.twin.catch_up()

    assert world.said() == ["launched", "pending paused"]
    assert "t" in world.twin.tables.pauses


def test_a_pause_survives_a_restart_and_so_does_the_half_open_breaker() -> None:
    room = Room(refuses=True)
    world = World(trigger(), limits=FEW, start=room)
    world.judge({}, {}, {}, {})
    asked = room.asked
    world.twin.reload()

    world.wait(60)

    assert room.asked == asked + 1


def test_a_paused_delivery_says_where_it_stands() -> None:
    world = World(trigger())
    pause(world, until=NOON + timedelta(minutes=5))
    world.judge({})

    (delivery,) = world.all()
    assert (delivery.status, delivery.stage) == (Status.PENDING, Stage.PAUSED)
    assert delivery.next_attempt_at == NOON + timedelta(minutes=5)
    assert delivery.retry_state is RetryState.SCHEDULED
