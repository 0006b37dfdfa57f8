"""Run the Spark ingress of the settings, one at a time per store."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.base.errors import StoreUnavailable
from penstock.base.on_disk import scratch_folder
from penstock.base.on_postgres import open_pool
from penstock.base.settings import Settings
from penstock.catalog.vocabularies import ALL
from penstock.envelope.envelope import JsonObject
from penstock.health.on_postgres import ReportBook
from penstock.house.database import prepare_database
from penstock.house.privacy import protect_for
from penstock.ingress.progress import Plan, Progress
from penstock.registry.book import RegistryBook
from penstock.registry.on_postgres import PostgresRegistryStore
from penstock.registry.registry import Mode, Registry
from penstock.store.intake.on_postgres import PostgresIntake
from penstock.store.lease.on_postgres import IngressLease
from penstock.store.ledger.on_postgres import LedgerReader
from penstock.transport.on_disk import pending, recover

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.ingress.on_spark import SparkIngress


@dataclass(frozen=True, slots=True)
class OpenIntake:
    """How an executor gets to the store; picklable, and equal when it leads to the same one."""

    dsn: str

    def __call__(self) -> PostgresIntake:
        return PostgresIntake(self.dsn)


def load_registry(dsn: str, mode: Mode) -> Registry:
    """The registry as it is now, read over a connection of its own; runs on executors."""
    pool = open_pool(dsn, "penstock_ingest", size_max=1)
    try:
        return RegistryBook(PostgresRegistryStore(pool), mode=mode).current()
    finally:
        pool.close()


def run_ingress(settings: Settings, stop: threading.Event) -> None:
    """Judge and store what is on the spool until told to stop."""
    # Spark is imported by the one process that needs it; the others start in a moment.
    from penstock.base.on_spark import open_session

    database = prepare_database(settings)
    session = open_session(settings, name="penstock-ingress")
    try:
        with spark_ingress(session, settings, database.dsn, stop) as ingress:
            ingress.warm_up(settings.ingress_concurrency)
            ingress.run(stop)
    finally:
        session.stop()
        database.leave()


@contextlib.contextmanager
def spark_ingress(
    session: SparkSession, settings: Settings, dsn: str, stop: threading.Event
) -> Iterator[SparkIngress]:
    """The ingress of these settings on a session, with what it needs opened and closed."""
    from penstock.ingress.on_spark import SparkIngress

    recover(settings.spool_dir)  # makes the folder too, for nobody else to read
    pool = open_pool(dsn, "penstock_ingest", size_max=3)
    owner = open_pool(dsn, "owner", size_max=2)
    book = RegistryBook(PostgresRegistryStore(owner), mode=settings.registry_mode)
    book.declare(ALL)
    lease = IngressLease(dsn)
    open_protect = protect_for(settings, dsn)

    def plan() -> Plan:
        return Plan(
            open_intake=OpenIntake(dsn),
            load_registry=partial(load_registry, dsn, settings.registry_mode),
            revision=book.refresh().revision,
            epoch=lease.hold(stop),
            open_protect=open_protect,
        )

    try:
        with _checkpoint() as checkpoint_dir:
            yield SparkIngress(
                session,
                spool_dir=settings.spool_dir.resolve(),
                checkpoint_dir=checkpoint_dir,
                plan=plan,
                settled=LedgerReader(pool, partial(pending, settings.spool_dir)).settled,
                report=_reporting(ReportBook(pool), session.version),
            )
    finally:
        lease.close()
        pool.close()
        owner.close()


@contextlib.contextmanager
def _checkpoint() -> Iterator[Path]:
    """A folder for the disposable checkpoint: in memory where the machine has such a place."""
    memory = Path("/dev/shm")  # noqa: S108  a folder of our own is made inside it
    can = memory.is_dir() and os.access(memory, os.W_OK)
    folder = scratch_folder(memory if can else Path(tempfile.gettempdir()), "penstock-ingress")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _reporting(reports: ReportBook, spark_version: str) -> Callable[[Progress], None]:
    """Write what the ingress does into the store, at most once a second."""
    about: JsonObject = {
        "pid": os.getpid(), "startedAt": time.time(), "sparkVersion": spark_version,
    }  # fmt: skip
    last = 0.0
    # The batches and the one who watches them report from two threads. One of them at a time: an
    # older word written after a newer one would make counters fall.
    writing = threading.Lock()

    def report(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last < 1.0 or not writing.acquire(blocking=False):
            return
        try:
            last = time.monotonic()
            with contextlib.suppress(StoreUnavailable):
                reports.write("ingress", about | progress.as_json())
        finally:
            writing.release()

    return report
