"""Give tests a small world: triggers, events, a clock to move, and runs to end."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.base.clock import FixedClock
from penstock.envelope.envelope import Envelope, Severity, Stored
from penstock.triggers.delivery import Act, Delivery, Launch, LaunchOutcome
from penstock.triggers.in_memory import TriggersInMemory, launch_all
from penstock.triggers.limits import Limits
from penstock.triggers.result import PassResult
from penstock.triggers.trigger import Trigger, TriggerSpec
from penstock.triggers.words import ActKind, Target

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
TYPE = "metastore.record.updated"
SOURCE = "metastore.api"


def trigger(name: str = "t", version: int = 1, tenant_id: str = "default", **spec: Any) -> Trigger:
    """A trigger that wants every record update, unless told otherwise."""
    return Trigger(
        id=name,
        tenant_id=tenant_id,
        workflow_slug=f"{name}-workflow",
        version=version,
        spec=TriggerSpec.model_validate({"name": name, "eventType": TYPE, **spec}),
        created_at=NOON,
        created_by="ada",
        updated_at=NOON,
        updated_by="ada",
    )


def stored(position: int, payload: Any = None, at: datetime = NOON, **fields: Any) -> Stored:
    """An event at a position."""
    said = {"id": f"e{position}", "type": TYPE, "source": SOURCE, "occurred_at": at} | fields
    return Stored(
        position=position,
        envelope=Envelope(payload={} if payload is None else payload, **said),
        received_at=at,
        severity=Severity.INFO,
        severity_rule="default",
        schema_hash=None,
        content_hash=b"",
    )


class World:
    """The twin with a clock in hand."""

    def __init__(
        self,
        *triggers: Trigger,
        limits: Limits | None = None,
        start: Callable[[Launch], LaunchOutcome] = launch_all,
        **options: Any,
    ) -> None:
        self.clock = FixedClock(NOON)
        self.twin = TriggersInMemory(self.clock, limits, start, **options)
        self._numbers = itertools.count(1)
        for each in triggers:
            self.twin.define(each)

    def event(self, payload: Any = None, **fields: Any) -> Stored:
        """Store an event without judging it."""
        kept = stored(len(self.twin.events) + 1, payload, self.clock.now(), **fields)
        self.twin.store(kept)
        return kept

    def judge(self, *payloads: Any, **fields: Any) -> None:
        """Store events and judge all that can be judged now."""
        for payload in payloads:
            self.event(payload, **fields)
        self.twin.catch_up()

    def wait(self, seconds: float) -> None:
        """Let time pass, pass by pass, whenever something is due."""
        end = self.clock.now() + timedelta(seconds=seconds)
        while True:
            due_at = self.twin.run_pass().next_due
            if due_at is None or due_at > end:
                break
            self.clock.move(due_at - self.clock.now())
            self.twin.catch_up()
        self.clock.move(end - self.clock.now())
        self.twin.catch_up()

    def act(self, kind: ActKind, target: Target, name: str, **said: Any) -> PassResult:
        """Do what an operator can do."""
        act = Act(
            f"act-{next(self._numbers)}", kind, target, name, "default", "olga", self.clock.now(),
            **said,
        )  # fmt: skip
        return self.twin.act(act)

    def end(self, *run_ids: str | None) -> None:
        """End runs and go on."""
        for run_id in run_ids:
            assert run_id is not None
            self.twin.end_run(run_id)
        self.twin.catch_up()

    def all(self, name: str | None = None) -> list[Delivery]:
        """The deliveries of a trigger."""
        return [d for d in self.twin.deliveries if name in (None, d.trigger_id)]

    def said(self, name: str | None = None) -> list[str]:
        """Status and reason of each delivery, in order of position."""
        return [" ".join(filter(None, (d.status, d.reason))) for d in self.all(name)]

    @property
    def launched(self) -> list[int]:
        """The positions of triggering events, in the order of their launches."""
        return [launch.events[-1].position for launch in self.twin.runs]
