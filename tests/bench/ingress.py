"""Measure the ingress end to end beside plain COPY into the same indexed table.

Alone, with a process beside it that seals the log, and with a whole worker, which also judges every
event for triggers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from tests.bench.workload import lines

from penstock.base.settings import Settings
from penstock.catalog.vocabularies import ALL
from penstock.house import load_registry, open_spool, prepare_database, run_ingress
from penstock.ingress.pipeline import judge
from penstock.ingress.rows import EVENT_COLUMNS, event_line
from penstock.ingress.verdict import Accepted, Arrival
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.transport.port import Message

_IS_SEALED = """
SELECT (SELECT coalesce(max(last_position), 0) FROM audit_seals) >= position FROM head
"""
_AT = datetime(2026, 3, 1, 10, 30, tzinfo=UTC)


def measure(folder: Path, count: int) -> dict[str, float]:
    """Events per second of plain COPY and of the ingress, and their ratio."""
    settings = Settings(data_dir=folder / "data")
    database = prepare_database(settings)
    try:
        block = _copy_block(count)
        before = _plain_copy(database.dsn, block)
        rate, peak = _ingress(settings, database.dsn, count)
        after = _plain_copy(database.dsn, block)
        with _beside(settings, database.dsn, "tests.bench.sealing"):
            sealed, _ = _ingress(settings, database.dsn, count, seed=20)
        between = _plain_copy(database.dsn, block)
        with _beside(settings, database.dsn, "penstock.cli", "worker"):
            judged, _ = _ingress(settings, database.dsn, count, seed=40)
        last = _plain_copy(database.dsn, block)
    finally:
        database.leave()
    plain, plain_sealed = count / ((before + after) / 2), count / ((after + between) / 2)
    return {
        "plain_copy_per_s": round(plain),
        "ingress_per_s": round(rate),
        "ratio_to_plain_copy": round(rate / plain, 3),
        "ratio_to_10k_per_s": round(rate / 10_000, 2),
        "peak_rss_mb": round(peak / 1e6),
        "sealed_ingress_per_s": round(sealed),
        "sealed_ratio_to_plain_copy": round(sealed / plain_sealed, 3),
        "worker_ingress_per_s": round(judged),
        "worker_ratio_to_plain_copy": round(judged * (between + last) / 2 / count, 3),
    }


@contextmanager
def _beside(settings: Settings, dsn: str, *module: str) -> Iterator[None]:
    """Run a process beside, which seals what is stored; it has sealed what was there before."""
    environment = {**os.environ, "PENSTOCK_DATA_DIR": str(settings.data_dir)}
    process = subprocess.Popen(
        [sys.executable, "-m", *module], env=environment, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _wait_until_sealed(dsn)
        yield
    finally:
        process.terminate()
        process.wait(30)


def _wait_until_sealed(dsn: str) -> None:
    until = time.monotonic() + 120
    with psycopg.connect(dsn, autocommit=True) as connection:
        while connection.execute(_IS_SEALED).fetchone() != (True,):
            assert time.monotonic() < until, "the log is not sealed"
            time.sleep(0.1)


def _copy_block(count: int) -> list[bytes]:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    registry = book.current()
    arrival = Arrival(_AT, "unused")
    block = []
    for number, line in enumerate(lines(count, seed=2), 1):
        verdict = judge(line, arrival, registry)
        assert isinstance(verdict, Accepted), verdict
        block.append(b"%d\t2026-03-01 10:30:00+00%b" % (number, event_line(verdict)))
    return block


def _plain_copy(dsn: str, block: list[bytes]) -> float:
    """Seconds to COPY the rows into a table with the columns and indexes of the log."""
    with psycopg.connect(dsn) as connection:
        connection.execute("DROP TABLE IF EXISTS plain_copy")
        connection.execute("CREATE TABLE plain_copy (LIKE workflow_events INCLUDING ALL)")
        connection.commit()
        began = time.perf_counter()
        columns = ", ".join(EVENT_COLUMNS)
        with connection.cursor().copy(f"COPY plain_copy ({columns}) FROM STDIN") as copy:
            for start in range(0, len(block), 500):
                copy.write(b"".join(block[start : start + 500]))
        connection.commit()
        took = time.perf_counter() - began
        connection.execute("DROP TABLE plain_copy")
        return took


def _ingress(settings: Settings, dsn: str, count: int, seed: int = 3) -> tuple[float, float]:
    """Events per second until all are stored, and the most memory that took."""
    side = settings.model_copy(update={"queue_name": "bench-side", "segment_age_ms": 10_000})
    stop = threading.Event()
    runner = threading.Thread(target=run_ingress, args=(settings, stop), daemon=True)
    runner.start()
    load_registry(dsn, "strict")
    base = _head(dsn)
    for n in range(3):  # wake the executors, so that the run measures the steady state
        _fill(settings, lines(4_000, seed=seed + n))
        _wait_for_head(dsn, base + 4_000 * (n + 1))
    _fill(side, lines(count, seed=seed + 6))
    with PeakMemory() as peak:
        began = time.perf_counter()
        for segment in sorted(side.spool_dir.glob("seg-*.jsonl")):
            segment.rename(settings.spool_dir / segment.name)
        _wait_for_head(dsn, base + 12_000 + count)
        took = time.perf_counter() - began
    stop.set()
    runner.join(30)
    shutil.rmtree(side.spool_dir, ignore_errors=True)
    return count / took, peak[0]


def _fill(settings: Settings, messages: Iterator[bytes]) -> None:
    spool = open_spool(settings)
    batch: list[Message] = []
    at_ms = int(_AT.timestamp() * 1000)
    for line in messages:
        batch.append(Message(line, at_ms, "default", "http"))
        if len(batch) == 1_000:
            spool.send(batch).result()
            batch = []
    if batch:
        spool.send(batch).result()
    spool.close()


def _wait_for_head(dsn: str, position: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        while _position(connection) < position:
            time.sleep(0.02)


def _head(dsn: str) -> int:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return _position(connection)


def _position(connection: psycopg.Connection[tuple[int]]) -> int:
    row = connection.execute("SELECT position FROM head").fetchone()
    return 0 if row is None else row[0]


class PeakMemory:
    """The most memory this process and all below it held, sampled."""

    def __enter__(self) -> list[float]:
        import psutil

        self.peak = [0.0]
        self._stop = threading.Event()
        me = psutil.Process()

        def sample() -> None:
            while not self._stop.wait(0.5):
                total = 0.0
                for process in [me, *me.children(recursive=True)]:
                    try:
                        total += process.memory_info().rss
                    except psutil.Error:
                        continue
                self.peak[0] = max(self.peak[0], total)

        threading.Thread(target=sample, daemon=True).start()
        return self.peak

    def __exit__(self, *_: object) -> None:
        self._stop.set()
