"""Metrics have bounded labels, base units, and names that dashboards can rely on."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from penstock.envelope.envelope import JsonObject
from penstock.health.prometheus import SOURCES_MAX, Metrics, write
from penstock.health.snapshot import INGRESS, Facts, PartReport
from penstock.ingress.progress import BATCH_BOUNDS_S, Progress
from penstock.store.ledger.account import LedgerReport, SourceLine

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def line(source: str, stored: int = 1, lag_ms: int = 1500, tenant: str = "default") -> SourceLine:
    return SourceLine(tenant, source, stored, 0, 0, lag_ms, lag_ms, lag_ms, NOW)


def facts() -> Facts:
    return Facts(NOW, "spool", LedgerReport(9, 5, 1, 1, 1, 0, 1, []), {}, {"type_unknown": 3})


def families(text: bytes) -> dict[str, Metric]:
    return {each.name: each for each in text_string_to_metric_families(text.decode())}


def test_lag_is_in_seconds_by_source() -> None:
    found = families(write(Metrics(), facts(), [line("a.b", lag_ms=1500)]))

    (sample,) = found["penstock_ingest_lag_seconds"].samples
    assert (sample.labels, sample.value) == ({"source": "a.b"}, 1.5)


def test_only_the_busiest_sources_are_named() -> None:
    sources = [line(f"s.{n}", stored=n) for n in range(SOURCES_MAX * 3)]

    found = families(write(Metrics(), facts(), sources))

    named = {sample.labels["source"] for sample in found["penstock_ingest_lag_seconds"].samples}
    assert len(named) == SOURCES_MAX
    assert f"s.{SOURCES_MAX * 3 - 1}" in named
    assert "s.0" not in named


def test_a_source_of_two_tenants_is_one_series() -> None:
    text = write(Metrics(), facts(), [line("a.b", lag_ms=100), line("a.b", lag_ms=900, tenant="t")])

    (sample,) = families(text)["penstock_ingest_lag_seconds"].samples
    assert sample.value == 0.9


def test_a_hostile_source_stays_one_label_on_one_line() -> None:
    evil = 'x"} 1\npenstock_ledger_unexplained_events 0\n#'

    found = families(write(Metrics(), facts(), [line(evil)]))

    (sample,) = found["penstock_ingest_lag_seconds"].samples
    assert sample.labels["source"] == evil
    assert [s.value for s in found["penstock_ledger_unexplained_events"].samples] == [1.0]


def test_dead_letters_are_counted_by_their_class() -> None:
    found = families(write(Metrics(), facts(), []))

    (sample,) = found["penstock_quarantine_events"].samples
    assert (sample.labels, sample.value) == ({"class": "type_unknown"}, 3.0)


def test_outcomes_are_there_before_the_first_event() -> None:
    found = families(write(Metrics(), None, []))

    outcomes = {s.labels["outcome"] for s in found["penstock_events_received"].samples}
    assert {"accepted", "duplicate", "rejected", "unavailable"} <= outcomes


def test_without_the_store_this_process_still_speaks_for_itself() -> None:
    metrics = Metrics()
    metrics.watch_clients(lambda: 4)

    found = families(write(metrics, None, []))

    assert found["penstock_stream_clients"].samples[0].value == 4
    assert "penstock_ledger_events" not in found


def told_by_ingress(report: JsonObject) -> list[Sample]:
    """The samples of how long batches took, as a Prometheus reads them."""
    said = PartReport(INGRESS, report, NOW, 0.5)
    text = write(Metrics(), replace(facts(), parts={INGRESS: said}), [])
    family = families(text)["penstock_ingest_duration_seconds"]
    assert family.type == "histogram"
    return family.samples


def test_batches_are_a_histogram_of_everything_up_to_each_bound() -> None:
    progress = Progress()
    for took_ms in (4, 30, 30, 700, 90_000):
        progress.batch_took(took_ms)

    samples = told_by_ingress(progress.as_json())

    buckets = [(s.labels["le"], s.value) for s in samples if s.name.endswith("_bucket")]
    assert buckets == [
        ("0.01", 1), ("0.025", 1), ("0.05", 3), ("0.1", 3), ("0.25", 3), ("0.5", 3), ("1.0", 4),
        ("2.5", 4), ("5.0", 4), ("10.0", 4), ("30.0", 4), ("60.0", 4), ("+Inf", 5),
    ]  # fmt: skip
    rest = {s.name.removeprefix("penstock_ingest_duration_seconds"): s.value for s in samples}
    assert (rest["_count"], rest["_sum"]) == (5, 90.764)


def test_no_sample_of_the_batches_falls_while_the_ingress_lives() -> None:
    progress = Progress()
    seen = []
    for took_ms in (0.4, 90_000, 12, 12, 333.3333333, 1e-9):
        progress.batch_took(took_ms)
        seen.append([sample.value for sample in told_by_ingress(progress.as_json())])

    assert all(
        a <= b for before, after in pairwise(seen) for a, b in zip(before, after, strict=True)
    )
    assert seen[0] != seen[-1]


@pytest.mark.parametrize(
    "report",
    [
        {},
        {"lastBatchMs": 12},
        {"batchSeconds": 7},
        {"batchSeconds": {"bounds": [1], "counts": [1], "sum": 1}},
        {"batchSeconds": {"bounds": ["soon"], "counts": [1, None], "sum": 1}},
    ],
    ids=str,
)
def test_an_ingress_that_says_nothing_of_its_batches_has_an_empty_histogram(
    report: JsonObject,
) -> None:
    samples = told_by_ingress(report)

    assert len(samples) == len(BATCH_BOUNDS_S) + 3
    assert {sample.value for sample in samples} == {0}
