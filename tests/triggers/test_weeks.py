"""Over made-up weeks, nothing is lost, nothing happens twice, and a replay is the record."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.triggers.evaluating import NOON
from tests.triggers.weeks import IDS, Week

from penstock.triggers.backtest import differences, outcomes_of, replay
from penstock.triggers.delivery import Delivery
from penstock.triggers.roster import mode_of
from penstock.triggers.state import State
from penstock.triggers.words import Reason, Status

SEEDS = st.integers(0, 1_000_000)
STEPS = 60
MANY = settings(max_examples=15, deadline=None)


def lived(seed: int, *, reloads: bool = False, steps: int = STEPS) -> Week:
    week = Week(seed, reloads=reloads)
    for _ in range(steps):
        week.step()
    return week


@MANY
@given(SEEDS)
def test_every_event_that_was_let_through_ends_in_exactly_one_way(seed: int) -> None:
    week = lived(seed)

    week.drain()

    ends = {Status.LAUNCHED, Status.SKIPPED, Status.DEAD, Status.MATCHED}
    assert {d.status for d in week.world.all()} <= ends
    pairs = Counter((d.trigger_id, d.event_position) for d in week.world.all())
    assert set(pairs.values()) <= {1}
    judged = [s.position for p in week.world.twin.passes for s in p.admitted]
    cancelled = [
        h.position for h in week.world.twin.tables.held.values() if h.retry_state == "cancelled"
    ]
    assert sorted(judged + cancelled) == list(range(1, len(week.world.twin.events) + 1))


@MANY
@given(SEEDS)
def test_a_delivery_launches_one_run_and_a_run_has_its_deliveries(seed: int) -> None:
    week = lived(seed)

    runs = week.world.twin.runs
    launched = Counter(name for run in runs for name in run.delivery_ids)
    assert set(launched.values()) <= {1}
    assert set(launched) == {d.id for d in week.world.all() if d.status is Status.LAUNCHED}


@MANY
@given(SEEDS)
def test_a_key_has_one_holder_at_most(seed: int) -> None:
    week = Week(seed)
    for _ in range(STEPS):
        week.step()
        keys = Counter(
            (d.trigger_id, d.dedupe_key, d.shadow) for d in week.world.all() if d.holds_key
        )
        assert set(keys.values()) <= {1}


@MANY
@given(SEEDS)
def test_limits_hold_at_every_moment(seed: int) -> None:
    week = Week(seed)
    for _ in range(STEPS):
        week.step()
        for name, compiled in week.world.twin._in_force.items():
            most = compiled.spec.max_concurrency
            if most is not None and week.versions[name] == 1:
                assert len(week.world.twin.state.of(name).active) <= most
    for name in IDS:
        compiled = week.world.twin._in_force[name]
        count, window = compiled.spec.throttle_count, compiled.spec.throttle_window_ms
        if week.versions[name] == 1 and count is not None and window is not None:
            times = sorted(d.updated_at for d in launches(week, name))
            for first, last in zip(times, times[count:], strict=False):
                assert last - first >= timedelta(milliseconds=window)


def launches(week: Week, name: str) -> list[Delivery]:
    """Launches of a trigger at which nothing was forced: force passes the throttle."""
    mine = week.world.all(name)
    if any("forcedBy" in d.retry_metadata for d in mine):
        return []
    return [d for d in mine if d.role in ("triggered", "attached")]


@MANY
@given(SEEDS)
def test_a_state_that_is_loaded_is_the_state_that_was_lost(seed: int) -> None:
    week = Week(seed)
    for _ in range(STEPS):
        week.step()
        twin = week.world.twin
        again = State.load(twin.tables.kept(twin.past.deliveries.values()))
        for name, compiled in twin._in_force.items():
            if compiled.spec.status != "disabled":
                again.of(name).settle_in(compiled.trigger.version, mode_of(compiled))
        assert seen(again) == seen(twin.state)


def seen(state: State) -> dict[str, Any]:
    """What decisions depend on, in an order that can be compared."""
    triggers = {
        name: (
            s.pause,
            tuple(s.failures),
            sorted(s.active.items()),
            tuple(s.parked),
            tuple(s.line),
            sorted(s.groups.items()),
            sorted((b.id, b.key, tuple(b.members), b.lead) for b in s.batches.values()),
            sorted(s.waiting),
            sorted(s._due),
        )
        for name, s in state.triggers.items()
        if s.waiting or s.active or s.pause or s.failures
    }
    sources = {
        name: (s.pause, list(s.held.values()), sum(n for _, n in s.counts))
        for name, s in state.sources.items()
        if s.pause or s.held
    }
    return {"triggers": triggers, "sources": sources}


@MANY
@given(SEEDS)
def test_a_worker_that_restarts_before_every_pass_decides_the_same(seed: int) -> None:
    steady, restless = lived(seed), lived(seed, reloads=True)

    assert restless.world.twin.history == steady.world.twin.history
    assert restless.world.all() == steady.world.all()


@MANY
@given(SEEDS)
def test_a_replay_of_a_week_is_its_record(seed: int) -> None:
    twin = lived(seed).world.twin

    again = replay(twin.passes, twin.versions, outcomes_of(twin.history), twin.log)

    assert again.unforeseen == []
    assert differences(twin.deliveries, twin.history, again) == []


def test_a_back_test_of_a_whole_week_with_throttling_pauses_and_failures_is_its_record() -> None:
    week = Week(7)
    while week.world.clock.now() < NOON + timedelta(days=7):
        week.step()
        week.world.clock.move(timedelta(minutes=week.rng.randint(0, 60)))
    twin = week.world.twin

    again = replay(twin.passes, twin.versions, outcomes_of(twin.history), twin.log)

    assert differences(twin.deliveries, twin.history, again) == []
    assert len({v.trigger_id for v in twin.versions}) < len(twin.versions)
    assert {e.reason for e in twin.history} >= {
        Reason.THROTTLE_WINDOW,
        Reason.MAX_CONCURRENCY,
        Reason.PAUSED,
        Reason.LAUNCH_REFUSED,
        Reason.PARAMETERS_FAILED,
        Reason.DUPLICATE_KEY,
        Reason.SUPERSEDED,
    }
    assert any(held.released_pass for held in twin.tables.held.values())


@MANY
@given(SEEDS, st.sampled_from(IDS))
def test_a_trigger_replayed_alone_decides_as_among_others(seed: int, name: str) -> None:
    twin = lived(seed).world.twin

    again = replay(
        twin.passes,
        [v for v in twin.versions if v.trigger_id == name],
        outcomes_of(twin.history),
        twin.log,
    )

    mine = [d for d in twin.deliveries if d.trigger_id == name]
    ids = {d.id for d in mine}
    assert differences(mine, [e for e in twin.history if e.delivery_id in ids], again) == []


@MANY
@given(SEEDS)
def test_a_copied_state_is_not_harmed_by_advancing_the_original(seed: int) -> None:
    week = Week(seed)
    for _ in range(STEPS):
        copied = week.world.twin.state.copy()
        before = seen(week.world.twin.state)
        week.step()
        assert seen(copied) == before


def test_weeks_have_everything_in_them() -> None:
    reasons = Counter(d.reason for seed in range(25) for d in lived(seed).world.all())

    assert set(reasons) >= set(Reason) - {Reason.EVENT_GONE, Reason.FORCED}
