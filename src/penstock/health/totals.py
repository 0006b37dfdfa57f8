"""Add up what has ended since the beginning: how often, and how long it took.

The store keeps a row for each label and bucket; a bucket is named by how many bounds it has passed,
as width_bucket of PostgreSQL counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

RUN_BOUNDS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1_800.0, 7_200.0, 86_400.0)
DELIVERY_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0, 3_600.0)


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many took up to each bound, and all of them together."""

    bounds: Sequence[float]
    counts: Sequence[int]  # one for each bound, and one beyond the last
    seconds: float

    @property
    def count(self) -> int:
        return sum(self.counts)

    def buckets(self) -> list[tuple[str, float]]:
        """Bounds with everything up to them, as Prometheus wants it."""
        total, found = 0, list[tuple[str, float]]()
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            total += count
            found.append((bound, total))
        return found


@dataclass(frozen=True, slots=True)
class Totals:
    """Counters since the beginning, of the whole platform."""

    deliveries: Mapping[str, int] = field(default_factory=dict)  # by what came of them
    launches: Histogram = Histogram(DELIVERY_BOUNDS_S, (0,) * (len(DELIVERY_BOUNDS_S) + 1), 0.0)
    runs: Mapping[str, Histogram] = field(default_factory=dict)  # those that ended, by status
    active_runs: Mapping[str, int] = field(default_factory=dict)  # those that have not


def histogram(bounds: Sequence[float], rows: Iterable[tuple[int, int, float]]) -> Histogram:
    """A histogram of rows (bucket, count, seconds)."""
    counts, seconds = [0] * (len(bounds) + 1), 0.0
    for bucket, count, took in rows:
        counts[bucket] += count
        seconds += took
    return Histogram(bounds, tuple(counts), seconds)
