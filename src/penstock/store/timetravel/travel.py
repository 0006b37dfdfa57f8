"""Answer questions about the past: a state, the difference between two, and a replay step by step.

    snapshot ≤ asOf ──▶ events after it, up to asOf ──▶ fold ──▶ state
                                                         └─ every 1,000 events: a snapshot

It reads, and only reads: nothing it imports can publish or append, which
tests/store/timetravel/test_only_reads.py checks. The ports are `History` and `Snapshots`; the twins
in memory give the same answers as PostgreSQL.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from penstock.base.clock import Clock
from penstock.base.errors import NotFound, QueryInvalid, QueryTooSlow, ReducerFailed
from penstock.envelope.envelope import Stored
from penstock.store.cursor import read_cursor, write_cursor
from penstock.store.query import LIMIT_DEFAULT
from penstock.store.timetravel.boundary import Boundary
from penstock.store.timetravel.diff import Caused, Causes, caused
from penstock.store.timetravel.history import STRETCH, History, Stretch
from penstock.store.timetravel.lens import Lens, as_stored
from penstock.store.timetravel.moment import AsOf, Moment, refuse_future
from penstock.store.timetravel.reducer import Reducer
from penstock.store.timetravel.roster import Roster
from penstock.store.timetravel.snapshot import EVERY, SnapshotKey, Snapshots
from penstock.store.timetravel.state import State, Step, fold, steps

PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class StateAt:
    """A state, and the moment it is of."""

    state: State
    moment: Moment


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed between two moments, each change with its event."""

    changes: list[Caused]
    begins: Moment
    ends: Moment


@dataclass(frozen=True, slots=True)
class Replay:
    """A stretch of history step by step, from the state it starts with."""

    reducer: Reducer
    base: State
    steps: list[Step]
    begins: Moment
    ends: Moment
    next_cursor: str | None  # where to go on, when there is more


@dataclass(frozen=True, slots=True)
class _Way:
    """What is folded, by what, and under which key its snapshots are kept."""

    boundary: Boundary
    reducer: Reducer
    key: SnapshotKey


