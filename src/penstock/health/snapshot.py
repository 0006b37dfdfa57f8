"""Hold the facts that health is told from, and say whether the house is ready.

    Facts ──▶ pages.py      queues, lag, triggers, pauses and retries, for operators
          ──▶ prometheus.py the same in figures
          ──▶ readiness     whether to send requests here, and which part says no

Pure: everything was read a moment ago.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.health.activity.seen import Activity
from penstock.health.totals import Histogram, Totals
from penstock.ingress.progress import BATCH_BOUNDS_S
from penstock.store.ledger.account import LedgerReport
from penstock.triggers.limits import SourceLimit

INGRESS = "ingress"
INGRESS_SILENT_S = 15.0
SCHEDULER = "scheduler"  # or `scheduler:<worker>`, where there are several
WORKER_SILENT_S = 60.0
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
    activity: Activity | None = None  # of triggers and workflows; None: nobody asked
    totals: Totals | None = None  # likewise
    limits: Sequence[SourceLimit] = ()


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether requests can be served, and what each part says."""

    ready: bool
    parts: Mapping[str, str]


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


def ingress_durations(facts: Facts) -> Histogram:
    """How long the batches of the ingress took since it started; empty when it has not said."""
    part = facts.parts.get(INGRESS)
    said = part.report.get("batchSeconds") if part is not None else None
    if isinstance(said, dict):
        bounds, counts = _numbers(said.get("bounds")), _numbers(said.get("counts"))
        (seconds,) = _numbers([said.get("sum")]) or (0.0,)
        if len(counts) == len(bounds) + 1:
            return Histogram(bounds, [int(count) for count in counts], seconds)
    return Histogram(BATCH_BOUNDS_S, (0,) * (len(BATCH_BOUNDS_S) + 1), 0.0)


def _numbers(said: JsonValue) -> list[float]:
    """A list of numbers as it was said; empty if it is something else."""
    found = said if isinstance(said, list) else []
    numbers = [float(each) for each in found if isinstance(each, int | float)]
    return numbers if len(numbers) == len(found) else []


def _ingress_word(age_s: float | None) -> str:
    if age_s is None:
        return "not started"
    return "ok" if age_s <= INGRESS_SILENT_S else "silent"


def scheduler_figure(facts: Facts, key: str) -> float:
    """One number of what the schedulers of living workers report, all of them together."""
    found = 0.0
    for name, part in facts.parts.items():
        value = part.report.get(key) if name.startswith(SCHEDULER) else None
        if isinstance(value, int | float) and part.age_s <= WORKER_SILENT_S:
            found += value
    return found
