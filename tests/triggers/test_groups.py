"""Debounce, batch and latest: one run for what belongs together, and nothing lost."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.triggers.evaluating import NOON, World, trigger
from tests.triggers.test_pauses import Room

from penstock.triggers.limits import Limits, RetryBackoff
from penstock.triggers.trigger import Trigger
from penstock.triggers.words import ActKind, Role, Status, Target

KEY = "{{ event.payload.key }}"
A, B = {"key": "a"}, {"key": "b"}


def debounced(**spec: object) -> Trigger:
    return trigger(**{"debounceMs": 10_000, "debounceKey": KEY} | spec)


def batched(**spec: object) -> Trigger:
    said = {"batchMaxEvents": 3, "batchTimeoutMs": 30_000, "groupKey": KEY, **spec}
    return trigger(per="batch", parameterTemplate={"n": "{{ events.size }}"}, **said)


def latest(**spec: object) -> Trigger:
    return trigger(**{"per": "latest", "groupKey": KEY} | spec)


def test_a_burst_is_one_run_for_its_last_event_once_it_is_quiet() -> None:
    world = World(debounced())

    world.judge(A)
    world.wait(5)
    world.judge(A, A)
    world.wait(9)
    assert world.said() == [*["skipped superseded"] * 2, "pending debouncing"]
    world.wait(1)

    assert world.said() == [*["skipped superseded"] * 2, "launched"]
    assert world.all()[2].updated_at == NOON + timedelta(seconds=15)


def test_every_key_falls_quiet_for_itself() -> None:
    world = World(debounced())

    world.judge(A, B)
    world.wait(5)
    world.judge(A)
    world.wait(5)
    assert world.launched == [2]
    world.wait(5)

    assert world.launched == [2, 3]


def test_a_second_burst_is_a_second_run() -> None:
    world = World(debounced())

    for _ in range(3):
        world.judge(A, A)
        world.wait(11)

    assert world.launched == [2, 4, 6]


def test_a_full_batch_is_one_run_with_all_its_events() -> None:
    world = World(batched())

    world.judge(A, B, A, A)

    (launch,) = world.twin.runs
    assert [e.position for e in launch.events] == [1, 3, 4]
    assert launch.parameters == {"n": 3}
    assert world.said() == ["launched", "pending collecting", "launched", "launched"]
    roles = [d.role for d in world.all() if d.status is Status.LAUNCHED]
    assert roles == [Role.INCLUDED, Role.INCLUDED, Role.TRIGGERED]
    assert {d.run_id for d in world.all() if d.run_id} == {launch.run_id}


def test_a_batch_that_does_not_fill_launches_when_its_time_is_up() -> None:
    world = World(batched())
    world.judge(A)
    world.wait(20)
    world.judge(A)

    world.wait(9)
    assert world.twin.runs == []
    world.wait(1)

    assert [e.position for e in world.twin.runs[0].events] == [1, 2]
    assert world.said() == ["launched", "launched"]


def test_the_next_batch_of_a_key_is_another_one() -> None:
    world = World(batched())

    world.judge(*[A] * 7)
    world.wait(30)

    assert [[e.position for e in run.events] for run in world.twin.runs] == [
        [1, 2, 3],
        [4, 5, 6],
        [7],
    ]


def test_a_batch_that_fails_is_tried_again_whole_and_dies_whole() -> None:
    room = Room(refuses=True)
    slow = Limits(backoff=RetryBackoff(base_ms=60_000))
    world = World(batched(maxAttempts=2), start=room, limits=slow)
    world.judge(A, A, A)
    assert world.said() == [*["pending collecting"] * 2, "failed launch_refused"]
    world.judge(A)

    world.wait(75)

    assert room.asked == 3  # the first batch twice, the second one once
    assert world.said() == [*["dead launch_refused"] * 3, "failed launch_refused"]


def test_a_batch_launches_without_the_events_that_expired_meanwhile() -> None:
    world = World(batched())
    world.judge(A, ttl_ms=10_000)
    world.judge(A)
    world.judge(B, ttl_ms=10_000)

    world.wait(30)

    assert world.said() == ["skipped expired", "launched", "skipped expired"]
    assert [e.position for e in world.twin.runs[0].events] == [2]


def test_the_newest_event_waits_for_the_run_of_its_key_and_older_ones_are_superseded() -> None:
    world = World(latest())

    world.judge(A, A, A, B, A)
    assert world.launched == [1, 4]
    assert world.said() == [
        "launched",
        "skipped superseded",
        "skipped superseded",
        "launched",
        "pending run_active",
    ]
    world.end(world.all()[0].run_id)

    assert world.launched == [1, 4, 5]


def test_the_superseded_event_names_the_one_that_took_its_place() -> None:
    world = World(latest())

    world.judge(A, A, A)

    assert world.all()[1].retry_metadata["supersededBy"] == world.all()[2].id


def test_a_newer_event_takes_the_place_of_a_failed_one() -> None:
    room = Room(refuses=True)
    world = World(latest(), start=room)
    world.judge(A)
    room.refuses = False

    world.judge(A)
    world.wait(3600)

    assert world.said() == ["skipped superseded", "launched"]


def test_the_latest_takes_over_the_place_in_line_of_the_one_it_superseded() -> None:
    world = World(latest(maxConcurrency=1))
    world.judge({"key": "x"}, A, B)

    world.judge({"key": "a", "n": 2})
    world.end(world.all()[0].run_id)
    assert world.launched == [1, 4]
    world.end(world.all()[3].run_id)

    assert world.launched == [1, 4, 3]


@pytest.mark.parametrize("make", [debounced, batched, latest])
def test_runs_of_groups_stay_within_the_throttle(make: object) -> None:
    world = World(make(throttleWindowMs=60_000, throttleCount=2))  # type: ignore[operator]

    world.judge(*({"key": f"k{n}"} for n in range(6)))
    world.wait(31)
    first = len(world.twin.runs)
    world.wait(60)
    second = len(world.twin.runs)
    world.wait(60)

    assert (first, second, len(world.twin.runs)) == (2, 4, 6)


@pytest.mark.parametrize("make", [debounced, batched, latest])
def test_runs_of_groups_stay_within_the_concurrency(make: object) -> None:
    world = World(make(maxConcurrency=2))  # type: ignore[operator]

    world.judge(*({"key": f"k{n}"} for n in range(5)))
    world.wait(31)
    assert len(world.twin.runs) == 2
    world.end(world.twin.runs[0].run_id)
    assert len(world.twin.runs) == 3
    world.end(*(run.run_id for run in world.twin.runs[1:]))

    assert len(world.twin.runs) == 5


@pytest.mark.parametrize("make", [debounced, batched, latest])
def test_a_group_without_a_key_is_one_group(make: object) -> None:
    world = World(make(debounceKey=None) if make is debounced else make(groupKey=None))  # type: ignore[operator]

    world.judge(A, B, A)
    world.wait(31)

    expected = {debounced: [3], batched: [3], latest: [1]}[make]  # type: ignore[index]
    assert world.launched == expected


def test_forcing_a_debounced_event_launches_it_at_once() -> None:
    world = World(debounced())
    world.judge(A)

    world.act(ActKind.FORCE, Target.DELIVERY, world.all()[0].id)
    world.twin.catch_up()

    assert world.said() == ["launched"]


def test_forcing_a_member_closes_its_batch() -> None:
    world = World(batched())
    world.judge(A, A)

    world.act(ActKind.FORCE, Target.DELIVERY, world.all()[0].id)
    world.twin.catch_up()

    assert [e.position for e in world.twin.runs[0].events] == [1, 2]


def test_cancelling_the_triggering_event_of_a_waiting_batch_leaves_the_others() -> None:
    world = World(batched(maxConcurrency=1))
    world.judge(B, B, B, A, A, A)
    assert world.said()[3:] == [*["pending collecting"] * 2, "throttled max_concurrency"]

    world.act(ActKind.CANCEL, Target.DELIVERY, world.all()[5].id)
    world.end(world.twin.runs[0].run_id)

    assert [e.position for e in world.twin.runs[1].events] == [4, 5]
    assert world.said()[3:] == ["launched", "launched", "skipped cancelled_by_operator"]


def test_a_new_version_dissolves_groups_and_judges_their_events_anew() -> None:
    world = World(batched())
    world.judge(A, A)

    world.twin.define(trigger(version=2))
    world.twin.catch_up()

    assert world.launched == [1, 2]
