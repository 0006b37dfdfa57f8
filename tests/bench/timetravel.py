"""Measure how a state of long ago comes back: from a snapshot, and by replaying everything.

One boundary of 100,000 events, published through the door. Both ways answer the same questions, in
the same process, on the same database, one after the other; every answer is compared.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from penstock.base.settings import Settings
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject
from penstock.house import House, open_house
from penstock.ingress.door import Item
from penstock.ingress.verdict import Via
from penstock.store.timetravel.boundary import boundary
from penstock.store.timetravel.on_postgres import PostgresHistory
from penstock.store.timetravel.snapshot import NoSnapshots
from penstock.store.timetravel.travel import StateAt, TimeTravel

RECORD = boundary("default", [("recordId", "r1")])
_BATCH = 1_000
_ASKED = 25
_REPLAYED = 3


def measure(folder: Path, count: int = 100_000) -> dict[str, float]:
    """Milliseconds of a full replay and of a state from a snapshot, and their ratio."""
    house = open_house(Settings(data_dir=folder / "data", events_mode="inline"))
    try:
        publish_s = _timed(lambda: _publish(house, count))
        head = house.reader.head()
        replay = TimeTravel(
            PostgresHistory(house.readers), NoSnapshots(), house.time_travel.roster,
            cursor_key=b"unused", clock=house.clock, timer=time.monotonic, patience_s=600,
        )  # fmt: skip
        first_s = _timed(lambda: house.time_travel.state(RECORD))
        full = [_timed(lambda: replay.state(RECORD)) for _ in range(_REPLAYED)]
        warm = _ask(house.time_travel, head)
        _compare(replay, house.time_travel, head)
    finally:
        house.close()
    replay_ms, state_ms = statistics.median(full) * 1e3, statistics.median(warm) * 1e3
    return {
        "events": count,
        "publish_per_s": round(count / publish_s),
        "first_state_ms": round(first_s * 1e3),
        "full_replay_ms": round(replay_ms),
        "full_replay_events_per_s": round(count / replay_ms * 1e3),
        "snapshot_state_ms": round(state_ms, 2),
        "snapshot_state_max_ms": round(max(warm) * 1e3, 2),
        "ratio_to_full_replay": round(replay_ms / state_ms, 1),
    }


def _ask(travel: TimeTravel, head: int) -> list[float]:
    """Seconds for the newest state and for moments of the newest tenth of the history."""
    rng = random.Random(7)
    moments = [head, *(rng.randrange(head * 9 // 10, head) for _ in range(_ASKED - 1))]
    return [_timed(lambda at=at: travel.state(RECORD, as_of=at)) for at in moments]


def _compare(replay: TimeTravel, travel: TimeTravel, head: int) -> None:
    for moment in (head, head - 777):
        whole: StateAt = replay.state(RECORD, as_of=moment)
        assert whole == travel.state(RECORD, as_of=moment), "a snapshot changed an answer"


def _publish(house: House, count: int) -> None:
    rng = random.Random(1)
    for start in range(0, count, _BATCH):
        items = [_item(number, rng) for number in range(start, min(count, start + _BATCH))]
        outcomes = house.door.publish(items, tenant_id="default", via=Via.IMPORT)
        assert all(outcome.status == "accepted" for outcome in outcomes)


def _item(number: int, rng: random.Random) -> Item:
    event: JsonObject = {
        "type": "metastore.record.updated",
        "source": "metastore.api",
        "occurredAt": "2026-03-01T10:30:00.000Z",
        "payload": {
            "namespace": "flags",
            "key": "record-1",
            "version": number,
            "record": {f"field{rng.randrange(60)}": rng.random(), "note": "x" * rng.randrange(80)},
        },
        "tags": {"recordId": "r1", "batch": f"b{number % 100}"},
    }
    return Item(raw=encode(event), tree=event)


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
