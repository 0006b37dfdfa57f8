"""A source that must wait loses nothing: its events are judged later, in order."""

from __future__ import annotations

from datetime import timedelta

from tests.triggers.evaluating import NOON, SOURCE, World, trigger

from penstock.triggers.limits import Limits, SourceLimit
from penstock.triggers.words import ActKind, RetryState, Target

THREE = Limits(sources=(SourceLimit(SOURCE, 3, 60_000, 60_000),))


def held(world: World) -> list[int]:
    return sorted(
        h.position for h in world.twin.tables.held.values() if h.retry_state == "scheduled"
    )


def test_the_event_after_the_limit_pauses_its_source() -> None:
    world = World(trigger(), limits=THREE)

    world.judge({}, {}, {})
    assert world.twin.tables.source_pauses == {}
    world.judge({})

    pause = world.twin.tables.source_pauses["default", SOURCE]
    assert pause.reason == "rate_limit"
    assert pause.details == {"limit": 3, "intervalMs": 60_000}
    assert pause.until == NOON + timedelta(minutes=1)
    assert (world.launched, held(world)) == ([1, 2, 3], [4])


def test_a_burst_is_spread_out_and_never_lost() -> None:
    world = World(trigger(), limits=THREE)

    world.judge(*[{}] * 10)
    assert world.launched == [1, 2, 3]
    world.wait(60)
    assert world.launched == [1, 2, 3, 4, 5, 6]
    world.wait(60)
    assert world.launched == list(range(1, 10))
    world.wait(60)

    assert world.launched == list(range(1, 11))
    assert held(world) == []


def test_newer_events_queue_behind_held_ones() -> None:
    world = World(trigger(), limits=THREE)
    world.judge(*[{}] * 5)
    world.wait(59)

    world.judge({})
    world.wait(1)
    world.judge({})

    assert world.launched == [1, 2, 3, 4, 5, 6]
    assert held(world) == [7]


def test_other_sources_go_on() -> None:
    world = World(trigger(), limits=THREE)
    world.judge(*[{}] * 4)

    world.judge({}, source="metastore.worker")

    assert world.launched == [1, 2, 3, 5]


def test_the_star_is_the_fallback_for_sources_that_are_not_listed() -> None:
    limits = Limits(
        sources=(SourceLimit("*", 1, 60_000, 60_000), SourceLimit(SOURCE, 2, 60_000, 60_000))
    )
    world = World(trigger(), limits=limits)

    world.judge({}, {}, {})
    world.judge({}, {}, source="metastore.worker")
    world.judge({}, {}, source="metastore.other")

    assert world.launched == [1, 2, 4, 6]


def test_a_source_of_another_tenant_is_another_source() -> None:
    world = World(trigger(), trigger("o", tenant_id="other"), limits=THREE)
    world.judge(*[{}] * 4)

    world.judge({}, tenant_id="other")

    assert world.launched == [1, 2, 3, 5]


def test_events_that_arrive_while_a_source_is_paused_are_all_judged_after_resume() -> None:
    world = World(trigger())
    world.act(ActKind.PAUSE, Target.SOURCE, SOURCE, reason="maintenance")
    world.judge({}, {}, {})
    world.wait(86_400)
    assert world.all() == []

    world.act(ActKind.RESUME, Target.SOURCE, SOURCE)
    world.twin.catch_up()

    assert world.launched == [1, 2, 3]
    assert {h.retry_state for h in world.twin.tables.held.values()} == {RetryState.COMPLETED}


def test_resuming_a_source_with_skip_drops_what_it_held() -> None:
    world = World(trigger())
    world.act(ActKind.PAUSE, Target.SOURCE, SOURCE)
    world.judge({}, {})

    result = world.act(ActKind.RESUME, Target.SOURCE, SOURCE, skip=True)
    world.judge({})

    assert world.launched == [3]
    assert result.sources["default", SOURCE].dropped == 2


def test_a_held_event_can_be_forced_and_cancelled() -> None:
    world = World(trigger())
    world.act(ActKind.PAUSE, Target.SOURCE, SOURCE)
    world.judge({}, {}, {})

    assert world.act(ActKind.FORCE, Target.EVENT, "e2").acts[0].is_done
    assert world.act(ActKind.CANCEL, Target.EVENT, "e1").acts[0].is_done
    assert not world.act(ActKind.CANCEL, Target.EVENT, "e9").acts[0].is_done
    world.twin.catch_up()

    assert world.launched == [2]
    assert held(world) == [3]


def test_held_events_are_released_a_few_at_a_time() -> None:
    world = World(trigger(), due_limit=2)
    world.act(ActKind.PAUSE, Target.SOURCE, SOURCE)
    world.judge(*[{}] * 5)
    world.act(ActKind.RESUME, Target.SOURCE, SOURCE)
    world.event({})

    world.twin.run_pass()
    assert (world.launched, held(world)) == ([1, 2], [3, 4, 5, 6])
    world.twin.catch_up()

    assert world.launched == [1, 2, 3, 4, 5, 6]


def test_a_limit_survives_a_restart() -> None:
    world = World(trigger(), limits=THREE)
    world.judge({}, {})
    world.twin.reload()

    world.judge({}, {})

    assert (world.launched, held(world)) == ([1, 2, 3], [4])


def test_lag_is_counted_from_when_an_event_occurred() -> None:
    world = World(trigger())
    world.event({}, occurred_at=NOON - timedelta(seconds=3))
    world.event({}, occurred_at=NOON + timedelta(seconds=3))

    tally = world.twin.run_pass().sources["default", SOURCE]

    assert (tally.total, tally.total_lag_ms, tally.max_lag_ms) == (2, 3000, 3000)
    assert tally.last_lag_ms == 0
