"""Hold what one look at the cursor shows, and say whether there is anything to do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from penstock.triggers.host.summary import PassSummary


@dataclass(frozen=True, slots=True)
class Look:
    """The columns of the query `look`, in their order."""

    number: int  # of the last pass
    position: int  # everything up to here was taken up
    judged_at: datetime  # the database's clock, never before the last pass
    next_due_at: datetime | None
    revision: int  # of the definitions
    head: int  # the end of the log
    has_run_ends: bool
    has_versions: bool  # of definitions that no pass has seen yet
    settings_pass: int | None  # the pass that first had the settings of the last one
    was_act: bool = False  # the last pass was an operator's, run by whoever heard of it

    @property
    def has_work(self) -> bool:
        """Whether a pass would find anything."""
        is_due = self.next_due_at is not None and self.next_due_at <= self.judged_at
        return self.head > self.position or is_due or self.has_run_ends or self.has_versions

    def idle(self, until: datetime | None = None) -> PassSummary:
        """The summary of a pass that was not needed, or is not before then."""
        due = until or self.next_due_at
        return PassSummary(None, self.judged_at, self.position, next_due_at=due)
