"""Hold the answer to why, or why not: how far an event came at a trigger, and what stopped it.

The same value is built from a kept verdict and from one worked out again; equal inputs give equal
answers, so `recomputed` is the only field in which the two may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from penstock.base.clock import format_instant
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject
from penstock.triggers.delivery import HistoryEntry
from penstock.triggers.trace import Trace
from penstock.triggers.words import Reason, Stage


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an event did, or did not, start something at a trigger."""

    trigger_id: str
    trigger_version: int
    event_id: str
    event_position: int
    stage: Stage | None  # the last one reached; None: the trigger does not want such events
    verdict: str  # the delivery's status; filtered, expired or unwanted when there is none
    reason: Reason | str | None
    judged_at: datetime | None  # None: no pass has come to the event yet
    predicates: Trace | None = None  # None: they were not reached
    delivery_id: str | None = None
    run_id: str | None = None
    history: Sequence[HistoryEntry] = ()
    recomputed: bool = field(default=False, compare=False)

    def wire(self) -> JsonObject:
        """The explanation as the API and the command line show it."""
        return {
            "triggerId": self.trigger_id,
            "triggerVersion": self.trigger_version,
            "eventId": self.event_id,
            "position": str(self.event_position),
            "stage": None if self.stage is None else str(self.stage),
            "verdict": str(self.verdict),
            "reason": None if self.reason is None else str(self.reason),
            "judgedAt": None if self.judged_at is None else format_instant(self.judged_at),
            "predicates": None if self.predicates is None else self.predicates.wire(),
            "deliveryId": self.delivery_id,
            "workflowRunId": self.run_id,
            "history": [history_wire(entry) for entry in self.history],
            "recomputed": self.recomputed,
        }

    def sentence(self) -> str:
        """The answer in one line, for the command line."""
        if self.verdict == "filtered" and self.predicates is not None:
            failed = first_failure(self.predicates)
            if failed is not None:
                return f"not started: {failed}"
        why = f" ({self.reason})" if self.reason else ""
        run = f", run {self.run_id}" if self.run_id else ""
        where = f" at {self.stage}" if self.stage else ""
        return f"{self.verdict}{where}{why}{run}"


def history_wire(entry: HistoryEntry) -> JsonObject:
    """What one pass made of the delivery, as the API shows it."""
    return {
        "pass": entry.pass_number,
        "judgedAt": format_instant(entry.judged_at),
        "triggerVersion": entry.trigger_version,
        "attempt": entry.attempt,
        "status": str(entry.status),
        "stage": str(entry.stage),
        "reason": None if entry.reason is None else str(entry.reason),
        "detail": entry.detail,
    }


def first_failure(trace: Trace) -> str | None:
    """The first comparison that did not hold, as a sentence; None when all is well."""
    if trace.outcome:
        return None
    if trace.path is not None:
        return _comparison(trace)
    if trace.operator == "not" and trace.inner[0].path is not None:
        return f"not {_comparison(trace.inner[0])}"
    inner = (first_failure(each) for each in trace.inner)
    return next((said for said in inner if said is not None), f"{trace.operator} did not hold")


def _comparison(trace: Trace) -> str:
    """What was asked, and what was there, both as JSON."""
    asked = "" if trace.operator == "exists" else f" {encode(trace.operand).decode()}"
    found = ", ".join(encode(value).decode() for value in trace.actual) or "nothing"
    return f"{trace.path} {trace.operator}{asked}, found {found}"
