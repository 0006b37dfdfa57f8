"""Make up a week of seven days, and live it by a clock that is moved: bursts, limits, operators.

    timeline(seed) ── what happens, and when ──▶ Week ── moves ──▶ a stage: lists, or PostgreSQL

Between two happenings the clock stops wherever something is due: a timer of a trigger, the end of a
run. So a week takes seconds, and every window, pause and backoff has its full length.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol, TypeAlias

import psycopg
from psycopg.conninfo import make_conninfo
from tests.triggers.evaluating import TYPE, stored, trigger
from tests.triggers.on_postgres.support import TableLauncher, prepare_runs
from tests.triggers.weeks import SOURCES, specs

from penstock.base.clock import FixedClock
from penstock.base.on_postgres import Pool
from penstock.triggers.book.on_postgres import TriggerBook
from penstock.triggers.delivery import Act, Launch, Launched, LaunchOutcome, Refused
from penstock.triggers.host.on_postgres import TriggerHost
from penstock.triggers.in_memory import TriggersInMemory
from penstock.triggers.limits import Breaker, Limits, LoopGuard, SourceLimit
from penstock.triggers.trigger import Trigger, TriggerSpec
from penstock.triggers.words import ActKind, Target

MONDAY = datetime(2035, 1, 1, tzinfo=UTC)
SUNDAY = MONDAY + timedelta(days=7)
LIMITS = Limits(
    sources=(SourceLimit(SOURCES[0], 20, 60_000, 90_000),),
    breaker=Breaker(threshold=3),
    loops=LoopGuard(depth_max=4, launches_max=12),
)
Events: TypeAlias = list[dict[str, Any]]
Specs: TypeAlias = dict[str, dict[str, Any]]  # by the trigger's name
_BROKEN = "expected a workflow that works, found a broken one"
_INSERT = """
INSERT INTO workflow_events (position, tenant_id, id, type, source, occurred_at, received_at,
  payload, correlation_id, causation_id, ttl_ms, severity, severity_rule, content_hash, hash)
VALUES (%(position)s, 'default', %(id)s, %(type)s, %(source)s, %(at)s, %(at)s, %(payload)s::jsonb,
  %(correlation_id)s, %(causation_id)s, %(ttl_ms)s, 'info', 'default', '', '')
"""
# pg_catalog is searched first unless the path says where; so ours is found before the built-in one.
_CLOCK = """
CREATE SCHEMA moved;
CREATE TABLE moved.clock (now timestamptz NOT NULL);
INSERT INTO moved.clock VALUES (%s);
CREATE FUNCTION moved.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
  AS 'SELECT now FROM moved.clock'
