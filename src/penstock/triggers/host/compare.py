"""Compare what recorded passes come to with what is on record: nothing may differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.triggers.backtest import Difference, Replayed, differences
from penstock.triggers.delivery import Delivery, HistoryEntry
from penstock.triggers.words import Role, Status


@dataclass(frozen=True, slots=True)
class RecordedBacktest:
    """A trigger's own past, run again."""

    trigger_id: str
    passes: int
    deliveries: int
    launches: int  # runs that were started
    statuses: Mapping[Status, int]
    differences: Sequence[Difference]

    @property
    def equals_record(self) -> bool:
        """Whether running the past again gave exactly what happened."""
        return not self.differences


def compare(
    trigger_id: str,
    settled: Sequence[Delivery],
    history: Sequence[HistoryEntry],
    replayed: Replayed,
) -> RecordedBacktest:
    """Hold a replay against the record.

    `settled` are the recorded deliveries that no later pass has touched; of the others, the history
    up to the last pass is what there is to compare.
    """
    names = {delivery.id for delivery in settled}
    touched_later = {entry.delivery_id for entry in history} - names
    kept = Replayed(
        {name: d for name, d in replayed.deliveries.items() if name not in touched_later},
        replayed.history,
    )
    again = replayed.deliveries.values()
    return RecordedBacktest(
        trigger_id=trigger_id,
        passes=replayed.passes,
        deliveries=len(replayed.deliveries),
        launches=sum(d.status is Status.LAUNCHED and d.role is Role.TRIGGERED for d in again),
        statuses=Counter(d.status for d in again),
        differences=differences(settled, history, kept),
    )
