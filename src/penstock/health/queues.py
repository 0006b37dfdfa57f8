"""Show everything that waits as queues: what waits, runs, is done, failed, comes later, is paused.

event          messages that were accepted and are not settled
eventTrigger   stored events on their way past the triggers
workflow       steps of runs
schedule       slots of schedules
outbox         events that committed with a change and are not in the log yet
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from penstock.envelope.envelope import JsonObject
from penstock.health.activity.seen import Activity
from penstock.health.snapshot import Facts, ingress_figure, scheduler_figure
from penstock.workflows.queue.job import QUEUE

TRIGGER_QUEUE = "apphub_event_trigger_queue"


@dataclass(frozen=True, slots=True)
class Counts:
    """What is in a queue, by state."""

    waiting: int = 0
    active: int = 0
    completed: int = 0
    failed: int = 0
    delayed: int = 0
    paused: int = 0

    def wire(self) -> JsonObject:
        return dict(self.items())

    def items(self) -> list[tuple[str, int]]:
        """Every state and how many are in it."""
        return [
            ("waiting", self.waiting), ("active", self.active), ("completed", self.completed),
            ("failed", self.failed), ("delayed", self.delayed), ("paused", self.paused),
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue at one moment; how long things take is told on average, of the last minutes."""

    key: str
    label: str
    name: str
    mode: Literal["inline", "queue", "disabled"]
    counts: Counts
    processing_ms: float | None = None  # None: nobody measures it, or nothing happened
    waiting_ms: float | None = None

    def wire(self, *, counts: bool = True) -> JsonObject:
        """The queue as /admin/event-health shows it."""
        metrics: JsonObject | None = None
        if self.processing_ms is not None or self.waiting_ms is not None:
            metrics = {
                "processingAvgMs": _rounded(self.processing_ms),
                "waitingAvgMs": _rounded(self.waiting_ms),
            }
        return {
            "mode": self.mode,
            "counts": self.counts.wire() if counts else None,
            "metrics": metrics,
        }

    def named_wire(self) -> JsonObject:
        """The queue as /admin/queue-health shows it."""
        about: JsonObject = {"key": self.key, "label": self.label, "queueName": self.name}
        return about | self.wire()


def every_queue(facts: Facts, ingress_name: str) -> list[Queue]:
    """All of them, in the order in which an event meets them."""
    found = [ingress_queue(facts, ingress_name), trigger_queue(facts)]
    activity = facts.activity
    if activity is None:
        return found
    return [*found, _workflow(activity), _schedule(facts, activity), _outbox(activity)]


def ingress_queue(facts: Facts, name: str = "") -> Queue:
    """Messages on their way into the log."""
    ledger = facts.ledger
    oldest_ms = facts.depth.oldest_ms if facts.depth is not None else None
    waited = 0 if oldest_ms is None else max(0, _ms(facts.at) - oldest_ms)
    return Queue(
        "event", "Event ingress", name, "inline" if facts.mode == "inline" else "queue",
        Counts(
            waiting=ledger.in_flight,
            completed=ledger.stored + ledger.duplicates,
            failed=ledger.dead_lettered,
        ),
        processing_ms=ingress_figure(facts, "lastBatchMs"),
        waiting_ms=waited,
    )  # fmt: skip


def trigger_queue(facts: Facts) -> Queue:
    """Events on their way past the triggers: nothing leaves this queue unjudged."""
    activity = facts.activity
    if activity is None:
        return Queue("eventTrigger", "Event triggers", TRIGGER_QUEUE, "disabled", Counts())
    waiting = activity.waiting.values()
    paused = sum(each.paused for each in waiting)
    return Queue(
        "eventTrigger", "Event triggers", TRIGGER_QUEUE,
        "inline" if facts.mode == "inline" else "queue",
        Counts(
            waiting=activity.progress.waiting,
            completed=sum(source.total for source in activity.sources),
            failed=sum(trigger.dead for trigger in activity.triggers),
            delayed=activity.events[0].total + sum(each.total for each in waiting) - paused,
            paused=paused,
        ),
        waiting_ms=activity.judging_wait_ms,
    )  # fmt: skip


def _workflow(activity: Activity) -> Queue:
    jobs = activity.jobs
    counts = Counts(jobs.waiting, jobs.active, jobs.completed, jobs.failed, jobs.delayed)
    return Queue(
        "workflow", "Workflow steps", QUEUE, "queue", counts,
        processing_ms=jobs.processing_ms, waiting_ms=jobs.waiting_ms,
    )  # fmt: skip


def _schedule(facts: Facts, activity: Activity) -> Queue:
    schedules = activity.schedules
    counts = Counts(
        waiting=schedules.due,
        completed=int(scheduler_figure(facts, "runsCreated")),
        failed=schedules.failing,
        delayed=schedules.ahead,
        paused=schedules.off,
    )
    return Queue(
        "schedule", "Schedules", "workflow_schedules", "queue", counts,
        waiting_ms=schedules.late_ms,
    )  # fmt: skip


def _outbox(activity: Activity) -> Queue:
    outbox = activity.outbox
    return Queue(
        "outbox", "Event outbox", "event_outbox", "queue",
        Counts(waiting=outbox.waiting, failed=outbox.refused), waiting_ms=outbox.oldest_ms,
    )  # fmt: skip


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
