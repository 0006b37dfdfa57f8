"""Make up a week: triggers of every kind, bursts, pauses, failures, operators, two versions."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

from tests.triggers.evaluating import SOURCE, TYPE, World, trigger

from penstock.triggers.delivery import Launch, Launched, LaunchOutcome, Refused
from penstock.triggers.limits import Breaker, Limits, LoopGuard, SourceLimit
from penstock.triggers.trigger import Trigger
from penstock.triggers.words import ActKind, Target

KEY = "{{ event.payload.key }}"
BAD = "{{ 6 | divided_by: event.payload.by }}"  # cannot be rendered for one event in three
LIMITS = Limits(
    sources=(SourceLimit(SOURCE, 12, 60_000, 45_000),),
    breaker=Breaker(threshold=3, window_ms=300_000, pause_ms=120_000),
    loops=LoopGuard(depth_max=3, launches_max=8),
)
SOURCES = (SOURCE, "metastore.worker")
IDS = ("event", "debounce", "batch", "latest", "shadow", "glob")


def specs(rng: random.Random) -> dict[str, dict[str, Any]]:
    """A spec for each kind of trigger, with random limits."""
    found: dict[str, dict[str, Any]] = {
        "event": {},
        "debounce": {"debounceMs": rng.choice([5_000, 60_000]), "debounceKey": KEY},
        "batch": {
            "per": "batch", "groupKey": KEY, "batchMaxEvents": rng.randint(1, 4),
            "batchTimeoutMs": 40_000,
        },
        "latest": {"per": "latest", "groupKey": KEY},
        "shadow": {"status": "shadow"},
        "glob": {"eventType": "metastore.**", "eventSource": rng.choice([None, SOURCE])},
    }  # fmt: skip
    for spec in found.values():
        if rng.random() < 0.5:
            spec |= {"throttleWindowMs": 60_000, "throttleCount": rng.randint(1, 4)}
        if rng.random() < 0.4:
            spec["maxConcurrency"] = rng.randint(1, 3)
        if rng.random() < 0.4:
            spec["idempotencyKeyExpression"] = rng.choice(["{{ event.payload.once }}"] * 3 + [BAD])
        if rng.random() < 0.3:
            spec["runKeyTemplate"] = rng.choice([KEY, KEY, BAD])
        if rng.random() < 0.3:
            spec["parameterTemplate"] = {"n": BAD}
        if "groupKey" in spec and rng.random() < 0.2:
            spec["groupKey"] = BAD
        if rng.random() < 0.5:
            spec["predicates"] = [
                {"type": "jsonPath", "path": "$.payload.n", "operator": "gt", "value": 1}
            ]
        spec["maxAttempts"] = rng.randint(1, 4)
    return found


class Week:
    """A world and the chance that moves it."""

    def __init__(self, seed: int, *, reloads: bool = False, only: str | None = None) -> None:
        self.rng = random.Random(seed)
        self.reloads = reloads
        self._outcomes = random.Random(seed + 1)
        self.versions = dict.fromkeys(IDS, 1)
        made = specs(self.rng)
        chosen = [trigger(name, **made[name]) for name in IDS if only in (None, name)]
        self.world = World(*chosen, limits=LIMITS, start=self.start, due_limit=5, batch=7)
        self.only = only

    def start(self, launch: Launch) -> LaunchOutcome:
        """Refuse now and then; attach when an active run has the key."""
        chance = random.Random(f"{launch.delivery_id} {launch.run_id}").random()
        if chance < 0.25:
            return Refused("workflow disabled")
        key = (launch.workflow_slug, launch.run_key)
        for run in self.world.twin.runs:
            if (run.workflow_slug, run.run_key) == key and run.run_id in self.active:
                return Launched(run.run_id, attached=True)
        return Launched(launch.run_id)

    @property
    def active(self) -> set[str]:
        """Runs that have been started and have not ended."""
        ended = self.world.twin.tables.ended | {e.run_id for e in self.world.twin._ends}
        return {d.run_id for d in self.world.all() if d.role == "triggered" and d.run_id} - ended

    def step(self) -> None:
        """One thing that may happen, and a pass."""
        rng, twin = self.rng, self.world.twin
        what = rng.random()
        if what < 0.5:
            for _ in range(rng.choice([1, 1, 2, 9])):
                self._event()
        elif what < 0.65:
            self._act()
        elif what < 0.8:
            runs = sorted(self.active)
            for run_id in rng.sample(runs, min(len(runs), rng.randint(0, 3))):
                twin.end_run(run_id)
        elif what < 0.83:
            self._new_version()
        seconds = rng.choice([0, 0, 1, 10, 30, 61, 600])
        self.world.clock.move(timedelta(seconds=seconds))
        if self.reloads:
            twin.reload()
        twin.run_pass()

    def drain(self) -> None:
        """Let everything go, and wait until nothing waits."""
        self.world.twin.limits = Limits(loops=LIMITS.loops, breaker=Breaker(threshold=10_000))
        for name in IDS:
            self.world.act(ActKind.RESUME, Target.TRIGGER, name)
        for source in SOURCES:
            self.world.act(ActKind.RESUME, Target.SOURCE, source)
        for _ in range(200):
            for run_id in sorted(self.active):
                self.world.twin.end_run(run_id)
            self.world.clock.move(timedelta(minutes=20))
            self.world.twin.catch_up()
            if not any(d.is_waiting for d in self.world.all()):
                return

    def _event(self) -> None:
        rng = self.rng
        count = len(self.world.twin.events)
        cause = f"e{rng.randint(1, count)}" if count and rng.random() < 0.3 else None
        self.world.event(
            {"key": rng.choice("abc"), "once": rng.choice(["", "x", f"o{count // 3}"]),
             "n": rng.randint(0, 5), "by": rng.choice([0, 1, 2])},
            type=rng.choice([TYPE, TYPE, TYPE, "metastore.record.created"]),
            source=rng.choice(SOURCES),
            causation_id=cause,
            correlation_id=rng.choice([None, f"c{count // 40}"]),
            ttl_ms=rng.choice([None, None, None, 20_000]),
        )  # fmt: skip

    def _act(self) -> None:
        rng, waiting = self.rng, [d.id for d in self.world.all() if d.is_waiting]
        kind, target, name = rng.choice(
            [
                (ActKind.PAUSE, Target.TRIGGER, rng.choice(IDS)),
                (ActKind.RESUME, Target.TRIGGER, rng.choice(IDS)),
                (ActKind.SKIP, Target.TRIGGER, rng.choice(IDS)),
                (ActKind.PAUSE, Target.SOURCE, rng.choice(SOURCES)),
                (ActKind.RESUME, Target.SOURCE, rng.choice(SOURCES)),
                (ActKind.CANCEL, Target.DELIVERY, rng.choice([*waiting, "none"])),
                (ActKind.FORCE, Target.DELIVERY, rng.choice([*waiting, "none"])),
                (ActKind.FORCE, Target.EVENT, f"e{len(self.world.twin.events)}"),
                (ActKind.CANCEL, Target.EVENT, f"e{len(self.world.twin.events)}"),
            ]
        )
        until = self.world.clock.now() + timedelta(seconds=rng.choice([30, 300]))
        said: dict[str, Any] = {"skip": rng.random() < 0.2} if kind is ActKind.RESUME else {}
        if kind is ActKind.PAUSE:
            said = {"until": rng.choice([None, until])}
        self.world.act(kind, target, name, **said)

    def _new_version(self) -> None:
        name = self.rng.choice(IDS)
        spec = specs(self.rng)[self.rng.choice([name, name, "event"])]
        if self.rng.random() < 0.2:
            spec["status"] = self.rng.choice(["disabled", "shadow", "active"])
        if name not in self.world.twin._in_force:
            return
        self.versions[name] += 1
        self.world.twin.define(self._version(name, spec))

    def _version(self, name: str, spec: dict[str, Any]) -> Trigger:
        return trigger(name, self.versions[name], **spec)
