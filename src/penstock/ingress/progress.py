"""Hold what an ingress needs to begin and what it has done since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.envelope.envelope import JsonObject
from penstock.ingress.lot import Intake
from penstock.ingress.protect import NothingPersonal, Protect
from penstock.registry.registry import Registry


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
        }
