"""Say how the queue is, in the words that operators of queues know."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from penstock.base.clock import format_instant
from penstock.envelope.envelope import JsonObject


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """What waits, runs, is delayed, and what ended in the last minutes."""

    waiting: int
    active: int
    delayed: int
    completed: int
    failed: int
    oldest_ms: float  # how long the first of the waiting ones has been due
    processing_ms: float | None  # on average, of what ended lately
    waiting_ms: float | None

    def wire(self) -> JsonObject:
        """The queue as the health pages show it."""
        metrics: JsonObject | None = None
        if self.processing_ms is not None and self.waiting_ms is not None:
            metrics = {
                "processingAvgMs": round(self.processing_ms, 3),
                "waitingAvgMs": round(self.waiting_ms, 3),
            }
        return {
            "mode": "queue",
            "counts": {
                "waiting": self.waiting, "active": self.active, "completed": self.completed,
                "failed": self.failed, "delayed": self.delayed, "paused": 0,
            },
            "metrics": metrics,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    """A worker that said it lives."""

    id: int
    name: str
    started_at: datetime
    heartbeat_at: datetime
    active: int

    def wire(self) -> JsonObject:
        return {
            "id": self.id,
            "name": self.name,
            "startedAt": format_instant(self.started_at),
            "heartbeatAt": format_instant(self.heartbeat_at),
            "active": self.active,
        }