"""


class Stage(Protocol):
    """Where a week is lived."""

    triggers: list[Trigger]
    is_broken: bool  # whether workflows refuse to start

    def move(self, at: datetime) -> None: ...

    def store(self, events: Events) -> None: ...

    def act(self, act: Act) -> None: ...

    def change(self, number: int, spec: dict[str, Any]) -> None: ...

    def end(self, run_id: str) -> None: ...

    def catch_up(self) -> datetime | None:
        """Judge all that can be judged now; when something is due next."""
        ...

    def started(self) -> list[str]:
        """The runs that were started since it was asked last."""
        ...


class OnLists:
    """The twin, whose clock is moved by hand."""

    def __init__(self, triggers: Sequence[Trigger]) -> None:
        self.clock = FixedClock(MONDAY)
        self.twin = TriggersInMemory(self.clock, LIMITS, self._start, batch=500)
        self.triggers, self.is_broken = list(triggers), False
        self._active: dict[tuple[str, str], str] = {}
        self._new: list[str] = []
        for each in triggers:
            self.twin.define(each)

    def _start(self, launch: Launch) -> LaunchOutcome:
        if self.is_broken:
            return Refused(_BROKEN)
        found = self._active.setdefault(("", launch.run_key), launch.run_id)
        if found != launch.run_id:
            return Launched(found, attached=True)
        self._new.append(found)
        return Launched(found)

    def move(self, at: datetime) -> None:
        self.clock.move(at - self.clock.now())

    def store(self, events: Events) -> None:
        for each in events:
            fields = {k: v for k, v in each.items() if k not in ("position", "payload", "at")}
            self.twin.store(stored(each["position"], each["payload"], each["at"], **fields))

    def act(self, act: Act) -> None:
        self.twin.act(act)

    def change(self, number: int, spec: dict[str, Any]) -> None:
        known = self.triggers[number]
        self.define(number, trigger(known.id, known.version + 1, **spec))

    def define(self, number: int, version: Trigger) -> None:
        self.triggers[number] = version
        self.twin.define(version)

    def end(self, run_id: str) -> None:
        self._active = {key: run for key, run in self._active.items() if run != run_id}
        self.twin.end_run(run_id)

    def catch_up(self) -> datetime | None:
        self.twin.catch_up()
        return self.twin.run_pass().next_due

    def started(self) -> list[str]:
        found, self._new = self._new, []
        return found


class OnPostgres:
    """A host whose database has a clock that is moved, and beside it the twin, pass by pass."""

    def __init__(self, dsn: str, pool: Pool, wanted: Specs) -> None:
        self._launcher, self._dsn = TableLauncher(), dsn
        self._control = psycopg.connect(dsn, autocommit=True)
        prepare_runs(dsn)
        for text in filter(str.strip, _CLOCK.split(";\n")):
            self._control.execute(text.encode(), (MONDAY,) if "%s" in text else None)
        moved = make_conninfo(dsn, options="-c search_path=moved,public,pg_catalog")
        self._host = TriggerHost(moved, self._launcher, LIMITS)
        self._book = TriggerBook(pool)
        create = partial(self._book.create, workflow_slug="w", by="ann")
        made = [create(_spec(each)) for each in wanted.values()]
        self.triggers, self.lists, self._at = made, OnLists(made), MONDAY

    @property
    def is_broken(self) -> bool:
        return self._launcher.is_broken

    @is_broken.setter
    def is_broken(self, value: bool) -> None:
        self._launcher.is_broken = self.lists.is_broken = value

    def close(self) -> None:
        self._host.close()
        self._control.close()

    def move(self, at: datetime) -> None:
        self._at = at
        self._control.execute("UPDATE moved.clock SET now = %s", (at,))
        self.lists.move(at)

    def store(self, events: Events) -> None:
        with self._control.transaction(), self._control.cursor() as cursor:
            rows = [each | {"payload": json.dumps(each["payload"])} for each in events]
            cursor.executemany(_INSERT, rows)
            cursor.execute(
                "UPDATE head SET position = %s, received_at = %s",
                (events[-1]["position"], self._at),
            )
        self.lists.store(events)

    def act(self, act: Act) -> None:
        self._host.act(act)
        self.lists.act(act)

    def change(self, number: int, spec: dict[str, Any]) -> None:
        known = self.triggers[number]
        changed = self._book.change("default", known.id, _spec(spec), by="bob")
        if changed.version != known.version:
            self.triggers[number] = changed
            self.lists.define(number, changed)

    def end(self, run_id: str) -> None:
        with self._control.transaction():
            self._control.execute(
                "WITH done AS (UPDATE test_runs SET active = false WHERE run_id = %s RETURNING *)"
                " INSERT INTO trigger_run_ends (tenant_id, run_id, trigger_id, status, ended_at)"
                " SELECT 'default', run_id, trigger_id, 'succeeded', %s FROM done",
                (run_id, self._at),
            )
        self.lists.end(run_id)

    def catch_up(self) -> datetime | None:
        while True:
            summary = self._host.run_pass()
            if summary.number is None:
                return summary.next_due_at
            assert summary.judged_at == self._at, "the clock was not moved"
            self.lists.twin.run_pass()

    def started(self) -> list[str]:
        return self.lists.started()


def _spec(said: dict[str, Any]) -> TriggerSpec:
    return TriggerSpec.model_validate({"name": "made up", "eventType": TYPE} | said)


@dataclass(frozen=True, slots=True, order=True)
class Happening:
    """Something at an instant."""

    at: datetime
    order: int
    what: str
    size: int = 0


class Week:
    """Seven days on a stage, moved by one seed."""

    def __init__(self, seed: int, events: int, stage: Callable[[Specs], Stage]) -> None:
        self.rng = random.Random(seed)
        made = specs(self.rng)
        self.stage = stage(made)
        self._numbers = itertools.count()
        self._stored = 0
        self._ends: list[tuple[datetime, str]] = []
        self._timeline = self._plan(events)

    def live(self) -> None:
        """From Monday to Sunday; the clock stops wherever something happens or is due."""
        due: datetime | None = None
        while True:
            nexts = [self._timeline[0].at] if self._timeline else []
            nexts += [self._ends[0][0]] if self._ends else []
            nexts += [due] if due is not None else []
            at = min(nexts, default=SUNDAY)
            if at >= SUNDAY:
                return
            self._step(at)
            due = self.stage.catch_up()
            for run_id in self.stage.started():
                heapq.heappush(self._ends, (at + _length(run_id), run_id))

    def _step(self, at: datetime) -> None:
        self.stage.move(at)
        while self._ends and self._ends[0][0] <= at:
            self.stage.end(heapq.heappop(self._ends)[1])
        while self._timeline and self._timeline[0].at <= at:
            self._happen(heapq.heappop(self._timeline))

    def _happen(self, it: Happening) -> None:
        if it.what == "events":
            self.stage.store([self._event(it.at) for _ in range(it.size)])
        elif it.what == "breaks":
            self.stage.is_broken = True
        elif it.what == "mended":
            self.stage.is_broken = False
        elif it.what == "changes":
            chosen = self.rng.choice(list(specs(self.rng).values()))
            self.stage.change(self.rng.randrange(len(self.stage.triggers)), chosen)
        else:
            self.stage.act(self._act(it.at))

    def _plan(self, events: int) -> list[Happening]:
        """Bursts by day and trickles by night, outages, operators, and a change now and then."""
        rng, plan, left = self.rng, list[Happening](), events
        while left > 0:
            size = min(left, rng.choice([1, 1, 1, 2, 5, 40]))
            plan.append(self._at(rng, "events", size))
            left -= size
        for _ in range(6):
            broken = self._at(rng, "breaks")
            mended = min(SUNDAY, broken.at + timedelta(minutes=rng.randint(5, 120)))
            plan += [broken, Happening(mended, next(self._numbers), "mended")]
        plan += [self._at(rng, "act") for _ in range(60)]
        plan += [self._at(rng, "changes") for _ in range(6)]
        heapq.heapify(plan)
        return plan

    def _at(self, rng: random.Random, what: str, size: int = 0) -> Happening:
        hour = rng.choice([*range(24), *range(8, 18), *range(8, 18)])
        at = MONDAY + timedelta(
            days=rng.randrange(7), hours=hour, milliseconds=rng.randrange(3_600_000)
        )
        return Happening(at, next(self._numbers), what, size)

    def _event(self, at: datetime) -> dict[str, Any]:
        rng = self.rng
        self._stored += 1
        n = self._stored
        return {
            "position": n, "id": f"e{n}", "at": at, "source": rng.choice(SOURCES),
            "type": rng.choice([TYPE, TYPE, TYPE, "metastore.record.created"]),
            "payload": {
                "key": rng.choice("abc"), "once": rng.choice(["", "x", f"o{n // 3}"]),
                "n": rng.randint(0, 5), "by": rng.choice([0, 1, 2]),
            },
            "correlation_id": rng.choice([None, f"c{n // 40}"]),
            "causation_id": f"e{rng.randint(max(1, n - 5), n - 1)}" if n > 1 and rng.random() < 0.3
            else None,
            "ttl_ms": rng.choice([None, None, None, 20_000]),
        }  # fmt: skip

    def _act(self, at: datetime) -> Act:
        rng, name = self.rng, self.rng.choice(self.stage.triggers).id
        kind, target, aim = rng.choice(
            [
                (ActKind.PAUSE, Target.TRIGGER, name),
                (ActKind.RESUME, Target.TRIGGER, name),
                (ActKind.SKIP, Target.TRIGGER, name),
                (ActKind.PAUSE, Target.SOURCE, rng.choice(SOURCES)),
                (ActKind.RESUME, Target.SOURCE, rng.choice(SOURCES)),
                (ActKind.FORCE, Target.EVENT, f"e{self._stored}"),
                (ActKind.CANCEL, Target.EVENT, f"e{self._stored}"),
            ]
        )
        said: dict[str, Any] = {}
        if kind is ActKind.PAUSE:
            said = {"until": rng.choice([None, *[at + timedelta(hours=h) for h in (1, 3, 9)]])}
        elif kind is ActKind.RESUME:
            said = {"skip": rng.random() < 0.2}
        number = next(self._numbers)
        return Act(f"act-{number}", kind, target, aim, "default", "olga", at, **said)


def _length(run_id: str) -> timedelta:
    """How long a run takes: a minute to an hour, the same for the same run."""
    return timedelta(seconds=60 + hashlib.sha256(run_id.encode()).digest()[0] * 14)
