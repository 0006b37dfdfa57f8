"""A simulation says what a trigger would have done, by the same decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.triggers.evaluating import NOON, SOURCE, World, stored, trigger

from penstock.envelope.envelope import Stored
from penstock.triggers.delivery import RunEnd
from penstock.triggers.limits import Limits, SourceLimit
from penstock.triggers.simulate import simulate, simulate_in_processes
from penstock.triggers.words import Status

KEY = "{{ event.payload.key }}"
THREE = Limits(sources=(SourceLimit(SOURCE, 3, 60_000, 60_000),))


def minutes(count: int, **fields: Any) -> list[Stored]:
    """An event every ten seconds."""
    return [
        stored(n + 1, {"key": f"k{n % 3}", "n": n}, NOON + timedelta(seconds=10 * n), **fields)
        for n in range(count)
    ]


def test_matches_launches_keys_and_coverage_are_counted() -> None:
    draft = trigger(
        predicates=[{"type": "jsonPath", "path": "$.payload.n", "operator": "lt", "value": 6}],
        idempotencyKeyExpression=KEY,
        parameterTemplate={"key": KEY},
    )

    (found,) = simulate([draft], minutes(30))

    shown = found.wire()
    assert (found.events, found.verdicts, found.matches, found.launches) == (30, 30, 6, 3)
    assert shown["distinctKeys"] == 3
    assert shown["skippedByReason"] == {"duplicate_key": 3}
    assert shown["peakLaunchesPerMinute"] == 3
    assert [sample.parameters for sample in found.samples] == [{"key": f"k{n}"} for n in range(3)]
    assert shown["coverage"] == {
        "from": "2026-03-02T12:00:00.000Z",
        "to": "2026-03-02T12:04:50.000Z",
        "firstPosition": "1",
        "lastPosition": "30",
    }


def test_a_throttle_spreads_launches_in_simulated_time() -> None:
    (found,) = simulate([trigger(throttleWindowMs=60_000, throttleCount=2)], minutes(12))

    assert found.launches == 4
    assert found.statuses == Counter(launched=4, throttled=8)
    assert found.wire()["peakLaunchesPerMinute"] == 2


def test_events_over_the_limit_of_their_source_are_judged_when_it_may_go_on() -> None:
    (found,) = simulate([trigger()], minutes(12), THREE)

    # Three at noon, then the source waits a minute from the fourth on; so on from 12:01:30.
    assert [sample.position for sample in found.samples] == [1, 2, 3, 4, 5, 6]
    assert [sample.launched_at - NOON for sample in found.samples] == [
        *(timedelta(seconds=10 * n) for n in range(3)),
        *[timedelta(seconds=90)] * 3,
    ]
    assert (found.launches, found.statuses) == (6, Counter(launched=6, pending=6))


def test_a_long_line_before_a_limited_source_moves_at_its_pace() -> None:
    busy = [stored(n + 1, {}, NOON + timedelta(milliseconds=n)) for n in range(20_000)]
    late = stored(20_001, {}, NOON + timedelta(hours=1), source="another.source")

    (found,) = simulate([trigger()], [*busy, late], THREE)

    assert found.launches == 3 * 60 + 1
    assert found.statuses["pending"] == 20_001 - found.launches


def test_runs_take_as_long_as_is_assumed() -> None:
    draft = trigger(maxConcurrency=1)

    assert [simulate([draft], minutes(13), run_ms=ms)[0].launches for ms in (5_000, 60_000)] == [
        13,
        3,
    ]


def test_timers_ring_when_they_are_due() -> None:
    draft = trigger(debounceMs=15_000, debounceKey=KEY)
    quiet = [*minutes(6), stored(7, {"key": "late"}, NOON + timedelta(hours=1))]

    (found,) = simulate([draft], quiet)

    assert found.launches == 6  # every key comes once in 30 s, and is quiet 15 s later
    assert found.samples[0].launched_at == NOON + timedelta(seconds=15)
    assert found.statuses["pending"] == 1


def test_what_cannot_be_rendered_is_told() -> None:
    draft = trigger(parameterTemplate={"n": "{{ 1 | divided_by: event.payload.n }}"})

    (found,) = simulate([draft], minutes(3))

    assert (found.launches, found.render_failures) == (2, 2)
    assert found.failures[0][0] == "e1"


def test_an_expired_event_is_counted_as_such() -> None:
    late = [stored(1, {}, NOON, occurred_at=NOON - timedelta(seconds=5), ttl_ms=1000)]

    (found,) = simulate([trigger()], late)

    assert (found.matches, found.skipped) == (0, Counter(expired=1))


@pytest.mark.parametrize("status", ["disabled", "shadow"])
def test_a_draft_is_simulated_as_if_it_were_active(status: str) -> None:
    (found,) = simulate([trigger(status=status)], minutes(2))

    assert found.launches == 2


def _read(count: int) -> Iterator[Stored]:
    yield from minutes(count)


def test_processes_change_no_answer() -> None:
    drafts = [
        trigger(f"t{n}", throttleWindowMs=60_000, throttleCount=n + 1, maxConcurrency=n + 1)
        for n in range(3)
    ]

    alone = simulate(drafts, _read(40))
    shared = simulate_in_processes(drafts, partial(_read, 40), processes=2)

    assert [found.wire() for found in shared] == [found.wire() for found in alone]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from("ab")), min_size=1, max_size=30),
    st.sampled_from(
        [
            {},
            {"throttleWindowMs": 30_000, "throttleCount": 2},
            {"maxConcurrency": 2},
            {"debounceMs": 20_000, "debounceKey": KEY},
            {"per": "latest", "groupKey": KEY},
            {"per": "batch", "groupKey": KEY, "batchMaxEvents": 3, "batchTimeoutMs": 30_000},
        ]
    ),
    st.sampled_from([Limits(), THREE, Limits(sources=(SourceLimit("*", 1, 30_000, 10_000),))]),
)
def test_a_simulation_decides_as_the_twin_on_the_same_clock(
    gaps: list[tuple[int, str]], spec: dict[str, Any], limits: Limits
) -> None:
    draft = trigger(**spec)
    events, at = [], NOON
    for n, (gap, key) in enumerate(gaps):
        at += timedelta(seconds=gap)
        events.append(stored(n + 1, {"key": key}, at))

    (found,) = simulate([draft], events, limits, run_ms=45_000)

    world = World(draft, limits=limits)
    for event in events:
        _live_until(world, event.received_at)
        world.twin.store(event)
        world.twin.run_pass()
    _live_until(world, at)
    assert found.launches == len(world.twin.runs)
    held = [h for h in world.twin.tables.held.values() if h.released_pass is None]
    expected = Counter(str(d.status) for d in world.all())
    assert found.statuses == expected + Counter(pending=len(held))


def _live_until(world: World, until: datetime) -> None:
    """Move the clock to every instant at which something is due, up to one."""
    while True:
        ends = [
            (d.updated_at + timedelta(seconds=45), d.run_id)
            for d in world.all()
            if d.status is Status.LAUNCHED
            and d.role == "triggered"
            and d.run_id not in world.twin.tables.ended
        ]
        due_at = world.twin.run_pass().next_due
        instants = [at for at, _ in ends] + ([due_at] if due_at else [])
        at = min(instants, default=None)
        if at is None or at > until:
            world.clock.move(until - world.clock.now())
            return
        world.clock.move(max(at, world.clock.now()) - world.clock.now())
        for ends_at, run_id in ends:
            if ends_at <= world.clock.now() and run_id is not None:
                world.twin._ends.append(RunEnd(run_id, "t", "succeeded", ends_at))
        world.twin.run_pass()
