"""One timeline, several ways to run for it: each event is answered for, whatever `per` says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.triggers.evaluating import NOON, World, trigger

KEY = "{{ event.payload.key }}"
# Seconds after noon at which an event of a key arrives; every run takes 30 seconds.
ARRIVALS = [(0, "a"), (1, "a"), (2, "b"), (2, "a"), (40, "a"), (41, "b"), (43, "a"), (100, "b")]
EVENT: dict[str, Any] = {}
ONE_AT_A_TIME = {"maxConcurrency": 1}
DEBOUNCE = {"debounceMs": 10_000, "debounceKey": KEY}
BATCH = {"per": "batch", "groupKey": KEY, "batchMaxEvents": 2, "batchTimeoutMs": 20_000}
LATEST = {"per": "latest", "groupKey": KEY}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            EVENT,
            [(0, [1]), (1, [2]), (2, [3]), (2, [4]), (40, [5]), (41, [6]), (43, [7]), (100, [8])],
        ),
        (
            ONE_AT_A_TIME,
            [(0, [1]), (30, [2]), (60, [3]), (90, [4]), (120, [5]), (150, [6]), (180, [7]),
             (210, [8])],
        ),
        (DEBOUNCE, [(12, [3]), (12, [4]), (51, [6]), (53, [7]), (110, [8])]),
        (BATCH, [(1, [1, 2]), (22, [3]), (22, [4]), (43, [5, 7]), (61, [6]), (120, [8])]),
        (LATEST, [(0, [1]), (2, [3]), (30, [4]), (41, [6]), (60, [7]), (100, [8])]),
    ],
    ids=["event", "one at a time", "debounce", "batch", "latest"],
)  # fmt: skip
def test_every_event_of_the_timeline_is_answered_for(
    spec: dict[str, Any], expected: list[tuple[int, list[int]]]
) -> None:
    world = World(trigger(**spec))
    ended: set[str] = set()
    for second in range(300):
        for at, key in ARRIVALS:
            if at == second:
                world.event({"key": key})
        for run in world.twin.runs:
            if run.launched_at + timedelta(seconds=30) <= world.clock.now():
                if run.run_id not in ended:
                    world.twin.end_run(run.run_id)
                ended.add(run.run_id)
        world.twin.catch_up()
        world.clock.move(timedelta(seconds=1))

    started = [
        ((run.launched_at - NOON) // timedelta(seconds=1), [e.position for e in run.events])
        for run in world.twin.runs
    ]
    assert started == expected
    assert len(world.all()) == len(ARRIVALS)
    assert set(world.said()) <= {"launched", "skipped superseded"}
