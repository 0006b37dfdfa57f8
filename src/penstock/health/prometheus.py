"""Count what happens in this process, and write it with the store's figures for Prometheus.

    penstock_<what>_<unit>      seconds and bytes; counters end in _total

Labels are bounded: routes are patterns, outcomes and reasons are closed lists, and of the sources
only the busiest are named, so that no publisher can make a metric grow without end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from penstock.health.queues import every_queue
from penstock.health.series import series
from penstock.health.snapshot import Facts, ingress_durations, ingress_figure
from penstock.store.ledger.account import SourceLine

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
SOURCES_MAX = 200
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """What this process counts by itself."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.requests = Counter(
            "penstock_http_requests", "HTTP requests answered.", ("method", "route", "status"),
            registry=self.registry,
        )  # fmt: skip
        self.durations = Histogram(
            "penstock_http_request_duration_seconds", "Time to answer a request.", ("route",),
            buckets=_BUCKETS, registry=self.registry,
        )  # fmt: skip
        self.received = Counter(
            "penstock_events_received", "Events that came through this door, by what they heard.",
            ("outcome",), registry=self.registry,
        )  # fmt: skip
        for outcome in ("accepted", "duplicate", "rejected", "unavailable"):
            self.received.labels(outcome)
        self._clients = Gauge(
            "penstock_stream_clients", "Live stream clients connected now.", registry=self.registry
        )

    def of_request(self, method: str, route: str, status: int) -> tuple[Counter, Histogram]:
        """The two series that a request of this kind counts in."""
        return self.requests.labels(method, route, str(status)), self.durations.labels(route)

    def watch_clients(self, count: Callable[[], float]) -> None:
        """Read the number of live clients from whoever knows it."""
        self._clients.set_function(count)


def write(metrics: Metrics, facts: Facts | None, sources: Sequence[SourceLine]) -> bytes:
    """Everything in the text format; without facts, only what this process knows."""
    own = generate_latest(metrics.registry)
    if facts is None:
        return own
    stored = CollectorRegistry()
    stored.register(_Figures(facts, sources))
    return own + generate_latest(stored)


class _Figures(Collector):
    """The store's figures as they were a moment ago."""

    def __init__(self, facts: Facts, sources: Sequence[SourceLine]) -> None:
        self._facts = facts
        self._sources = sorted(sources, key=lambda line: -line.stored)[:SOURCES_MAX]

    def collect(self) -> Iterator[Metric]:
        yield from self._ledger()
        yield from self._ingest()
        yield self._labelled(
            "penstock_quarantine_events", "Dead letters waiting, by reason.", "class",
            sorted(self._facts.dead_letters.items()),
        )  # fmt: skip
        facts = self._facts
        if facts.activity is not None and facts.totals is not None:
            yield from series(facts.activity, facts.totals, every_queue(facts, ""), facts.limits)

    def _ledger(self) -> Iterator[Metric]:
        ledger = self._facts.ledger
        states = (
            ("accepted", ledger.accepted), ("stored", ledger.stored),
            ("duplicate", ledger.duplicates), ("dead_lettered", ledger.dead_lettered),
            ("in_flight", ledger.in_flight),
        )  # fmt: skip
        yield self._labelled(
            "penstock_ledger_events", "What became of every accepted event.", "state", states
        )
        yield GaugeMetricFamily(
            "penstock_ledger_unexplained_events",
            "Accepted events that nothing accounts for; anything but 0 is an alert.",
            ledger.unexplained,
        )

    def _ingest(self) -> Iterator[Metric]:
        facts = self._facts
        lag = [(line.source, line.lag_last_ms / 1000) for line in self._sources]
        yield self._labelled(
            "penstock_ingest_lag_seconds", "From occurredAt to stored, latest, by source.",
            "source", lag,
        )  # fmt: skip
        took = ingress_durations(facts)
        durations = HistogramMetricFamily(
            "penstock_ingest_duration_seconds", "How long batches of the ingress took."
        )
        durations.add_metric((), took.buckets(), sum_value=took.seconds)
        yield durations
        for name, key, about in (
            ("batches", "batches", "Batches the ingress has settled since it started."),
            ("messages", "messages", "Messages the ingress has judged since it started."),
            ("checkpoint_resets", "checkpointResets", "Checkpoints thrown away and replayed."),
        ):
            yield CounterMetricFamily(
                f"penstock_ingest_{name}", about, value=ingress_figure(facts, key)
            )
        if facts.depth is not None:
            waiting, size = facts.depth.messages, facts.depth.bytes
            yield GaugeMetricFamily("penstock_queue_events", "Events on the queue.", waiting)
            yield GaugeMetricFamily("penstock_queue_bytes", "Bytes on the queue.", size)

    @staticmethod
    def _labelled(
        name: str, about: str, label: str, values: Sequence[tuple[str, float]]
    ) -> GaugeMetricFamily:
        family = GaugeMetricFamily(name, about, labels=(label,))
        for value, amount in _merged(values):
            family.add_metric((value,), amount)
        return family


def _merged(values: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """One value per label: of two tenants with a source of the same name, the larger figure."""
    largest: dict[str, float] = {}
    for label, amount in values:
        largest[label] = max(amount, largest.get(label, amount))
    return list(largest.items())
