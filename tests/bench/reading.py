"""Measure queries by tag and by correlation over a large log, and sealing and verifying it."""

from __future__ import annotations

import random
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.workload import lines

from penstock.base.on_postgres import open_pool
from penstock.base.settings import Settings
from penstock.catalog.vocabularies import ALL
from penstock.house import prepare_database
from penstock.house.audit import open_sealer, verify_log
from penstock.ingress.lot import Judged, Lot
from penstock.ingress.pipeline import judge
from penstock.ingress.rows import write
from penstock.ingress.verdict import Arrival
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.store.intake.on_postgres import PostgresIntake
from penstock.store.on_postgres import EventReader
from penstock.store.query import EventQuery


def measure(folder: Path, count: int) -> dict[str, float]:
    """p50 and p99 of a page by tag and by correlation id."""
    settings = Settings(data_dir=folder / "data")
    database = prepare_database(settings)
    try:
        _fill(database.dsn, count)
        pool = open_pool(database.dsn, "penstock_reader", timeout_ms=2_000)
        reader = EventReader(pool, cursor_key=b"0" * 32)
        rng = random.Random(1)
        tag = _time(reader, lambda: _query(tags=(("recordId", f"r{rng.randrange(20_000)}"),)))
        hot = _time(reader, lambda: _query(tags=(("namespace", f"ns-{rng.randrange(50)}"),)))
        correlation = _time(reader, lambda: _query(correlation_id=f"req-{rng.randrange(100_000)}"))
        pool.close()
        sealed_s, verified_s = _audit(settings, database.dsn, count)
    finally:
        database.leave()
    return {
        "events": count,
        "seal_s": round(sealed_s, 1),
        "verify_s": round(verified_s, 1),
        "tag_p50_ms": tag[0],
        "tag_p99_ms": tag[1],
        "hot_tag_p99_ms": hot[1],
        "correlation_p50_ms": correlation[0],
        "correlation_p99_ms": correlation[1],
    }


def _audit(settings: Settings, dsn: str, count: int) -> tuple[float, float]:
    """Seconds to seal the whole log, and to verify it against what was signed."""
    pool = open_pool(dsn, "owner", size_max=1)
    sealer = open_sealer(settings, pool)
    began = time.perf_counter()
    while sealer.seal():
        pass
    sealed = time.perf_counter()
    report = verify_log(settings, begin=lambda _: None, progress=lambda _: None)
    verified = time.perf_counter()
    pool.close()
    assert not report.damages, report
    assert report.events == count, report
    return sealed - began, verified - sealed


def _query(**filters: object) -> EventQuery:
    return EventQuery(tenant_id="default", **filters)  # type: ignore[arg-type]


def _time(reader: EventReader, make: object) -> tuple[float, float]:
    taken = []
    for _ in range(400):
        query = make()  # type: ignore[operator]
        began = time.perf_counter()
        reader.page(query, limit=100, cursor=None)
        taken.append((time.perf_counter() - began) * 1000)
    cuts = statistics.quantiles(taken, n=100)
    return round(cuts[49], 2), round(cuts[98], 2)


def _fill(dsn: str, count: int) -> None:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    registry = book.current()
    arrival = Arrival(datetime(2026, 3, 1, tzinfo=UTC))
    intake = PostgresIntake(dsn)
    lot: list[Judged] = []
    for line in lines(count):
        lot.append(Judged(line, judge(line, arrival, registry)))
        if len(lot) == 5_000:
            intake.settle(Lot(writer="bench", messages=write(lot)))
            lot = []
    intake.settle(Lot(writer="bench", messages=write(lot)))
    intake.close()
