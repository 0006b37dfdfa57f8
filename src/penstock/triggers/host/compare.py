"""Compare what recorded passes come to with what is on record: nothing may differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.triggers.backtest import Difference, Replayed, differences
from penstock.triggers.delivery import Delivery, HistoryEntry
from penstock.triggers.simulated import Sample, Simulated
from penstock.triggers.words import Reason, Role, Stage, Status

_UNMATCHED = frozenset({Reason.EXPIRED, Reason.FILTERED})
_NOT_JUDGED = frozenset({Stage.EXPIRED, Stage.PAUSED})


@dataclass(frozen=True, slots=True)
class RecordedBacktest:
    """A trigger's own past, run again: what it came to, and where that is not the record."""

    passes: int
    deliveries: int
    found: Simulated
    differences: Sequence[Difference]

    @property
    def equals_record(self) -> bool:
        """Whether running the past again gave exactly what happened."""
        return not self.differences


def compare(
    trigger_id: str,
    settled: Sequence[Delivery],
    history: Iterable[HistoryEntry],
    replayed: Replayed,
    *,
    after: int = 0,
) -> RecordedBacktest:
    """Hold a replay against the record, for the events after a position.

    `settled` are the recorded deliveries that no later pass has touched; of the others, the history
    up to the last pass is what there is to compare.
    """
    again = {d.id: d for d in replayed.deliveries.values() if d.event_position > after}
    told = [entry for entry in replayed.history if entry.delivery_id in again]
    everything = [*settled, *replayed.deliveries.values()]
    kept = {d.id: d for d in settled if d.event_position > after}
    before = {d.id for d in everything if d.event_position <= after}
    noted = [entry for entry in history if entry.delivery_id not in before]
    touched_later = {entry.delivery_id for entry in noted} - kept.keys()
    same = Replayed({name: d for name, d in again.items() if name not in touched_later}, told)
    return RecordedBacktest(
        passes=replayed.passes,
        deliveries=len(again),
        found=_figures(trigger_id, list(again.values()), told),
        differences=differences(kept.values(), noted, same),
    )


def _figures(
    trigger_id: str, deliveries: Sequence[Delivery], history: Iterable[HistoryEntry]
) -> Simulated:
    """The same figures as those of a simulation, of what happened."""
    found = Simulated(trigger_id)
    together = Counter(d.run_id for d in deliveries if d.role in (Role.TRIGGERED, Role.INCLUDED))
    for delivery in deliveries:
        found.matches += _is_match(delivery)
        found.count(delivery)
        if delivery.is_waiting:
            found.statuses[str(delivery.status)] += 1
    found.throttled = sum(entry.status is Status.THROTTLED for entry in history)
    launched = [d for d in deliveries if d.status is Status.LAUNCHED and d.role is Role.TRIGGERED]
    for each in sorted(launched, key=lambda d: (d.updated_at, d.event_position)):
        found.note_launch(
            Sample(
                each.event_id, each.event_position, each.updated_at, each.run_key or "",
                each.parameters, together[each.run_id],
            )
        )  # fmt: skip
    return found


def _is_match(delivery: Delivery) -> bool:
    """Whether predicates were asked, and said yes."""
    return delivery.reason not in _UNMATCHED and delivery.stage not in _NOT_JUDGED
