"""Say what a pass is given: its number, one reading of the clock, and everything to be judged.

    PassInputs   recorded, so that the pass can be run again
    Past         what earlier passes left behind and memory cannot hold; asked by key
    Wants        what a pass is likely to ask of the past, so that a host can fetch it at once

The past is as it was before the pass; what the pass itself changes it keeps in mind. Whatever was
not fetched beforehand must still be answered: wants are for speed, never for truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol

from penstock.envelope.envelope import Stored
from penstock.triggers.delivery import Act, RunEnd
from penstock.triggers.limits import Limits
from penstock.triggers.roster import Roster
from penstock.triggers.sight import Sights

DUE_LIMIT: Final = 500
_LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class PassInputs:
    """All that a pass decides on, beside the state that earlier passes left."""

    number: int
    judged_at: datetime  # one reading of the database clock, never before the last one
    roster: Roster  # the versions in force
    limits: Limits = _LIMITS
    acts: Sequence[Act] = ()
    run_ends: Sequence[RunEnd] = ()
    events: Sequence[Stored] = ()  # the next ones after the cursor, in order
    due_limit: int = DUE_LIMIT  # for each trigger, and for held events; 0: only acts and run ends
    # Replays of a record know which events were let through, and in which order.
    admitted: Sequence[Stored] | None = None
    sights: Sights = field(default_factory=Sights, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Holder:
    """The delivery that holds an idempotency key, and the run it has started, if any."""

    delivery_id: str
    run_id: str | None


class Past(Protocol):
    """What was there before the pass."""

    def event_at(self, position: int) -> Stored | None:
        """The event of an earlier position; None when it has left the log."""
        ...

    def holder_of(self, trigger_id: str, key: str, *, shadow: bool) -> Holder | None:
        """The delivery of the trigger that holds the key (`Delivery.holds_key`)."""
        ...

    def launches_in(self, trigger_id: str, correlation_id: str, *, shadow: bool) -> int:
        """How many deliveries of the trigger are launched (shadow: matched) in a correlation."""
        ...

    def is_loop_told(self, trigger_id: str, correlation_id: str) -> bool:
        """Whether a delivery of the trigger in the correlation was skipped as a loop before."""
        ...

    def depth_of(self, stored: Stored) -> int:
        """How many causes an event has in the log, one behind the other; counting may stop
        one above the guard's maximum."""
        ...

    def launch_times(self, trigger_id: str, since: datetime, *, shadow: bool) -> Sequence[datetime]:
        """`updated_at` of the trigger's launched (shadow: matched) deliveries after an instant
        whose role is triggered or attached, oldest first: one for every launch."""
        ...


@dataclass(frozen=True, slots=True)
class Wants:
    """What a pass is likely to ask of the past."""

    keys: frozenset[tuple[str, str, bool]]  # trigger, key, shadow
    correlations: frozenset[tuple[str, str, bool]]  # trigger, correlation, shadow
    causes: tuple[Stored, ...]  # events whose depth is asked
    times: tuple[tuple[str, datetime, bool], ...]  # trigger, since, shadow
