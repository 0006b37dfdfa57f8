"""Metrics have bounded labels, base units, and names that dashboards can rely on."""

from __future__ import annotations

from datetime import UTC, datetime

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from penstock.health.prometheus import SOURCES_MAX, Metrics, write
from penstock.health.snapshot import Facts
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
