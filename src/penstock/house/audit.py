"""Join what seals the log every second, and what checks it from the outside."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import structlog

from penstock.base.errors import AuditDamaged, PenstockError, RetentionRefused
from penstock.base.on_postgres import Pool, open_pool
from penstock.base.settings import Settings
from penstock.house.database import reach_database
from penstock.store.audit.check.on_postgres import verify
from penstock.store.audit.check.report import AuditReport
from penstock.store.audit.checkpoint import VerifierKey
from penstock.store.audit.on_disk import CheckpointFolder, find_key, open_key
from penstock.store.audit.on_postgres import Sealer
from penstock.store.retention.on_postgres import Retention
from penstock.store.retention.policy import Policy

_SEAL_EVERY_S = 1.0
_RETENTION_EVERY_S = 3_600.0
_END_S = 10.0
_PROCESSES = 2
_log = structlog.get_logger("audit")


def checkpoints_dir(settings: Settings) -> Path:
    """Where signed checkpoints are kept."""
    return settings.data_dir / "checkpoints"


def open_sealer(settings: Settings, pool: Pool) -> Sealer:
    """The sealer of this installation; its key is made when there is none."""
    folder = CheckpointFolder(checkpoints_dir(settings))
    return Sealer(pool, open_key(settings.data_dir), folder)


@contextlib.contextmanager
def sealing(settings: Settings, dsn: str, stop: threading.Event) -> Iterator[None]:
    """Seal what is stored, every second, on a thread of its own for as long as the block lasts."""
    pool = open_pool(dsn, "owner", size_max=1)
    done = threading.Event()
    thread = threading.Thread(
        target=_keep_sealing, args=(settings, pool, stop, done), name="sealer", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(_END_S)
        pool.close()


def _keep_sealing(
    settings: Settings, pool: Pool, stop: threading.Event, done: threading.Event
) -> None:
    sealer = open_sealer(settings, pool)
    retention = Retention(pool, Policy(settings.retention_days))
    looked_at = float("-inf")
    while not (stop.is_set() or done.is_set()):
        if time.monotonic() - looked_at >= _RETENTION_EVERY_S:
            _retain(retention)
            looked_at = time.monotonic()
        if not _seal(sealer):
            stop.wait(_SEAL_EVERY_S)


def _seal(sealer: Sealer) -> bool:
    """Seal once; whether there may be more at once."""
    try:
        return sealer.seal() > 0
    except AuditDamaged as error:
        # Nothing is signed over damage. It is said again and again until somebody looks.
        _log.critical("audit_damaged", detail=error.detail, remedy=error.remedy)
    except (PenstockError, psycopg.Error, OSError) as error:
        _log.warning("sealing_postponed", detail=str(error))
    return False


def _retain(retention: Retention) -> None:
    try:
        retention.move()
    except RetentionRefused as error:
        _log.warning("retention_refused", detail=error.detail, remedy=error.remedy)
    except (PenstockError, psycopg.Error) as error:
        _log.warning("retention_postponed", detail=str(error))


def audit_key(settings: Settings) -> VerifierKey:
    """The public key of this installation; SetupIncomplete when it has none."""
    return find_key(settings.data_dir).verifier


def verify_log(
    settings: Settings,
    *,
    key: VerifierKey | None = None,
    checkpoints: Path | None = None,
    begin: Callable[[int], None],
    progress: Callable[[int], None],
) -> AuditReport:
    """Check the log of these settings, straight in its database, against what was signed."""
    # Notes first: whoever signs commits before the note is written.
    notes = CheckpointFolder(checkpoints or checkpoints_dir(settings)).notes()
    key = key or audit_key(settings)
    database = reach_database(settings)
    try:
        return verify(
            database.dsn, notes, key, processes=_PROCESSES, begin=begin, progress=progress
        )
    finally:
        database.leave()
