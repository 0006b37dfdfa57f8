"""Write what triggers, workflows and queues do as Prometheus series.

Labels are names, never ids, and bounded: of the triggers and of the sources the busiest 200 are
named. Two triggers of one name and workflow, or a source of two tenants, are one series.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from penstock.health.activity.seen import Activity
from penstock.health.queues import Queue
from penstock.health.snapshot import WORKER_SILENT_S
from penstock.health.totals import Totals
from penstock.triggers.book.backlog import Backlog
from penstock.triggers.book.figure import SourceFigures, TriggerFigures
from penstock.triggers.limits import SourceLimit

NAMED_MAX = 200
_VERDICTS = (
    "filtered", "matched", "launched", "throttled", "skipped", "failed", "paused", "dead",
)  # fmt: skip
_STATES = ("waiting", "active", "delayed")
_Labels: TypeAlias = tuple[str, ...]
_Values: TypeAlias = Iterable[tuple[_Labels, float]]


def series(
    activity: Activity, totals: Totals, queues: Sequence[Queue], limits: Sequence[SourceLimit]
) -> Iterator[Metric]:
    """Everything of the rooms that act on events."""
    yield from _of_triggers(activity)
    yield from _of_sources(activity, limits)
    yield from _of_deliveries(activity, totals)
    yield from _of_retries(activity)
    yield from _of_workflows(activity, totals)
    yield from _of_queues(queues)


def _of_triggers(activity: Activity) -> Iterator[Metric]:
    named = sorted(activity.triggers, key=lambda each: -_seen(each))[:NAMED_MAX]
    labels = ("workflow", "trigger")
    verdicts = (
        ((each.workflow_slug, each.name, verdict), getattr(each, verdict))
        for each in named
        for verdict in _VERDICTS
    )
    yield _counter(
        "penstock_trigger_verdicts", "What triggers made of events.", (*labels, "verdict"), verdicts
    )
    backlog = {name: each.total for name, each in activity.waiting.items()}
    paused = {p.trigger_id: 1 for p in activity.paused_triggers if p.is_open(activity.at)}
    for name, about, found in (
        ("backlog_events", "Deliveries that wait to be judged again.", backlog),
        ("paused", "1 while a trigger is paused.", paused),
    ):
        values = (((t.workflow_slug, t.name), found.get(t.trigger_id, 0)) for t in named)
        yield _gauge(f"penstock_trigger_{name}", about, labels, values)
    yield GaugeMetricFamily(
        "penstock_trigger_unjudged_events", "Stored events that no trigger has looked at yet.",
        activity.progress.waiting,
    )  # fmt: skip


def _seen(each: TriggerFigures) -> int:
    return each.filtered + each.matched + each.launched + each.skipped + each.paused


def _of_sources(activity: Activity, limits: Sequence[SourceLimit]) -> Iterator[Metric]:
    named = sorted(activity.sources, key=lambda each: -each.total)[:NAMED_MAX]
    yield _counter(
        "penstock_source_events", "Events of a source at the triggers, by what became of them.",
        ("source", "outcome"), (pair for each in named for pair in _outcomes(each)),
    )  # fmt: skip
    yield _gauge(
        "penstock_trigger_lag_seconds", "From occurredAt to judged, latest, by source.",
        ("source",), (((each.source,), each.last_lag_ms / 1000) for each in named), largest=True,
    )  # fmt: skip
    open_now = [p.source for p in activity.paused_sources if p.is_open(activity.at)][:NAMED_MAX]
    paused = [((each.source,), 0.0) for each in named] + [((name,), 1.0) for name in open_now]
    yield _gauge(
        "penstock_source_paused", "1 while events of a source wait to be judged.", ("source",),
        paused, largest=True,
    )  # fmt: skip
    yield _gauge(
        "penstock_source_rate_limit_per_second", "How many events of a source are judged at most.",
        ("source",), (((e.source,), e.limit / (e.interval_ms / 1000)) for e in limits),
    )  # fmt: skip


def _outcomes(each: SourceFigures) -> list[tuple[_Labels, float]]:
    return [
        ((each.source, "judged"), each.total),
        ((each.source, "throttled"), each.throttled),
        ((each.source, "dropped"), each.dropped),
        ((each.source, "failed"), each.failures),
    ]


def _of_deliveries(activity: Activity, totals: Totals) -> Iterator[Metric]:
    yield _counter(
        "penstock_deliveries", "Deliveries of events to triggers, by what came of them.",
        ("status",), (((status,), count) for status, count in totals.deliveries.items()),
    )  # fmt: skip
    launches = totals.launches
    family = HistogramMetricFamily(
        "penstock_delivery_duration_seconds", "From an event stored to its run launched."
    )
    family.add_metric((), launches.buckets(), sum_value=launches.seconds)
    yield family
    heard = [w for w in activity.workers if activity.age_s(w.heartbeat_at) <= WORKER_SILENT_S]
    yield GaugeMetricFamily("penstock_workers", "Workers that say they live.", len(heard))


def _of_retries(activity: Activity) -> Iterator[Metric]:
    steps = activity.steps.summary
    kinds = {
        "event": activity.events[0],
        "trigger": activity.deliveries[0],
        "workflow_step": Backlog(steps.total, steps.overdue, steps.next_attempt_at),
    }
    for name, about, figures in (
        ("backlog", "What waits for another try.", {k: b.total for k, b in kinds.items()}),
        ("overdue", "What should have been tried again.", {k: b.overdue for k, b in kinds.items()}),
    ):
        values = (((kind,), count) for kind, count in figures.items())
        yield _gauge(f"penstock_retry_{name}", about, ("kind",), values)
    due = ((k, b.next_attempt_at) for k, b in kinds.items())
    yield _gauge(
        "penstock_retry_next_attempt_timestamp_seconds", "When the next try is due; absent: never.",
        ("kind",), (((kind,), at.timestamp()) for kind, at in due if at is not None),
    )  # fmt: skip


def _of_workflows(activity: Activity, totals: Totals) -> Iterator[Metric]:
    ended = totals.runs
    yield _counter(
        "penstock_workflow_runs", "Runs that have ended, by how.", ("status",),
        (((s,), ended[s].count if s in ended else 0) for s in ("succeeded", "failed", "canceled")),
    )  # fmt: skip
    yield _gauge(
        "penstock_workflow_runs_active", "Runs that have not ended.", ("status",),
        (((status,), totals.active_runs.get(status, 0)) for status in ("pending", "running")),
    )  # fmt: skip
    family = HistogramMetricFamily(
        "penstock_workflow_run_duration_seconds", "How long runs took, by how they ended.",
        labels=("status",),
    )  # fmt: skip
    for status, took in sorted(ended.items()):
        family.add_metric((status,), took.buckets(), sum_value=took.seconds)
    yield family
    jobs = activity.jobs
    yield _gauge(
        "penstock_workflow_jobs", "Steps of runs in the queue.", ("queue", "state"),
        ((("workflow", state), getattr(jobs, state)) for state in _STATES),
    )  # fmt: skip
    yield GaugeMetricFamily(
        "penstock_workflow_oldest_job_seconds", "How long the first of the waiting steps is due.",
        jobs.oldest_ms / 1000,
    )  # fmt: skip


def _of_queues(queues: Sequence[Queue]) -> Iterator[Metric]:
    yield _gauge(
        "penstock_queue_jobs", "What is in each queue of /admin/queue-health.", ("queue", "state"),
        (((q.key, state), count) for q in queues for state, count in q.counts.items()),
    )  # fmt: skip
    latencies = (
        ((queue.key, stage), value / 1000)
        for queue in queues
        for stage, value in (("processing", queue.processing_ms), ("waiting", queue.waiting_ms))
        if value is not None
    )
    yield _gauge(
        "penstock_queue_latency_seconds", "How long things take and wait, on average, lately.",
        ("queue", "stage"), latencies,
    )  # fmt: skip


def _counter(name: str, about: str, labels: _Labels, values: _Values) -> CounterMetricFamily:
    family = CounterMetricFamily(name, about, labels=labels)
    for names, amount in _together(values).items():
        family.add_metric(names, amount)
    return family


def _gauge(
    name: str, about: str, labels: _Labels, values: _Values, *, largest: bool = False
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, about, labels=labels)
    for names, amount in _together(values, largest=largest).items():
        family.add_metric(names, amount)
    return family


def _together(values: _Values, *, largest: bool = False) -> Mapping[_Labels, float]:
    """One value for each set of labels: the sum, or the largest."""
    found: dict[_Labels, float] = {}
    for names, amount in values:
        before = found.get(names)
        if before is None:
            found[names] = amount
        else:
            found[names] = max(before, amount) if largest else before + amount
    return found
