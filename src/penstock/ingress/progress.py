"""Hold what an ingress needs to begin and what it has done since.

A progress only grows while its process lives, the counts of its batches by duration included:
metrics are told from it, and a figure that fell would be taken for a new start.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from penstock.envelope.envelope import JsonObject
from penstock.ingress.lot import Intake
from penstock.ingress.protect import NothingPersonal, Protect
from penstock.registry.registry import Registry

BATCH_BOUNDS_S: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


@dataclass(frozen=True, slots=True)
class Plan:
    """What executors need, picklable: how to reach the store, and which registry to judge by."""

    open_intake: Callable[[], Intake]
    load_registry: Callable[[], Registry]
    revision: int
    epoch: int
    open_protect: Callable[[], Protect] = NothingPersonal

    @property
    def opens(self) -> tuple[object, object]:
        """What the plan opens: values that are equal when they lead to the same place."""
        return self.open_intake, self.open_protect


@dataclass(slots=True)
class Progress:
    """What the ingress has done since it started."""

    batches: int = 0
    messages: int = 0
    stored: int = 0
    duplicates: int = 0
    dead: int = 0
    busy_ms: float = 0.0
    last_batch_ms: float = 0.0
    last_batch_messages: int = 0
    checkpoint_resets: int = 0
    took: list[int] = field(default_factory=lambda: [0] * (len(BATCH_BOUNDS_S) + 1))

    def batch_took(self, milliseconds: float) -> None:
        """Count a batch by how long it took: up to each bound, or beyond the last."""
        self.batches += 1
        self.busy_ms += milliseconds
        self.last_batch_ms = milliseconds
        self.took[bisect_left(BATCH_BOUNDS_S, milliseconds / 1000)] += 1

    def as_json(self) -> JsonObject:
        """The report that health and metrics read."""
        return {
            "batches": self.batches,
            "messages": self.messages,
            "stored": self.stored,
            "duplicates": self.duplicates,
            "dead": self.dead,
            "eventsPerSecond": round(self.messages / self.busy_ms * 1000, 1) if self.busy_ms else 0,
            "lastBatchMs": round(self.last_batch_ms, 1),
            "lastBatchMessages": self.last_batch_messages,
            "checkpointResets": self.checkpoint_resets,
            "batchSeconds": {
                "bounds": list(BATCH_BOUNDS_S),
                "counts": list(self.took),
                "sum": round(self.busy_ms / 1000, 6),
            },
        }
