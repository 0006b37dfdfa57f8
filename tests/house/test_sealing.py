"""The worker seals what is stored, and says so when it must not."""

from __future__ import annotations

import threading
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs
from tests.api.support import wait_until
from tests.store.audit.support import event, store

from penstock.base.settings import Settings
from penstock.house.audit import checkpoints_dir, sealing, verify_log
from penstock.store.audit.on_disk import CheckpointFolder


@pytest.fixture
def settings(tmp_path: Path, database: str) -> Settings:
    return Settings(
        data_dir=tmp_path, database_url=SecretStr(database), demo=False, retention_days=1
    )


def test_what_is_stored_is_sealed_and_signed_while_the_worker_runs(
    settings: Settings, database: str
) -> None:
    folder = CheckpointFolder(checkpoints_dir(settings))
    store(database, [event(n) for n in range(40)])

    with sealing(settings, database, threading.Event()):
        wait_until(lambda: bool(folder.notes()))

    report = verify_log(settings, begin=lambda _n: None, progress=lambda _n: None)
    assert (report.damages, report.sealed) == ((), 40)
    assert (settings.data_dir / "audit.key").stat().st_mode & 0o777 == 0o600


def test_damage_is_said_aloud_and_signed_by_nobody(settings: Settings, database: str) -> None:
    store(database, [event(n) for n in range(3)])
    with psycopg.connect(database) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("DELETE FROM workflow_events WHERE position = 2")

    with capture_logs() as said, sealing(settings, database, threading.Event()):
        wait_until(lambda: any(line["event"] == "audit_damaged" for line in said))

    (line, *_) = [line for line in said if line["event"] == "audit_damaged"]
    assert line["detail"] == "expected an event at position 2, found 3"
    assert CheckpointFolder(checkpoints_dir(settings)).notes() == []
