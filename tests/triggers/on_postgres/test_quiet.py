"""A pass that decides nothing waits for no disk; should it be lost, nobody is misled."""

from __future__ import annotations

import psycopg
from tests.triggers.on_postgres.support import (
    TableLauncher,
    await_that,
    host_of,
    runs,
    settle,
    spec,
    store,
)

from penstock.base.errors import StoreUnavailable
from penstock.triggers.book.on_postgres import TriggerBook
from penstock.triggers.host.on_postgres import TriggerHost

_IS_ON_DISK = "SELECT pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()"
# What a server that crashed may have lost: the last pass, when nothing was committed since.
_LOSE = """
WITH lost AS (DELETE FROM trigger_passes RETURNING pass)
UPDATE trigger_cursor SET pass = 0, position = 0 FROM lost
"""
_CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def on_disk(dsn: str, host: TriggerHost, event_type: str) -> int:
    """After how many of twenty passes, each over one event, everything was on disk."""
    found = 0
    with psycopg.connect(dsn, autocommit=True) as looking:
        for _ in range(20):
            store(dsn, 1, event_type=event_type)
            assert host.run_pass().number is not None
            found += looking.execute(_IS_ON_DISK).fetchone() == (True,)
    return found


def test_only_a_pass_that_decides_something_waits_for_the_disk(
    dsn: str, host: TriggerHost, book: TriggerBook
) -> None:
    book.create(spec(), workflow_slug="sync", by="ann")

    assert on_disk(dsn, host, "metastore.record.updated") > 10
    assert on_disk(dsn, host, "metastore.record.deleted") < 10
    assert len(runs(dsn)) == 20


def test_a_host_that_ran_a_pass_that_was_lost_goes_on_from_what_others_know(
    dsn: str, host: TriggerHost, launcher: TableLauncher, book: TriggerBook
) -> None:
    store(dsn, 1)
    assert host.run_pass().number == 1
    with psycopg.connect(dsn, autocommit=True) as server:
        server.execute(_LOSE)
        server.execute(_CUT)
    other = host_of(dsn, launcher)
    made = book.create(spec(debounceMs=50), workflow_slug="sync", by="ann")
    store(dsn, 1)
    assert other.run_pass().number == 1, "another pass by the same number"
    other.close()

    await_that(lambda: _settled(host) and len(runs(dsn)) == 1)
    ((_, trigger_id, _),) = runs(dsn)
    assert trigger_id == made.id


def _settled(host: TriggerHost) -> bool:
    """Whether the host did what it could; the first try finds that its connection was cut."""
    try:
        settle(host)
    except StoreUnavailable:
        return False
    return True
