"""Make small histories, and time travel over them in memory or in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from tests.store.support import KEY, NOON, stored

from penstock.base.clock import FixedClock
from penstock.base.on_postgres import Pool
from penstock.envelope.envelope import JsonObject, JsonValue, Stored
from penstock.store.timetravel.boundary import Boundary, boundary
from penstock.store.timetravel.history import History
from penstock.store.timetravel.in_memory import HistoryInMemory
from penstock.store.timetravel.on_postgres import PostgresHistory, PostgresSnapshots
from penstock.store.timetravel.reducer import BUILT_IN, Reducer
from penstock.store.timetravel.roster import Roster
from penstock.store.timetravel.snapshot import NoSnapshots, Snapshots
from penstock.store.timetravel.travel import TimeTravel

ISSUE = boundary("default", [("issueId", "42")])
LATER = NOON + timedelta(days=30)


def said(position: int, payload: JsonValue, **more: Any) -> Stored:
    """An event about issue 42 at a position."""
    return stored(position, **({"payload": payload, "tags": {"issueId": "42"}} | more))


def told(*payloads: JsonValue) -> list[Stored]:
    """A history of issue 42: one payload after another, from position 1 on."""
    return [said(position, payload) for position, payload in enumerate(payloads, 1)]


def travel_over(
    events: Iterable[Stored],
    *,
    snapshots: Snapshots | None = None,
    reducers: Iterable[Reducer] = (),
    **options: Any,
) -> TimeTravel:
    """Time travel over events in memory, long after they happened."""
    return build(HistoryInMemory(events), snapshots or NoSnapshots(), reducers, **options)


def travel_in(
    reader: Pool, writer: Pool | None, *, reducers: Iterable[Reducer] = (), **options: Any
) -> TimeTravel:
    """Time travel over a database; without a writer no snapshots are kept."""
    kept: Snapshots = NoSnapshots() if writer is None else PostgresSnapshots(reader, writer)
    return build(PostgresHistory(reader), kept, reducers, **options)


def build(
    history: History, snapshots: Snapshots, reducers: Iterable[Reducer], **options: Any
) -> TimeTravel:
    standing: dict[str, Any] = {"cursor_key": KEY, "clock": FixedClock(LATER), "timer": lambda: 0.0}
    return TimeTravel(history, snapshots, Roster([*BUILT_IN, *reducers]), **(standing | options))


def value(travel: TimeTravel, where: Boundary = ISSUE, **asked: Any) -> JsonObject:
    return travel.state(where, **asked).state.value


def ticking(by_s: float) -> Iterator[float]:
    """A timer that moves on every time it is read."""
    now = 0.0
    while True:
        yield now
        now += by_s
