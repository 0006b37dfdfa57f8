"""Throttle, concurrency, retries and acts: how often, how many, how long, and who may change it."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from tests.triggers.evaluating import NOON, World, trigger
from tests.triggers.test_pauses import Room

from penstock.triggers.limits import Breaker, Limits, RetryBackoff
from penstock.triggers.words import ActKind, RetryState, Stage, Status, Target

PATIENT = Limits(breaker=Breaker(threshold=1_000))
TWO_A_MINUTE = {"throttleWindowMs": 60_000, "throttleCount": 2}


def test_launches_over_the_throttle_wait_for_the_window_and_keep_their_order() -> None:
    world = World(trigger(**TWO_A_MINUTE))

    world.judge(*[{}] * 5)

    throttled = world.all()[2]
    assert world.said() == [*["launched"] * 2, *["throttled throttle_window"] * 3]
    assert (throttled.retry_state, throttled.retry_attempts) == (RetryState.SCHEDULED, 1)
    minute = timedelta(minutes=1)
    assert [d.next_attempt_at for d in world.all()[2:]] == [
        NOON + minute, NOON + minute, NOON + 2 * minute,
    ]  # fmt: skip
    world.wait(120)
    assert world.launched == [1, 2, 3, 4, 5]
    assert [d.updated_at for d in world.all()[2:]] == [
        NOON + minute, NOON + minute, NOON + 2 * minute,
    ]  # fmt: skip


def test_after_a_successful_retry_nothing_is_scheduled() -> None:
    world = World(trigger(**TWO_A_MINUTE))
    world.judge({}, {}, {})
    world.wait(60)

    delivery = world.all()[2]
    assert (delivery.status, delivery.retry_state) == (Status.LAUNCHED, RetryState.PENDING)
    assert (delivery.next_attempt_at, delivery.retry_attempts) == (None, 1)


def test_the_window_slides() -> None:
    world = World(trigger(**TWO_A_MINUTE))
    world.judge({})
    world.wait(40)
    world.judge({}, {}, {})

    world.wait(20)
    assert world.launched == [1, 2, 3]
    world.wait(39)
    assert world.launched == [1, 2, 3]
    world.wait(1)

    assert world.launched == [1, 2, 3, 4]


def test_a_newer_event_stands_behind_those_in_line() -> None:
    world = World(trigger(**TWO_A_MINUTE))
    world.judge(*[{}] * 4)
    world.wait(60)

    world.judge({})

    assert world.said()[-1] == "throttled throttle_window"
    world.wait(60)
    assert world.launched == [1, 2, 3, 4, 5]


def test_a_throttle_counts_the_launches_of_earlier_versions() -> None:
    world = World(trigger())
    world.judge({}, {})

    world.twin.define(trigger(version=2, **TWO_A_MINUTE))
    world.judge({})

    assert world.said() == ["launched", "launched", "throttled throttle_window"]


def test_so_many_runs_are_active_at_most() -> None:
    world = World(trigger(maxConcurrency=2))
    world.judge(*[{}] * 4)
    assert world.said() == [*["launched"] * 2, *["throttled max_concurrency"] * 2]

    world.end(world.all()[1].run_id)
    assert world.launched == [1, 2, 3]
    world.end(world.all()[0].run_id, world.all()[2].run_id)

    assert world.launched == [1, 2, 3, 4]


def test_the_end_of_a_run_is_counted_once() -> None:
    world = World(trigger(maxConcurrency=1))
    world.judge({}, {}, {})
    first = world.all()[0].run_id

    world.end(first)
    world.end(first)

    assert world.launched == [1, 2]


def test_throttle_and_concurrency_hold_together() -> None:
    world = World(trigger(maxConcurrency=1, **TWO_A_MINUTE))
    world.judge(*[{}] * 4)
    world.end(world.all()[0].run_id)
    world.end(world.all()[1].run_id)
    assert world.launched == [1, 2]
    world.wait(60)
    assert world.launched == [1, 2, 3]
    world.wait(60)
    assert world.launched == [1, 2, 3]

    world.end(world.all()[2].run_id)

    assert world.launched == [1, 2, 3, 4]


def test_a_failed_delivery_is_tried_again_ever_later_and_is_dead_in_the_end() -> None:
    room = Room(refuses=True)
    world = World(trigger(), start=room, limits=PATIENT)
    world.judge({})

    world.wait(3600)

    (delivery,) = world.all()
    assert (delivery.status, delivery.attempts) == (Status.DEAD, 5)
    assert (delivery.retry_state, delivery.next_attempt_at) == (RetryState.COMPLETED, None)
    tries = [entry.judged_at for entry in world.twin.history]
    waits = [(b - a).total_seconds() for a, b in pairwise(tries)]
    assert len(waits) == 4
    for wait, plain in zip(waits, (10, 20, 40, 80), strict=True):
        assert max(10, plain * 0.8) <= wait <= plain * 1.2
    assert [entry.attempt for entry in world.twin.history] == [1, 2, 3, 4, 5]


def test_a_delivery_that_succeeds_in_the_end_is_launched_once() -> None:
    room = Room(refuses=True)
    world = World(trigger(), start=room, limits=PATIENT)
    world.judge({})
    room.refuses = False

    world.wait(3600)

    assert world.said() == ["launched"]
    assert world.all()[0].attempts == 2
    assert len(world.twin.runs) == 1


def test_the_backoff_is_the_same_for_the_same_delivery_and_bounded() -> None:
    backoff = RetryBackoff()

    delays = [backoff.delay("d", n) for n in range(1, 100)]

    assert delays == [RetryBackoff().delay("d", n) for n in range(1, 100)]
    assert min(delays) >= timedelta(seconds=10)
    assert max(delays) <= timedelta(minutes=15)
    assert backoff.delay("d", 3) != backoff.delay("e", 3)


def test_a_corrected_version_is_tried_at_once_on_what_failed() -> None:
    world = World(trigger(parameterTemplate={"n": "{{ event.payload.n | divided_by: 0 }}"}))
    world.judge({"n": 1})
    assert world.said() == ["failed parameters_failed"]

    world.twin.define(trigger(version=2, parameterTemplate={"n": "{{ event.payload.n }}"}))
    world.twin.catch_up()

    assert world.said() == ["launched"]


def test_a_cancelled_delivery_is_never_tried_again() -> None:
    room = Room(refuses=True)
    world = World(trigger(), start=room, limits=PATIENT)
    world.judge({})

    result = world.act(ActKind.CANCEL, Target.DELIVERY, world.all()[0].id)
    world.wait(3600)

    (delivery,) = world.all()
    assert result.acts[0].is_done
    assert world.said() == ["skipped cancelled_by_operator"]
    assert delivery.retry_state is RetryState.CANCELLED
    assert delivery.retry_metadata["cancelledBy"] == "olga"
    assert room.asked == 1


def test_a_forced_delivery_is_tried_at_once() -> None:
    world = World(trigger(**TWO_A_MINUTE))
    world.judge({}, {}, {}, {})

    world.act(ActKind.FORCE, Target.DELIVERY, world.all()[3].id)
    assert world.all()[3].next_attempt_at == world.clock.now()
    world.twin.catch_up()

    assert world.launched == [1, 2, 4]
    assert world.all()[3].retry_metadata["forcedBy"] == "olga"


def test_force_does_not_pass_the_limit_of_concurrent_runs() -> None:
    world = World(trigger(maxConcurrency=1))
    world.judge({}, {})

    world.act(ActKind.FORCE, Target.DELIVERY, world.all()[1].id)
    world.twin.catch_up()

    assert world.said() == ["launched", "throttled max_concurrency"]


@pytest.mark.parametrize("kind", [ActKind.CANCEL, ActKind.FORCE])
def test_only_what_waits_can_be_cancelled_or_forced(kind: ActKind) -> None:
    world = World(trigger())
    world.judge({})

    result = world.act(kind, Target.DELIVERY, world.all()[0].id)

    assert not result.acts[0].is_done
    assert world.said() == ["launched"]


def test_an_act_reaches_only_its_own_tenant() -> None:
    world = World(trigger("o", tenant_id="other", maxConcurrency=1))
    world.judge({}, {}, tenant_id="other")

    assert not world.act(ActKind.CANCEL, Target.DELIVERY, world.all()[1].id).acts[0].is_done
    assert not world.act(ActKind.PAUSE, Target.TRIGGER, "o").acts[0].is_done


def test_an_event_that_left_the_log_while_it_waited_is_skipped() -> None:
    world = World(trigger(maxConcurrency=1))
    world.judge({}, {})
    del world.twin.log._by_position[2]

    world.end(world.all()[0].run_id)

    assert world.said() == ["launched", "skipped event_gone"]


def test_the_next_instant_of_work_is_known() -> None:
    world = World(trigger(**TWO_A_MINUTE))
    assert world.twin.run_pass().next_due is None
    world.judge({}, {}, {})

    assert world.twin.run_pass().next_due == NOON + timedelta(minutes=1)
    assert world.all()[2].stage is Stage.THROTTLE
