"""Name what becomes of an event at a trigger: the delivery, its states, and what a pass changes.

    pending ──▶ matched (shadow) · launched · skipped · dead
       │  ▲         ▲
       ▼  └─────────┤
    throttled · failed (waits for another attempt)

A delivery is one (trigger, event). It waits in `pending`, `throttled` or `failed`, and ends in one
of the others. Events that a trigger's predicates refuse at first sight have none: that verdict
follows from the version and the event alone, and is worked out again when somebody asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from penstock.envelope.envelope import JsonObject, JsonValue, Stored
from penstock.triggers.trigger import Trigger
from penstock.triggers.words import (
    FORCED_AT,
    HOLDING,
    WAITING,
    ActKind,
    Reason,
    RetryState,
    Role,
    Stage,
    Status,
    Target,
)

__all__ = [
    "HOLDING",
    "WAITING",
    "Act",
    "ActKind",
    "ActOutcome",
    "Delivery",
    "Held",
    "HistoryEntry",
    "Launch",
    "LaunchOutcome",
    "Launched",
    "Pause",
    "Reason",
    "Refused",
    "RetryState",
    "Role",
    "RunEnd",
    "SourcePause",
    "Stage",
    "Status",
    "Target",
    "history_of",
]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event at one trigger, as the newest pass that touched it left it."""

    id: str
    tenant_id: str
    trigger_id: str
    trigger_version: int  # the version that judged it last
    workflow_slug: str
    event_id: str
    event_position: int
    event_type: str
    event_source: str
    correlation_id: str | None
    status: Status
    stage: Stage
    reason: Reason | None
    created_at: datetime
    updated_at: datetime  # judged_at of `last_pass`
    first_pass: int
    last_pass: int
    ticket: int  # its place in line: its position, or that of the one it superseded
    shadow: bool = False
    role: Role | None = None
    attempts: int = 0  # launches tried
    last_error: str | None = None
    run_id: str | None = None
    run_key: str | None = None
    parameters: JsonValue = None
    dedupe_key: str | None = None
    group_key: str | None = None
    group_id: str | None = None  # of its batch; each batch of a key has its own
    next_attempt_at: datetime | None = None  # None while it waits for something without a time
    throttled_until: datetime | None = None
    retry_state: RetryState = RetryState.PENDING
    retry_attempts: int = 0
    retry_metadata: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def is_waiting(self) -> bool:
        """Whether it is to be judged again."""
        return self.status in WAITING

    @property
    def holds_key(self) -> bool:
        """Whether it keeps later deliveries of its idempotency key from launching."""
        return self.dedupe_key is not None and self.status in HOLDING


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """What one pass made of a delivery; there is one at most for each pass."""

    delivery_id: str
    pass_number: int
    judged_at: datetime
    trigger_version: int
    attempt: int
    status: Status
    stage: Stage
    reason: Reason | None
    detail: JsonObject


def history_of(delivery: Delivery, refusal: str | None = None) -> HistoryEntry:
    """The entry that the pass which made this delivery leaves behind.

    A refused launch is told even when the delivery came to something else later in the pass:
    whether a run could start is what no replay can know by itself.
    """
    said: dict[str, JsonValue] = {
        "error": delivery.last_error if delivery.status in (Status.FAILED, Status.DEAD) else None,
        "refused": refusal,
        "runId": delivery.run_id,
        "role": delivery.role and str(delivery.role),
        "dedupeKey": delivery.dedupe_key,
        "groupKey": delivery.group_key,
        **{k: v for k, v in delivery.retry_metadata.items() if k.endswith(("By", "At"))},
    }
    return HistoryEntry(
        delivery.id,
        delivery.last_pass,
        delivery.updated_at,
        delivery.trigger_version,
        delivery.attempts,
        delivery.status,
        delivery.stage,
        delivery.reason,
        {name: value for name, value in said.items() if value is not None},
    )


@dataclass(frozen=True, slots=True)
class Held:
    """An event that no trigger has seen yet, because its source must wait."""

    position: int
    event_id: str
    tenant_id: str
    source: str
    held_pass: int
    held_at: datetime
    reason: str  # rate_limit, or what the operator said
    next_attempt_at: datetime | None
    attempts: int = 0
    retry_state: RetryState = RetryState.SCHEDULED  # completed: judged; cancelled: never judged
    released_pass: int | None = None
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def is_forced(self) -> bool:
        """Whether an operator wants it judged by the next pass, past the pause of its source."""
        return FORCED_AT in self.metadata and self.retry_state is RetryState.SCHEDULED


@dataclass(frozen=True, slots=True)
class Pause:
    """A trigger that must wait: until an instant, or until somebody resumes it.

    An automatic one whose time has passed stays until a launch succeeds: the trigger is half-open,
    and the next launch is the probe.
    """

    trigger_id: str
    paused_at: datetime
    until: datetime | None
    reason: str
    failures: int = 0
    by: str | None = None  # None: the breaker did it

    def is_open(self, at: datetime) -> bool:
        """Whether launches are held back at an instant."""
        return self.until is None or self.until > at


@dataclass(frozen=True, slots=True)
class SourcePause:
    """A source whose events wait: until an instant, or until somebody resumes it."""

    tenant_id: str
    source: str
    paused_at: datetime
    until: datetime | None
    reason: str
    details: Mapping[str, JsonValue] = field(default_factory=dict)
    by: str | None = None  # None: the rate limit did it

    def is_open(self, at: datetime) -> bool:
        """Whether events of the source wait at an instant."""
        return self.until is None or self.until > at


@dataclass(frozen=True, slots=True)
class Act:
    """What an operator wants done, carried out by a pass."""

    id: str
    kind: ActKind
    target: Target
    target_id: str  # a trigger's or delivery's id, a source's name, an event's id
    tenant_id: str
    by: str
    at: datetime
    reason: str | None = None
    until: datetime | None = None  # of a pause
    skip: bool = False  # of a resume


@dataclass(frozen=True, slots=True)
class ActOutcome:
    """What became of an act; one that found nothing to act on is not done."""

    act_id: str
    is_done: bool
    detail: str


@dataclass(frozen=True, slots=True)
class RunEnd:
    """A run that a trigger launched has ended."""

    run_id: str
    trigger_id: str
    status: str  # succeeded, failed or canceled
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class Launch:
    """A run to start, with all that the workflow room needs for it."""

    run_id: str
    tenant_id: str
    workflow_slug: str
    trigger: Trigger
    delivery_id: str  # the one whose role is triggered
    delivery_ids: tuple[str, ...]  # all of them, in order of position
    events: tuple[Stored, ...]  # likewise; the last one is the triggering event
    parameters: JsonValue
    run_key: str
    dedupe_key: str | None
    correlation_id: str | None  # of the triggering event
    causation_id: str  # the triggering event's id
    depth: int  # how many causes the triggering event has in the log
    launched_at: datetime
    partition_key: str | None = None


@dataclass(frozen=True, slots=True)
class Launched:
    """The run exists; `attached` when an active one of the same key was found."""

    run_id: str
    attached: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """The run could not be started, and why."""

    detail: str


LaunchOutcome: TypeAlias = Launched | Refused
