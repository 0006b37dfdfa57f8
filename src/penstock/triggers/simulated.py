"""Hold what a trigger would have done over past events, or did."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from penstock.base.clock import format_instant
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.triggers.delivery import Delivery, Launch
from penstock.triggers.words import WAITING, Reason, Status

SAMPLES_MAX: Final = 20
_RENDERING: Final = frozenset({Reason.KEY_FAILED, Reason.PARAMETERS_FAILED, Reason.RUN_KEY_FAILED})


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the log something is, and since when."""

    position: int
    received_at: datetime


@dataclass(frozen=True, slots=True)
class Sample:
    """One run that would have launched."""

    event_id: str
    position: int
    launched_at: datetime
    run_key: str
    parameters: JsonValue
    events: int  # in its batch

    def wire(self) -> JsonObject:
        """The run as the API shows it."""
        return {
            "eventId": self.event_id,
            "position": str(self.position),
            "launchedAt": format_instant(self.launched_at),
            "runKey": self.run_key,
            "parameters": self.parameters,
            "events": self.events,
        }


@dataclass(slots=True)
class Simulated:
    """What a trigger would have done."""

    trigger_id: str
    events: int = 0  # read
    verdicts: int = 0  # of a type and a source that the trigger wants
    matches: int = 0
    launches: int = 0
    throttled: int = 0  # how often a launch had to wait for room
    keys: set[str] = field(default_factory=set)
    statuses: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)  # by reason
    failures: list[tuple[str, str]] = field(default_factory=list)  # event and error, a few
    render_failures: int = 0
    samples: list[Sample] = field(default_factory=list)
    minutes: Counter[datetime] = field(default_factory=Counter)
    first: Place | None = None
    last: Place | None = None

    def wire(self) -> JsonObject:
        """The result as the API shows it."""
        return {
            "triggerId": self.trigger_id,
            "eventsRead": self.events,
            "verdicts": self.verdicts,
            "matches": self.matches,
            "launches": self.launches,
            "distinctKeys": len(self.keys),
            "throttled": self.throttled,
            "byStatus": {**self.statuses},
            "skippedByReason": {**self.skipped},
            "peakLaunchesPerMinute": max(self.minutes.values(), default=0),
            "renderFailures": self.render_failures,
            "failureSamples": [{"eventId": e, "error": text} for e, text in self.failures],
            "samples": [sample.wire() for sample in self.samples],
            "coverage": _coverage(self.first, self.last),
        }

    def count(self, delivery: Delivery) -> None:
        """Count what a pass has made of a delivery."""
        if delivery.dedupe_key is not None:
            self.keys.add(delivery.dedupe_key)
        if delivery.reason in _RENDERING:
            self.render_failures += 1
            if len(self.failures) < SAMPLES_MAX:
                self.failures.append((delivery.event_id, delivery.last_error or ""))
        if delivery.status not in WAITING:
            self.statuses[str(delivery.status)] += 1
        if delivery.status is Status.SKIPPED and delivery.reason is not None:
            self.skipped[str(delivery.reason)] += 1

    def count_launch(self, launch: Launch) -> None:
        """Count a run that would have launched."""
        event = launch.events[-1]
        self.note_launch(
            Sample(
                event.envelope.id, event.position, launch.launched_at, launch.run_key,
                launch.parameters, len(launch.events),
            )
        )  # fmt: skip

    def note_launch(self, launch: Sample) -> None:
        """Count a run; the first few are shown."""
        self.launches += 1
        self.minutes[launch.launched_at.replace(second=0, microsecond=0)] += 1
        if len(self.samples) < SAMPLES_MAX:
            self.samples.append(launch)


def _coverage(first: Place | None, last: Place | None) -> JsonObject | None:
    if first is None or last is None:
        return None
    return {
        "from": format_instant(first.received_at),
        "to": format_instant(last.received_at),
        "firstPosition": str(first.position),
        "lastPosition": str(last.position),
    }
