"""Put the house together: Settings in, a working product out. The only file that picks parts.

prepare_database   the embedded server or the given one, migrated
open_house         everything the API and the command line stand on
run_ingress        the Spark ingress, one at a time per store
run_worker         the chores that keep the house in order
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from penstock.access.on_postgres import TokenStore
from penstock.access.token import Scope
from penstock.base.clock import Clock, SystemClock
from penstock.base.errors import PenstockError, StoreUnavailable
from penstock.base.on_disk import kept_secret
from penstock.base.on_postgres import EmbeddedPostgres, Pool, ensure_database, open_pool
from penstock.base.settings import Settings
from penstock.catalog.vocabularies import ALL
from penstock.envelope.envelope import DEFAULT_TENANT
from penstock.explorer.on_postgres import ExplorerReader
from penstock.health.on_disk import is_writable
from penstock.health.on_postgres import HealthReader, ReportBook
from penstock.ingress.door import Door
from penstock.ingress.inline import InlineHost
from penstock.ingress.progress import Plan, Progress
from penstock.registry.book import RegistryBook
from penstock.registry.on_postgres import PostgresRegistryStore
from penstock.registry.registry import Mode, Registry
from penstock.sql.on_postgres import migrate
from penstock.store.deadletters.on_postgres import DeadLetters
from penstock.store.deadletters.redrive import Redriver
from penstock.store.intake.on_postgres import LogIndex, PostgresIntake
from penstock.store.lease.on_postgres import IngressLease
from penstock.store.ledger.on_postgres import LedgerReader
from penstock.store.on_postgres import EventReader
from penstock.stream.on_postgres import Wake
from penstock.transport.on_disk import Spool, pending, recover
from penstock.transport.port import Transport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.ingress.on_spark import SparkIngress

_DATABASE = "penstock"
_CHORES_EVERY_S = 5.0
_REGISTRY_EVERY_S = 1.0
_SEGMENT_ROWS_KEPT_HOURS = 24
_log = structlog.get_logger("house")


@dataclass(slots=True)
class Database:
    """A migrated PostgreSQL, ours or somebody's."""

    dsn: str
    embedded: EmbeddedPostgres | None = None

    def revive(self) -> bool:
        """Start the embedded server again if it died; whether it had."""
        return self.embedded is not None and self.embedded.revive()

    def leave(self) -> None:
        if self.embedded is not None:
            self.embedded.leave()


def prepare_database(settings: Settings) -> Database:
    """Reach the database of these settings and bring it to the newest schema."""
    if settings.database_url is not None:
        database = Database(settings.database_url.get_secret_value())
    else:
        embedded = EmbeddedPostgres(settings.data_dir / "postgres")
        server = embedded.join()
        ensure_database(server, _DATABASE)
        database = Database(embedded.url(_DATABASE), embedded)
    for name in migrate(database.dsn):
        _log.info("migrated", migration=name)
    return database


@dataclass(frozen=True, slots=True)
class House:
    """Everything the API and the command line stand on."""

    settings: Settings
    clock: Clock
    book: RegistryBook
    door: Door
    reader: EventReader
    explorer: ExplorerReader
    dead_letters: DeadLetters
    redriver: Redriver
    ledger: LedgerReader
    tokens: TokenStore
    health: HealthReader
    wake: Wake
    transport: Transport
    pools: tuple[Pool, ...]
    database: Database
    stop: threading.Event

    def close(self) -> None:
        """Make durable what is under way, and let go of everything."""
        self.stop.set()
        self.transport.close()
        for pool in self.pools:
            pool.close()
        self.database.leave()


def open_house(settings: Settings) -> House:
    """A house on the store of these settings."""
    database = prepare_database(settings)
    clock = SystemClock()
    owner = open_pool(database.dsn, "owner", size_max=4)
    ingest = open_pool(database.dsn, "penstock_ingest", size_max=6)
    reader = open_pool(
        database.dsn, "penstock_reader", size_max=8, timeout_ms=settings.query_timeout_ms
    )
    book = RegistryBook(PostgresRegistryStore(owner), mode=settings.registry_mode)
    book.declare(ALL)
    index = LogIndex(ingest)
    cursor_key = bytes.fromhex(
        kept_secret(settings.data_dir / "cursor.key", lambda: secrets.token_hex(32))
    )
    dead_letters = DeadLetters(reader, ingest, cursor_key=cursor_key)
    transport = _transport(settings, database.dsn, book)
    queue = partial(pending, settings.spool_dir)
    ledger = LedgerReader(ingest, queue)
    tokens = TokenStore(owner, clock=clock)
    _admit_admin(settings, tokens)
    return House(
        settings=settings,
        clock=clock,
        book=book,
        door=Door(
            transport=transport,
            registry=book.current,
            known=index.known,
            keep=dead_letters.keep,
            clock=clock,
        ),
        reader=EventReader(reader, ingest, cursor_key=cursor_key),
        explorer=ExplorerReader(reader),
        dead_letters=dead_letters,
        redriver=Redriver(
            dead_letters,
            open_intake=partial(PostgresIntake, database.dsn),
            registry=book.refresh,
            known=index.known,
            clock=clock,
        ),
        ledger=ledger,
        tokens=tokens,
        health=_health(settings, ingest),
        wake=Wake(database.dsn),
        transport=transport,
        pools=(owner, ingest, reader),
        database=database,
        stop=_keep_fresh(book),
    )


