"""The worker keeps snapshots ahead of those who ask, and lets go of them when it ends."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.api.support import settings_for, wait_until
from tests.store.support import KEY, load
from tests.store.timetravel.support import ISSUE, told

from penstock.base.on_postgres import open_pool
from penstock.house import snapshots
from penstock.store.timetravel.lens import as_stored
from penstock.store.timetravel.on_postgres import PostgresSnapshots, open_time_travel
from penstock.store.timetravel.snapshot import SnapshotKey


def test_the_worker_extends_the_snapshots_of_what_is_asked_about(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "_EVERY_S", 0.01)
    events = told(*({"n": n} for n in range(1, 2_301)))
    key, stop = SnapshotKey(ISSUE, "last-write-wins@1"), threading.Event()
    with open_pool(database, "owner", size_max=2) as pool:
        load(database, events[:1_000])
        travel = open_time_travel(pool, pool, cursor_key=KEY, lens=as_stored)
        travel.state(ISSUE)
        kept = PostgresSnapshots(pool, pool)
        load(database, events[1_000:])

        with snapshots.keeping_snapshots(settings_for(database, tmp_path), database, stop):
            wait_until(lambda: (found := kept.nearest(key, upto=2_300)) and found.position == 2_000)

        assert stop.is_set()
        assert not [t for t in threading.enumerate() if t.name == "snapshots"]
