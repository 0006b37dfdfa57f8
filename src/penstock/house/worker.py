"""Act on events, and do the chores that keep the house in order."""

from __future__ import annotations

import os
import threading
from functools import partial

import structlog

from penstock.access.on_postgres import TokenStore
from penstock.base.clock import SystemClock
from penstock.base.errors import PenstockError
from penstock.base.on_postgres import open_pool
from penstock.base.settings import Settings
from penstock.health.on_postgres import ReportBook
from penstock.house.acting import acting
from penstock.house.audit import sealing
from penstock.house.database import prepare_database
from penstock.house.snapshots import keeping_snapshots
from penstock.store.ledger.on_postgres import LedgerReader
from penstock.transport.on_disk import pending, recover

_CHORES_EVERY_S = 5.0
_SEGMENT_ROWS_KEPT_HOURS = 24
_log = structlog.get_logger("worker")


def run_worker(settings: Settings, stop: threading.Event) -> None:
    """Judge, run and do the chores until told to stop."""
    database = prepare_database(settings)
    pool = open_pool(database.dsn, "owner", size_max=2)
    ledger = LedgerReader(pool, partial(pending, settings.spool_dir))
    reports = ReportBook(pool)
    tokens = TokenStore(pool)
    try:
        with (
            keeping_snapshots(settings, database.dsn, stop),
            sealing(settings, database.dsn, stop),
            acting(settings, database.dsn, stop, SystemClock()),
        ):
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