def _keep_fresh(book: RegistryBook) -> threading.Event:
    """Look every second whether another process registered something, until told to stop."""
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(_REGISTRY_EVERY_S):
            book.refresh()

    threading.Thread(target=look, name="registry", daemon=True).start()
    return stop


def _health(settings: Settings, pool: Pool) -> HealthReader:
    if settings.events_mode == "inline":
        return HealthReader(pool)
    return HealthReader(
        pool,
        depth=partial(pending, settings.spool_dir),
        writable=partial(is_writable, settings.spool_dir),
    )


def _transport(settings: Settings, dsn: str, book: RegistryBook) -> Transport:
    if settings.events_mode == "inline":
        return InlineHost(PostgresIntake(dsn), book.current)
    return open_spool(settings)


def open_spool(settings: Settings) -> Spool:
    """The spool of these settings, for writing."""
    return Spool(
        settings.spool_dir,
        segment_bytes=settings.segment_bytes,
        segment_age_ms=settings.segment_age_ms,
        bytes_max=settings.spool_bytes_max,
    )


def _admit_admin(settings: Settings, tokens: TokenStore) -> None:
    """Make sure the operator's own token works."""
    secret = settings.admin_token
    if secret is None or tokens.find(secret.get_secret_value()) is not None:
        return
    tokens.create(
        "admin", DEFAULT_TENANT, [Scope.ADMIN], by="system", secret=secret.get_secret_value()
    )


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

    settings.spool_dir.mkdir(parents=True, exist_ok=True)
    pool = open_pool(dsn, "penstock_ingest", size_max=3)
    owner = open_pool(dsn, "owner", size_max=2)
    book = RegistryBook(PostgresRegistryStore(owner), mode=settings.registry_mode)
    book.declare(ALL)
    lease = IngressLease(dsn)

    def plan() -> Plan:
        return Plan(
            open_intake=partial(PostgresIntake, dsn),
            load_registry=partial(load_registry, dsn, settings.registry_mode),
            revision=book.refresh().revision,
            epoch=lease.hold(stop),
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
    root = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="penstock-ingress-", dir=root) as folder:
        yield Path(folder)


def _reporting(reports: ReportBook, spark_version: str) -> Callable[[Progress], None]:
    """Write what the ingress does into the store, at most once a second."""
    started = time.time()
    last = 0.0

    def report(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last < 1.0:
            return
        last = time.monotonic()
        with contextlib.suppress(StoreUnavailable):
            reports.write(
                "ingress",
                {
                    "pid": os.getpid(),
                    "startedAt": started,
                    "sparkVersion": spark_version,
                    **progress.as_json(),
                },
            )

    return report


def run_worker(settings: Settings, stop: threading.Event) -> None:
    """Do the chores until told to stop: seal what dead writers left, forget what is long done."""
    database = prepare_database(settings)
    settings.spool_dir.mkdir(parents=True, exist_ok=True)
    pool = open_pool(database.dsn, "owner", size_max=2)
    ledger = LedgerReader(pool, partial(pending, settings.spool_dir))
    reports = ReportBook(pool)
    tokens = TokenStore(pool)
    try:
        while not stop.is_set():
            _chores(settings, ledger, reports, tokens)
            stop.wait(_CHORES_EVERY_S)
    finally:
        pool.close()
        database.leave()


def _chores(
    settings: Settings, ledger: LedgerReader, reports: ReportBook, tokens: TokenStore
) -> None:
    try:
        sealed = recover(settings.spool_dir)
        forgotten = ledger.forget_segments(older_than_hours=_SEGMENT_ROWS_KEPT_HOURS)
        tokens.forget_tickets()
        account = ledger.read()
        if account.unexplained != 0:
            _log.error("ledger_unexplained", events=account.unexplained)
        reports.write(
            "worker",
            {
                "pid": os.getpid(),
                "sealedSegments": sealed,
                "forgottenSegments": forgotten,
                "unexplained": account.unexplained,
            },
        )
    except PenstockError as error:
        _log.warning("chores_postponed", code=error.code, detail=error.detail)
