"""Name the words of deliveries: what they come to, how far they got, and why.

Every set is closed: dashboards count these words, and docs/reference/triggers.md lists them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Status(StrEnum):
    """What a delivery has come to."""

    PENDING = "pending"
    MATCHED = "matched"
    THROTTLED = "throttled"
    SKIPPED = "skipped"
    LAUNCHED = "launched"
    FAILED = "failed"
    DEAD = "dead"


WAITING: Final = frozenset({Status.PENDING, Status.THROTTLED, Status.FAILED})
# Who holds an idempotency key; a failed delivery does not, so that its event may come again.
HOLDING: Final = frozenset({Status.PENDING, Status.MATCHED, Status.THROTTLED, Status.LAUNCHED})


class RetryState(StrEnum):
    """Whether another attempt is to come."""

    PENDING = "pending"  # none was needed so far
    SCHEDULED = "scheduled"  # it waits; cancel and force apply
    COMPLETED = "completed"  # every attempt was made
    CANCELLED = "cancelled"  # an operator, or a changed trigger, ended the wait


FORCED_AT: Final = "forcedAt"  # in what is noted of a retry: somebody wants it made now


class Stage(StrEnum):
    """How far a verdict got, in order."""

    SOURCE = "source"
    EXPIRED = "expired"
    PAUSED = "paused"
    PREDICATES = "predicates"
    LOOP = "loop"
    IDEMPOTENCY = "idempotency"
    THROTTLE = "throttle"
    CONCURRENCY = "concurrency"
    DEBOUNCE = "debounce"
    BATCH = "batch"
    LATEST = "latest"
    RUN_KEY = "run_key"
    LAUNCH = "launch"


class Reason(StrEnum):
    """Why a delivery is what it is; a plain launch needs none."""

    EXPIRED = "expired"  # its time to live had passed
    PAUSED = "paused"  # the trigger is paused
    IN_ORDER = "in_order"  # earlier events of the trigger are judged first
    FILTERED = "filtered"  # predicates refused what had waited
    LOOP = "loop"  # the loop guard stopped it
    DUPLICATE_KEY = "duplicate_key"  # another delivery holds the idempotency key
    THROTTLE_WINDOW = "throttle_window"  # as many launches as the window allows
    MAX_CONCURRENCY = "max_concurrency"  # as many active runs as are allowed
    DEBOUNCING = "debouncing"  # waits for quiet
    COLLECTING = "collecting"  # waits for its batch to close
    RUN_ACTIVE = "run_active"  # waits for the run of its group to end
    SUPERSEDED = "superseded"  # a newer event of its group took its place
    SHADOW = "shadow"  # would have launched
    KEY_FAILED = "key_failed"  # a key could not be rendered
    PARAMETERS_FAILED = "parameters_failed"  # parameters could not be rendered
    RUN_KEY_FAILED = "run_key_failed"  # the run key could not be rendered
    LAUNCH_REFUSED = "launch_refused"  # the workflow would not start
    FORCED = "forced"  # an operator wants it attempted now
    CANCELLED_BY_OPERATOR = "cancelled_by_operator"
    SKIPPED_BY_OPERATOR = "skipped_by_operator"
    TRIGGER_INACTIVE = "trigger_inactive"  # disabled, deleted or made shadow while it waited
    EVENT_GONE = "event_gone"  # its event left the log while it waited


class Role(StrEnum):
    """What a launched delivery is to its run."""

    TRIGGERED = "triggered"  # its event started the run
    INCLUDED = "included"  # its event is in the run's batch
    ATTACHED = "attached"  # a run of the same key was active already


class ActKind(StrEnum):
    """What an operator can do."""

    PAUSE = "pause"  # a trigger or a source
    RESUME = "resume"  # likewise; `skip` drops what waits
    SKIP = "skip"  # drop what waits at a paused trigger, and leave it paused
    CANCEL = "cancel"  # a waiting delivery or a held event
    FORCE = "force"  # attempt a waiting delivery, or judge a held event, in the next pass


class Target(StrEnum):
    """What an act is about."""

    TRIGGER = "trigger"
    SOURCE = "source"
    DELIVERY = "delivery"
    EVENT = "event"
