"""Look back over a list: the specification of time travel on PostgreSQL, read in a minute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from penstock.envelope.envelope import Stored
from penstock.store.timetravel.boundary import Boundary
from penstock.store.timetravel.history import STRETCH, Stretch
from penstock.store.timetravel.moment import START, Moment
from penstock.store.timetravel.snapshot import SnapshotKey, Used
from penstock.store.timetravel.state import State


class HistoryInMemory:
    """The same questions as `on_postgres.PostgresHistory`, over events in a list."""

    def __init__(self, events: Iterable[Stored] = ()) -> None:
        self._events = sorted(events, key=lambda stored: stored.position)

    def head(self) -> Moment:
        return _moment(self._events[-1]) if self._events else START

    def locate(self, asked: int | datetime) -> Moment:
        if isinstance(asked, int):
            known = [stored for stored in self._events if stored.position <= asked]
            return Moment(asked, known[-1].received_at if known else None)
        known = [stored for stored in self._events if stored.received_at <= asked]
        return _moment(known[-1]) if known else START

    def walk(
        self, boundary: Boundary, *, after: int, upto: int, size: int = STRETCH
    ) -> Iterator[Stretch]:
        events = [e for e in self._events if after < e.position <= upto and boundary.covers(e)]
        while len(events) >= size:
            taken, events = events[:size], events[size:]
            yield Stretch(taken, taken[-1].position)
        yield Stretch(events, upto)

    def has_grown(self, boundary: Boundary, *, after: int, by: int) -> bool:
        return sum(e.position > after and boundary.covers(e) for e in self._events) >= by

    def find(self, tenant_id: str, event_id: str) -> Stored | None:
        for stored in self._events:
            if (stored.envelope.tenant_id, stored.envelope.id) == (tenant_id, event_id):
                return stored
        return None


class SnapshotsInMemory:
    """The same as `on_postgres.PostgresSnapshots`, in a dictionary; `used` is in order of use."""

    def __init__(self) -> None:
        self.kept: dict[SnapshotKey, dict[int, State]] = {}

    def nearest(self, key: SnapshotKey, *, upto: int) -> State | None:
        reached = [position for position in self.kept.get(key, {}) if position <= upto]
        return self.kept[key][max(reached)] if reached else None

    def keep(self, key: SnapshotKey, state: State) -> None:
        self.kept.setdefault(key, {})[state.position] = state

    def in_use(self, *, most: int) -> Iterable[Used]:
        return [Used(key, max(found)) for key, found in [*self.kept.items()][-most:]]

    def forget(self, tenant_id: str, boundary: Boundary | None = None) -> int:
        gone = [
            key
            for key in self.kept
            if key.tenant_id == tenant_id and boundary in (None, key.boundary)
        ]
        for key in gone:
            del self.kept[key]
        return len(gone)

    def forget_unused(self, *, days: int) -> int:  # noqa: ARG002  nothing here grows old
        return 0


def _moment(stored: Stored) -> Moment:
    return Moment(stored.position, stored.received_at)