class TimeTravel:
    """Goes back to any moment of any history of one tenant."""

    def __init__(
        self,
        history: History,
        snapshots: Snapshots,
        roster: Roster,
        *,
        cursor_key: bytes,
        clock: Clock,
        timer: Callable[[], float],
        every: int = EVERY,
        patience_s: float = PATIENCE_S,
        lens: Callable[[], Lens] = as_stored,
    ) -> None:
        self.roster = roster
        self._history = history
        self._snapshots = snapshots
        self._cursor_key = cursor_key
        self._clock = clock
        self._timer = timer
        self._every = every
        self._patience_s = patience_s
        self._lens = lens

    def state(
        self, boundary: Boundary, *, reducer: str | None = None, as_of: AsOf = None
    ) -> StateAt:
        """What the boundary's events up to a moment come to."""
        way = self._way(boundary, self.roster.find(reducer, boundary))
        (moment,) = self._moments(asOf=as_of)
        return StateAt(self._reach(way, moment.position), moment)

    def diff(
        self, boundary: Boundary, *, reducer: str | None = None, begins: AsOf = 0, ends: AsOf = None
    ) -> Difference:
        """What changed from one moment to another, and which event made it so."""
        way = self._way(boundary, self.roster.find(reducer, boundary))
        first, last = self._span(begins, ends)
        before = self._reach(way, first.position)
        state, causes = before, Causes()
        for stretch in self._walk(boundary, after=first.position, upto=last.position):
            for step in steps(way.reducer, state, stretch.events):
                causes.saw(step.event, step.changes)
                state = step.state
        return Difference(caused(before.value, state.value, causes), first, last)

    def replay(
        self,
        boundary: Boundary,
        *,
        reducer: str | None = None,
        begins: AsOf = 0,
        ends: AsOf = None,
        limit: int = LIMIT_DEFAULT,
        cursor: str | None = None,
    ) -> Replay:
        """The events between two moments with what each changed; a cursor goes on from a page."""
        way = self._way(boundary, self.roster.find(reducer, boundary))
        first, last = self._span(begins, ends)
        tenant, mark, key = boundary.tenant_id, _mark(way), self._cursor_key
        after = 0 if cursor is None else read_cursor(cursor, tenant, mark, key=key)
        start = max(first.position, after)
        events = list(islice(self._events(boundary, start, last.position, limit), limit + 1))
        base = self._reach(way, start)
        has_more, events = len(events) > limit, events[:limit]
        taken = list(steps(way.reducer, base, events))
        following = None
        if has_more:
            following = write_cursor(tenant, events[-1].position, mark, key=key)
        return Replay(way.reducer, base, taken, first, last, following)

    def find(self, tenant_id: str, event_id: str) -> Stored:
        """One event; NotFound when the tenant has none by that id."""
        stored = self._history.find(tenant_id, event_id)
        if stored is None:
            raise NotFound(f"expected an event, found none with id {event_id[:128]!r}")
        return stored

    def forget(self, tenant_id: str, boundary: Boundary | None = None) -> int:
        """Drop the snapshots of one boundary, or of a whole tenant; the log stays as it is."""
        return self._snapshots.forget(tenant_id, boundary)

    def extend(self, *, most: int = 20) -> int:
        """Make the snapshots that are due for the boundaries in use; for how many it did."""
        done = 0
        for used in self._snapshots.in_use(most=most):
            reducer = self.roster.by_reference(used.key.reducer.partition(" ")[0])
            boundary = used.key.boundary
            way = None if reducer is None else self._way(boundary, reducer)
            if way is None or way.key != used.key:
                continue
            if self._history.has_grown(boundary, after=used.position, by=self._every):
                # A reducer that raises is its asker's trouble; one that is slow goes on next time.
                with contextlib.suppress(ReducerFailed, QueryTooSlow):
                    self._reach(way, self._history.head().position)
                    done += 1
        return done

    def tidy(self, *, days: int = 30) -> int:
        """Forget the snapshots nobody needs; of how many boundaries."""
        return self._snapshots.forget_unused(days=days)

    def _way(self, boundary: Boundary, reducer: Reducer) -> _Way:
        lens = self._lens()
        key = SnapshotKey(boundary, f"{reducer.reference} {lens.name}".rstrip())
        if lens.name:
            reducer = replace(reducer, reduce=lens.before(reducer.reduce))
        return _Way(boundary, reducer, key)

    def _reach(self, way: _Way, upto: int) -> State:
        """The state at a position, from the nearest snapshot, leaving snapshots on the way."""
        state = self._snapshots.nearest(way.key, upto=upto) or State()
        since = 0
        for stretch in self._walk(way.boundary, after=state.position, upto=upto):
            state = fold(way.reducer, state, stretch.events, upto=stretch.upto)
            since += len(stretch.events)
            if since >= self._every:
                self._snapshots.keep(way.key, state)
                since = 0
        return state

    def _walk(
        self, boundary: Boundary, *, after: int, upto: int, size: int = STRETCH
    ) -> Iterator[Stretch]:
        began = self._timer()
        for stretch in self._history.walk(boundary, after=after, upto=upto, size=size):
            yield stretch
            if self._timer() - began > self._patience_s and stretch.upto < upto:
                raise QueryTooSlow(
                    f"expected to reach position {upto} within {self._patience_s:g} s,"
                    f" found {stretch.upto} reached by then",
                    remedy="Ask again: it goes on from the snapshots made so far. Or narrow it by"
                    " tags, type or time.",
                )

    def _events(self, boundary: Boundary, after: int, upto: int, limit: int) -> Iterator[Stored]:
        for stretch in self._walk(boundary, after=after, upto=upto, size=limit + 1):
            yield from stretch.events

    def _span(self, begins: AsOf, ends: AsOf) -> tuple[Moment, Moment]:
        first, last = self._moments(**{"from": begins, "to": ends})
        if first.position > last.position:
            raise QueryInvalid(
                f"expected from to be no later than to, found positions {first.position} and"
                f" {last.position}",
                parameter="from",
            )
        return first, last

    def _moments(self, **asked: AsOf) -> list[Moment]:
        """The moments that parameters name, looked up with one idea of what is newest."""
        head, now = self._history.head(), self._clock.now()
        found: list[Moment] = []
        for parameter, moment in asked.items():
            if moment is None:
                found.append(head)
                continue
            refuse_future(moment, head=head, now=now, parameter=parameter)
            found.append(self._history.locate(moment))
        return found


def _mark(way: _Way) -> str:
    """What a cursor is bound to beside its tenant."""
    return f"replay {way.boundary.digest} {way.reducer.reference}"
