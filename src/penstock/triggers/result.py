"""Say what a pass changed: everything that must be committed together, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from penstock.triggers.delivery import (
    ActOutcome,
    Delivery,
    Held,
    HistoryEntry,
    Launch,
    Pause,
    SourcePause,
    history_of,
)


@dataclass(slots=True)
class TriggerTally:
    """What one pass adds to the counters of a trigger."""

    workflow_slug: str = ""
    filtered: int = 0
    matched: int = 0
    launched: int = 0
    throttled: int = 0
    skipped: int = 0
    failed: int = 0  # attempts, those after which a delivery is dead included
    paused: int = 0
    dead: int = 0
    last_status: str | None = None
    last_error: str | None = None


@dataclass(slots=True)
class SourceTally:
    """What one pass adds to the counters of a source."""

    total: int = 0  # events judged
    throttled: int = 0  # events that had to wait
    dropped: int = 0  # events that an operator took out of the line
    failures: int = 0  # launches that failed for its events
    total_lag_ms: int = 0
    last_lag_ms: int = 0
    max_lag_ms: int = 0
    last_event_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SourceWindow:
    """How many events of a source were let through, and when; the newest last."""

    tenant_id: str
    source: str
    counts: tuple[tuple[datetime, int], ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A launch that failed, as the breaker remembers it."""

    trigger_id: str
    failed_at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class LoopStopped:
    """A loop that the guard has stopped: told once for a trigger and a correlation."""

    event_id: str  # of the incident; derived, so that telling it twice tells it once
    tenant_id: str
    trigger_id: str
    trigger_version: int
    workflow_slug: str
    correlation_id: str
    stopped_event_id: str
    position: int
    depth: int
    launches: int
    limit: str  # depth or launches
    stopped_at: datetime


@dataclass(frozen=True, slots=True)
class PassResult:
    """What a pass changed."""

    number: int
    judged_at: datetime
    deliveries: tuple[Delivery, ...]  # new and changed ones, in order of position and trigger
    created_ids: frozenset[str]  # which of them are new
    launches: tuple[Launch, ...]  # those that were not refused
    refusals: dict[str, str]  # why the others were, by triggering delivery
    released: tuple[int, ...]  # positions of held events that were judged, in that order
    held: tuple[Held, ...]  # new, changed and finished (`retry_state` says which)
    pauses: dict[str, Pause | None]  # by trigger; None: no longer
    source_pauses: dict[tuple[str, str], SourcePause | None]  # by tenant and source
    windows: dict[tuple[str, str], SourceWindow]  # likewise; empty counts: no longer
    failures: dict[str, tuple[Failure, ...]]  # by trigger: all that still count
    triggers: dict[str, TriggerTally]
    sources: dict[tuple[str, str], SourceTally]
    incidents: tuple[LoopStopped, ...]
    acts: tuple[ActOutcome, ...]
    verdicts: int  # (event, trigger) pairs that were looked at
    next_due: datetime | None  # when there is something to do without anything new

    @property
    def is_quiet(self) -> bool:
        """Whether it only counted: were it lost, the next pass would do the same, and no harm."""
        return not (
            self.deliveries or self.launches or self.released or self.held or self.pauses
            or self.source_pauses or self.failures or self.incidents or self.acts
        )  # fmt: skip

    def history(self) -> list[HistoryEntry]:
        """One entry for each delivery that the pass touched."""
        return [history_of(d, self.refusals.get(d.id)) for d in self.deliveries]


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """A run that a trigger launched and that has not ended: for loading a state."""

    trigger_id: str
    run_id: str
    group_key: str | None


@dataclass(frozen=True, slots=True)
class Kept:
    """Everything a state is loaded from; all that passes have kept."""

    deliveries: tuple[Delivery, ...] = ()  # those that wait
    held: tuple[Held, ...] = ()  # those that are scheduled
    pauses: tuple[Pause, ...] = ()
    source_pauses: tuple[SourcePause, ...] = ()
    windows: tuple[SourceWindow, ...] = ()
    failures: tuple[Failure, ...] = ()
    active: tuple[ActiveRun, ...] = ()  # launched, role triggered, not shadow, run not ended
