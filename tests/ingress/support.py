"""Hold a running Spark ingress for tests: its spool, its database, and waiting on conditions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
from pyspark.sql import SparkSession

from penstock.base.settings import Settings
from penstock.house import open_spool, spark_ingress
from penstock.ingress.on_spark import SparkIngress
from penstock.transport.port import Message

ACCEPTED_MS = 1_772_000_000_000


class Ingress:
    """A running Spark ingress on a spool of its own."""

    def __init__(self, settings: Settings, dsn: str) -> None:
        self.settings = settings
        self.dsn = dsn
        self.host: SparkIngress | None = None

    def write(self, lines: Sequence[bytes], *, via: str = "queue", tenant_id: str = "-") -> None:
        """Put raw lines on the queue, as a foreign producer does."""
        spool = open_spool(self.settings)
        spool.send([Message(line, ACCEPTED_MS, tenant_id, via) for line in lines]).result()
        spool.close()

    def waiting(self) -> list[Path]:
        return sorted(self.settings.spool_dir.glob("seg-*.jsonl"))

    def wait_until_empty(self, *, within_s: float = 60) -> None:
        wait_for(lambda: not self.waiting(), "the spool is empty", within_s=within_s)

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.dsn) as connection:
            return connection.execute(statement.encode()).fetchall()


def wait_for(claim: Callable[[], bool], what: str, *, within_s: float = 60) -> None:
    until = time.monotonic() + within_s
    while not claim():
        if time.monotonic() > until:
            raise AssertionError(f"never came true: {what}")
        time.sleep(0.02)


@contextmanager
def running(session: SparkSession, ingress: Ingress) -> Iterator[Ingress]:
    """Run the ingress in a thread for as long as the block lasts."""
    stop = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            with spark_ingress(session, ingress.settings, ingress.dsn, stop) as host:
                ingress.host = host
                host.run(stop)
        except BaseException as error:  # the test thread must hear of it
            failed.append(error)
            raise

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield ingress
    finally:
        stop.set()
        thread.join(30)
    assert not failed, failed
