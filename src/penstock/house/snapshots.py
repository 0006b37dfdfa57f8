"""Keep the snapshots of time travel ahead of those who ask, on a thread of the worker's own."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Iterator

import structlog

from penstock.base.errors import PenstockError
from penstock.base.on_postgres import Pool, open_pool
from penstock.base.settings import Settings
from penstock.catalog.vocabularies import ALL
from penstock.registry.book import RegistryBook
from penstock.registry.on_postgres import PostgresRegistryStore
from penstock.store.privacy.within import folded
from penstock.store.timetravel.on_postgres import open_time_travel
from penstock.store.timetravel.travel import TimeTravel

_EVERY_S = 60.0
_END_S = 5.0
_log = structlog.get_logger("worker")


@contextlib.contextmanager
def keeping_snapshots(settings: Settings, dsn: str, stop: threading.Event) -> Iterator[None]:
    """Extend snapshots in the background; a long fold holds up none of the other chores."""
    pool = open_pool(dsn, "owner", size_max=2)
    thread = threading.Thread(
        target=_keep, args=(settings, pool, stop), name="snapshots", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_END_S)
        pool.close()


def _keep(settings: Settings, pool: Pool, stop: threading.Event) -> None:
    travel: TimeTravel | None = None
    while not stop.wait(_EVERY_S):
        try:
            travel = travel or _open(settings, pool)
            extended, forgotten = travel.extend(), travel.tidy()
            if extended or forgotten:
                _log.info("snapshots_kept", extended=extended, forgotten=forgotten)
        except PenstockError as error:
            _log.warning("snapshots_postponed", code=error.code, detail=error.detail)


def _open(settings: Settings, pool: Pool) -> TimeTravel:
    book = RegistryBook(PostgresRegistryStore(pool), mode=settings.registry_mode)
    book.declare(ALL)  # the upcasters are part of what a snapshot is made by
    return open_time_travel(
        pool,
        pool,
        cursor_key=secrets.token_bytes(32),  # nobody pages through anything here: any key will do
        lens=lambda: folded(book.refresh()),
    )
