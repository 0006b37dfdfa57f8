"""Open every room that the API and the command line stand on, and join them."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from contextlib import ExitStack
from functools import cached_property, partial

import structlog

from penstock.access.on_postgres import TokenStore
from penstock.access.token import Scope
from penstock.base.clock import Clock, SystemClock
from penstock.base.on_disk import kept_secret
from penstock.base.on_postgres import open_pool
from penstock.base.settings import Settings
from penstock.catalog.vocabularies import ALL
from penstock.envelope.envelope import DEFAULT_TENANT
from penstock.explorer.on_postgres import ExplorerReader
from penstock.health.on_disk import is_writable
from penstock.health.on_postgres import HealthReader
from penstock.house.acting import acting
from penstock.house.acting_rooms import ActingRooms
from penstock.house.database import prepare_database
from penstock.house.privacy import open_vault
from penstock.house.readers import readers_of
from penstock.house.spool import open_spool
from penstock.ingress.door import Door
from penstock.ingress.inline import InlineHost
from penstock.ingress.protect import Protect
from penstock.registry.book import RegistryBook
from penstock.registry.on_postgres import PostgresRegistryStore
from penstock.registry.review import Reviewer
from penstock.store.append.appends import Appends
from penstock.store.append.on_postgres import PostgresLog
from penstock.store.audit.on_disk import open_key
from penstock.store.audit.on_postgres import AuditReader
from penstock.store.compatibility.on_postgres import PostgresPayloads
from penstock.store.deadletters.on_postgres import DeadLetters
from penstock.store.deadletters.redrive import Redriver
from penstock.store.intake.on_postgres import LogIndex, PostgresIntake
from penstock.store.ledger.on_postgres import LedgerReader
from penstock.store.on_postgres import EventReader
from penstock.store.privacy.hide import Hiding
from penstock.store.privacy.marks import as_stored
from penstock.store.privacy.on_postgres import PostgresErasable
from penstock.store.privacy.vault import Vault
from penstock.store.privacy.within import folded
from penstock.store.timetravel.on_postgres import PostgresHistory, open_time_travel
from penstock.store.timetravel.travel import TimeTravel
from penstock.stream.notices.on_postgres import Notices
from penstock.stream.on_postgres import Wake
from penstock.transport.on_disk import Spool, pending
from penstock.transport.port import Transport

_LOOK_EVERY_S = 1.0
_log = structlog.get_logger("house")


class House(ActingRooms):
    """Everything the API and the command line stand on; each room is joined where it is named."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clock: Clock = SystemClock()
        self.database = prepare_database(settings)
        dsn, timeout_ms = self.database.dsn, settings.query_timeout_ms
        self.owner = open_pool(dsn, "owner", size_max=4)
        self.ingest = open_pool(dsn, "penstock_ingest", size_max=6)
        self.readers = open_pool(dsn, "penstock_reader", size_max=8, timeout_ms=timeout_ms)
        self.cursor_key = bytes.fromhex(
            kept_secret(settings.data_dir / "cursor.key", lambda: secrets.token_hex(32))
        )
        self.book = RegistryBook(PostgresRegistryStore(self.owner), mode=settings.registry_mode)
        self._stop = threading.Event()
        self._inside = ExitStack()
        self._exhausted = threading.Event()  # set when handlers that never return fill the process

    @cached_property
    def transport(self) -> Transport:
        if self.settings.events_mode == "inline":
            return InlineHost(self.open_intake(), self.book.current, self.protect)
        return open_spool(self.settings)

    @cached_property
    def door(self) -> Door:
        return Door(
            transport=self.transport,
            registry=self.book.current,
            known=self.index.known,
            keep=self.dead_letters.keep,
            clock=self.clock,
            protect=self.protect,
        )

    @cached_property
    def vault(self) -> Vault:
        return open_vault(self.settings, self.ingest.connection)

    @cached_property
    def protect(self) -> Protect:
        return Hiding(self.vault)

    @cached_property
    def erasable(self) -> PostgresErasable:
        return PostgresErasable(self.owner)

    @cached_property
    def audit(self) -> AuditReader:
        return AuditReader(self.ingest, open_key(self.settings.data_dir).verifier)

    @cached_property
    def index(self) -> LogIndex:
        return LogIndex(self.ingest)

    @cached_property
    def reader(self) -> EventReader:
        return EventReader(self.readers, self.ingest, cursor_key=self.cursor_key)

    @cached_property
    def appends(self) -> Appends:
        return Appends(
            PostgresLog(self.database.dsn, self.readers),
            registry=self.book.current,
            clock=self.clock,
            protect=self.protect,
        )

    @cached_property
    def reviewer(self) -> Reviewer:
        payloads = PostgresPayloads(self.readers)
        return Reviewer(
            self.book.current,
            payloads,
            clock=self.clock,
            as_stored=as_stored,
            readers=readers_of(self.trigger_book, self.workflow_book),
        )

    @cached_property
    def history(self) -> PostgresHistory:
        return PostgresHistory(self.readers)

    @cached_property
    def explorer(self) -> ExplorerReader:
        return ExplorerReader(self.readers)

    @cached_property
    def time_travel(self) -> TimeTravel:
        return open_time_travel(
            self.readers,
            self.ingest,
            cursor_key=self.cursor_key,
            lens=lambda: folded(self.book.current()),
            clock=self.clock,
        )

    @cached_property
    def dead_letters(self) -> DeadLetters:
        return DeadLetters(self.readers, self.ingest, cursor_key=self.cursor_key)

    @cached_property
    def redriver(self) -> Redriver:
        return Redriver(
            self.dead_letters,
            open_intake=self.open_intake,
            registry=self.book.refresh,
            known=self.index.known,
            clock=self.clock,
            protect=self.protect,
        )

    @cached_property
    def ledger(self) -> LedgerReader:
        return LedgerReader(self.ingest, partial(pending, self.settings.spool_dir))

    @cached_property
    def tokens(self) -> TokenStore:
        return TokenStore(self.owner, clock=self.clock)

    @cached_property
    def health(self) -> HealthReader:
        if self.settings.events_mode == "inline":
            return HealthReader(self.ingest)
        folder = self.settings.spool_dir
        return HealthReader(
            self.ingest, depth=partial(pending, folder), writable=partial(is_writable, folder)
        )

    @cached_property
    def wake(self) -> Wake:
        return Wake(self.database.dsn)

    @cached_property
    def notices(self) -> Notices:
        return Notices(self.database.dsn)

    def open_intake(self) -> PostgresIntake:
        """An intake over a connection of its own."""
        return PostgresIntake(self.database.dsn)

    def start(self) -> None:
        """Declare what the code declares, let the operator in, and keep watch."""
        for conflict in self.book.declare(ALL):
            _log.error("declaration_conflicts", code=conflict.code, detail=conflict.detail)
        self._admit_admin()
        threading.Thread(target=self._keep_watch, name="house", daemon=True).start()

    def act_here(self) -> None:
        """Judge and run in this process, as inline mode promises, until the house is closed."""
        dsn = self.database.dsn
        self._inside.enter_context(acting(self.settings, dsn, self._exhausted, self.clock))

    def close(self) -> None:
        """Make durable what is under way, and let go of everything."""
        self._stop.set()
        self._inside.close()
        if "trigger_host" in self.__dict__:
            self.trigger_host.close()
        if "transport" in self.__dict__:
            self.transport.close()
        if "appends" in self.__dict__:
            self.appends.close()
        for pool in (self.owner, self.ingest, self.readers):
            pool.close()
        self.database.leave()

    def _admit_admin(self) -> None:
        secret = self.settings.admin_token
        if secret is None or self.tokens.find(secret.get_secret_value()) is not None:
            return
        self.tokens.create(
            "admin", DEFAULT_TENANT, [Scope.ADMIN], by="system", secret=secret.get_secret_value()
        )

    def _keep_watch(self) -> None:
        """Look every second whether another process registered something, and whether we can go on.

        A disk that failed a sync may have lost what it said it kept. The spool then acknowledges
        nothing more, and only a new process, which reads back what is there, may.
        """
        while not self._stop.wait(_LOOK_EVERY_S):
            self.book.refresh()
            if self._exhausted.is_set():
                os.kill(os.getpid(), signal.SIGTERM)  # drains and ends; a new process has room
            queue = self.__dict__.get("transport")
            if isinstance(queue, Spool) and queue.fault is not None:
                _log.critical("spool_broken", detail=str(queue.fault))
                os._exit(1)


def open_house(settings: Settings) -> House:
    """A house on the store of these settings, ready to be used."""
    house = House(settings)
    house.start()
    return house
