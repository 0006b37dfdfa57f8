"""Open every room that the API and the command line stand on, and join them."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from functools import partial

import structlog

from penstock.access.on_postgres import TokenStore
from penstock.access.token import Scope
from penstock.base.clock import Clock, SystemClock
from penstock.base.on_disk import kept_secret
from penstock.base.on_postgres import Pool, open_pool
from penstock.base.settings import Settings
from penstock.catalog.vocabularies import ALL
from penstock.envelope.envelope import DEFAULT_TENANT
from penstock.explorer.on_postgres import ExplorerReader
from penstock.health.on_disk import is_writable
from penstock.health.on_postgres import HealthReader
from penstock.house.database import Database, prepare_database
from penstock.house.spool import open_spool
from penstock.ingress.door import Door
from penstock.ingress.inline import InlineHost
from penstock.registry.book import RegistryBook
from penstock.registry.on_postgres import PostgresRegistryStore
from penstock.store.deadletters.on_postgres import DeadLetters
from penstock.store.deadletters.redrive import Redriver
from penstock.store.intake.on_postgres import LogIndex, PostgresIntake
from penstock.store.ledger.on_postgres import LedgerReader
from penstock.store.on_postgres import EventReader
from penstock.stream.on_postgres import Wake
from penstock.transport.on_disk import pending
from penstock.transport.port import Transport

_REGISTRY_EVERY_S = 1.0
_log = structlog.get_logger("house")


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
    for conflict in book.declare(ALL):
        _log.error("declaration_conflicts", code=conflict.code, detail=conflict.detail)
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


def _admit_admin(settings: Settings, tokens: TokenStore) -> None:
    """Make sure the operator's own token works."""
    secret = settings.admin_token
    if secret is None or tokens.find(secret.get_secret_value()) is not None:
        return
    tokens.create(
        "admin", DEFAULT_TENANT, [Scope.ADMIN], by="system", secret=secret.get_secret_value()
    )
