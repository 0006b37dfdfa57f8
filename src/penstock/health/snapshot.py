"""Say how the house is, from facts that were read a moment ago.

    Facts ──▶ event_health     queue depth, per-source lag, what is paused and retried
          ──▶ queue_health     every queue with its depth and latency
          ──▶ readiness        whether to send requests here, and which part says no

Pure. What no part of the product does yet (pauses, retries, triggers) is there and empty, so that a
dashboard written today keeps working when it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from penstock.base.clock import format_instant
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.store.ledger.account import LedgerReport, SourceLine

INGRESS = "ingress"
INGRESS_SILENT_S = 15.0
Mode = Literal["spool", "inline"]


class Depth(Protocol):
    """How much waits on the queue."""

    @property
    def messages(self) -> int: ...

    @property
    def bytes(self) -> int: ...

    @property
    def oldest_ms(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class PartReport:
    """What a running part last said about itself, and how long ago."""

    part: str
    report: JsonObject
    reported_at: datetime
    age_s: float


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything health is told from, read at one moment."""

    at: datetime
    mode: Mode
    ledger: LedgerReport
    parts: Mapping[str, PartReport] = field(default_factory=dict)
    dead_letters: Mapping[str, int] = field(default_factory=dict)  # reason -> how many wait
    depth: Depth | None = None  # None: there is no queue


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether requests can be served, and what each part says."""

    ready: bool
    parts: Mapping[str, str]


def event_health(facts: Facts, sources: Sequence[SourceLine], *, whole: bool) -> JsonObject:
    """The answer of /admin/event-health; `whole` shows figures that are about every tenant."""
    ingress = _queue(facts) if whole else {**_queue(facts), "counts": None}
    none: list[JsonValue] = []
    return {
        "generatedAt": format_instant(facts.at),
        "queues": {"ingress": ingress, "triggers": _unused_queue()},
        "metrics": {
            "generatedAt": format_instant(facts.at),
            "sources": [_source(line) for line in sources],
            "triggers": none,
        },
        "ingress": _ingress(facts) if whole else None,
        "pausedSources": none,
        "pausedTriggers": none,
        "rateLimits": none,
        "retries": {name: _no_retries() for name in ("events", "triggers", "workflowSteps")},
    }


def queue_health(facts: Facts, queue_name: str) -> JsonObject:
    """The answer of /admin/queue-health."""
    event: JsonObject = {"key": "event", "label": "Event ingress", "queueName": queue_name}
    return {
        "generatedAt": format_instant(facts.at),
        "inlineMode": facts.mode == "inline",
        "queues": [{**event, **_queue(facts)}],
    }


def readiness(mode: Mode, *, store: bool, spool: bool, ingress_age_s: float | None) -> Readiness:
    """Whether every part that this mode needs answers; no age: the ingress has never spoken."""
    parts = {"postgres": "ok" if store else "no answer"}
    if mode == "spool":
        parts["spool"] = "ok" if spool else "not writable"
        parts[INGRESS] = _ingress_word(ingress_age_s) if store else "unknown"
    return Readiness(all(word == "ok" for word in parts.values()), parts)


def ingress_figure(facts: Facts, key: str) -> float:
    """One number of the ingress's report; 0 when it has not said."""
    part = facts.parts.get(INGRESS)
    value = part.report.get(key) if part is not None else None
    return float(value) if isinstance(value, int | float) else 0.0


def _ingress_word(age_s: float | None) -> str:
    if age_s is None:
        return "not started"
    return "ok" if age_s <= INGRESS_SILENT_S else "silent"


def _queue(facts: Facts) -> JsonObject:
    ledger = facts.ledger
    oldest_ms = facts.depth.oldest_ms if facts.depth is not None else None
    waited = None if oldest_ms is None else max(0, _ms(facts.at) - oldest_ms)
    batch = ingress_figure(facts, "lastBatchMs")
    return {
        "mode": "inline" if facts.mode == "inline" else "queue",
        "counts": {
            "waiting": ledger.in_flight,
            "active": 0,
            "completed": ledger.stored + ledger.duplicates,
            "failed": ledger.dead_lettered,
            "delayed": 0,
            "paused": 0,
        },
        "metrics": {"processingAvgMs": batch, "waitingAvgMs": waited or 0},
    }


def _unused_queue() -> JsonObject:
    counts = ("waiting", "active", "completed", "failed", "delayed", "paused")
    return {"mode": "disabled", "counts": dict.fromkeys(counts, 0), "metrics": None}


def _source(line: SourceLine) -> JsonObject:
    last = None if line.last_event_at is None else format_instant(line.last_event_at)
    return {
        "source": line.source,
        "total": line.stored + line.duplicates + line.dead,
        "throttled": 0,
        "dropped": 0,
        "failures": line.dead,
        "averageLagMs": line.lag_average_ms,
        "lastLagMs": line.lag_last_ms,
        "maxLagMs": line.lag_max_ms,
        "lastEventAt": last,
    }


def _ingress(facts: Facts) -> JsonObject | None:
    part = facts.parts.get(INGRESS)
    if part is None:
        return None
    alive = part.age_s <= INGRESS_SILENT_S
    return {**part.report, "alive": alive, "reportedAt": format_instant(part.reported_at)}


def _no_retries() -> JsonObject:
    summary: JsonObject = {"total": 0, "overdue": 0, "nextAttemptAt": None}
    return {"summary": summary, "entries": []}


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
