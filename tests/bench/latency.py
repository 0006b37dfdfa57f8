"""Measure how long an event takes from publish to a visible row, and a start to its first event.

Through Spark also after a minute in which nothing came: what nobody uses is put away by then.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import psycopg
from tests.bench.workload import events
from tests.prove.product import Product

from penstock.base.ids import uuid7
from penstock.base.on_postgres import EmbeddedPostgres

_IDLE_S = 75


def measure(folder: Path) -> dict[str, float]:
    """Percentiles through Spark and inline, and the time of a start."""
    for name in ("spark", "inline"):
        (folder / name).mkdir()
    product = Product(folder / "spark")
    product.start()
    product.stop()
    product = Product(folder / "spark")  # a prepared machine: everything is installed and migrated
    began = time.monotonic()
    try:
        product.start()
        _visible(product, began)
        first = time.monotonic() - began
        spark = _many(product, 60, pause_s=0.25)
        time.sleep(_IDLE_S)
        idle = _visible(product, time.monotonic())
        product.stop()
    finally:
        product.end()
    inline = Product(folder / "inline", PENSTOCK_EVENTS_MODE="inline")
    try:
        inline.start()
        direct = _many(inline, 200, pause_s=0.02)
        inline.stop()
    finally:
        inline.end()
    return {
        "spark_p50_ms": _percentile(spark, 50),
        "spark_p99_ms": _percentile(spark, 99),
        "spark_after_idle_ms": round(idle, 1),
        "inline_p50_ms": _percentile(direct, 50),
        "inline_p99_ms": _percentile(direct, 99),
        "up_to_first_event_s": round(first, 1),
    }


def _many(product: Product, count: int, *, pause_s: float) -> list[float]:
    for _ in range(10):
        _visible(product, time.monotonic())
    taken = []
    for _ in range(count):
        began = time.monotonic()
        taken.append(_visible(product, began))
        time.sleep(pause_s)
    return taken


def _visible(product: Product, began: float) -> float:
    """Publish one event over HTTP and wait until its row is there; milliseconds since `began`."""
    server = EmbeddedPostgres(product.folder / "data" / "postgres")
    (event,) = events(1)
    event["id"] = uuid7()
    with psycopg.connect(server.url("penstock"), autocommit=True) as connection:
        answer = product.client.post("/v1/events", json=event)
        assert answer.status_code == 202, answer.text
        while True:
            found = connection.execute(
                "SELECT 1 FROM workflow_events WHERE tenant_id = 'default' AND id = %s",
                (event["id"],),
            )
            if found.fetchone() is not None:
                return (time.monotonic() - began) * 1000
            time.sleep(0.001)


def _percentile(values: list[float], percent: int) -> float:
    return round(statistics.quantiles(values, n=100)[percent - 1], 1)
