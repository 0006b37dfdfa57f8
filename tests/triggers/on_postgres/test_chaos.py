"""Whatever is killed, and however many judge at once: one run for every matching event."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg
import pytest
from tests.triggers.on_postgres.support import (
    TableLauncher,
    await_that,
    host_of,
    prepare_runs,
    runs,
    spec,
    store,
)

from penstock.base.backoff import Backoff
from penstock.base.on_postgres import EmbeddedPostgres, ensure_database, open_pool
from penstock.sql.on_postgres import migrate
from penstock.triggers.book.on_postgres import TriggerBook
from penstock.triggers.host.loop import TriggerLoop
from penstock.triggers.wake.on_postgres import Wake

ROOT = Path(__file__).parents[3]
ODD = {"type": "jsonPath", "path": "$.payload.mod", "operator": "in", "values": [1, 3, 5, 7, 9]}


def worker(dsn: str) -> subprocess.Popen[bytes]:
    """The loop in a process of its own."""
    command = [sys.executable, "-m", "tests.triggers.on_postgres.child", dsn]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)


@contextmanager
def looping(dsn: str) -> Iterator[TriggerLoop]:
    """The loop in a thread."""
    loop = TriggerLoop(
        host_of(dsn, TableLauncher()), Wake(dsn), backoff=Backoff(base_s=0.05, max_s=0.5)
    )
    thread = threading.Thread(target=loop.run)
    thread.start()
    yield loop
    loop.stop()
    thread.join(10)
    assert not thread.is_alive()


def cursor(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT position FROM trigger_cursor").fetchone()
    return int(row[0]) if row else 0


def is_beyond(dsn: str, position: int) -> bool:
    """Whether passes have come further than a position."""
    return cursor(dsn) > position


def make_triggers(dsn: str) -> None:
    with open_pool(dsn, "owner", size_max=1) as pool:
        book = TriggerBook(pool)
        book.create(spec(name="odd", predicates=[ODD]), workflow_slug="sync", by="ann")
        book.create(spec(name="all", eventType="metastore.**"), workflow_slug="audit", by="ann")


def check_launches(dsn: str, last: int) -> None:
    """Every event once at the trigger for all, every odd one once at the other."""
    found = [(event_ids, trigger_id) for _, trigger_id, event_ids in runs(dsn)]
    wanted = [f"evt-{n}" for n in range(1, last + 1) for _ in range(1 + n % 2)]
    assert [event_ids for event_ids, _ in found] == [[event_id] for event_id in wanted]
    assert len({(event_ids[0], trigger_id) for event_ids, trigger_id in found}) == len(found)
    with psycopg.connect(dsn) as connection:
        kept = connection.execute(
            "SELECT count(*), count(DISTINCT d.workflow_run_id), count(r.run_id)"
            "  FROM workflow_trigger_deliveries AS d"
            "  LEFT JOIN test_runs AS r ON r.run_id = d.workflow_run_id"
            " WHERE d.status = 'launched'"
        ).fetchone()
    assert kept == (len(wanted), len(wanted), len(wanted))


def test_a_worker_killed_at_random_instants_loses_and_doubles_nothing(dsn: str) -> None:
    make_triggers(dsn)
    dice, process = random.Random(5), worker(dsn)
    try:
        for n in range(10):
            before = cursor(dsn)
            for _ in range(10):
                store(dsn, 100)
            await_that(partial(is_beyond, dsn, before), within_s=60)
            time.sleep(dice.random() * 0.3)  # the instant of the kill, not a wait for anything
            if n < 9:
                process.kill()
                process.wait()
                process = worker(dsn)
        await_that(lambda: cursor(dsn) == 10_000, within_s=90)
    finally:
        process.kill()
        process.wait()

    check_launches(dsn, 10_000)


def test_two_workers_at_once_of_which_one_is_stopped_and_continued(dsn: str) -> None:
    make_triggers(dsn)
    one, two = worker(dsn), worker(dsn)
    try:
        for _ in range(5):
            store(dsn, 200)
            os.kill(one.pid, signal.SIGSTOP)
            store(dsn, 200)
            os.kill(one.pid, signal.SIGCONT)
        await_that(lambda: cursor(dsn) == 2_000, within_s=60)
    finally:
        for process in (one, two):
            process.kill()
            process.wait()

    check_launches(dsn, 2_000)


def test_a_worker_told_to_stop_ends_cleanly(dsn: str) -> None:
    make_triggers(dsn)
    process = worker(dsn)
    store(dsn, 10)
    await_that(lambda: cursor(dsn) == 10)

    process.terminate()

    assert process.wait(10) == 0


def test_an_event_is_judged_at_once_when_nothing_else_goes_on(dsn: str) -> None:
    make_triggers(dsn)
    with looping(dsn):
        store(dsn, 1)
        await_that(lambda: cursor(dsn) == 1)
        took = []
        for n in range(2, 22):
            begun = time.perf_counter()
            store(dsn, 1)
            await_that(partial(is_beyond, dsn, n - 1))
            took.append(time.perf_counter() - begun)

    assert sorted(took)[10] < 0.2  # a lazy loop would take its second of sleep


def test_the_loop_goes_on_when_its_connections_are_cut(dsn: str) -> None:
    make_triggers(dsn)
    with looping(dsn) as loop:
        for n in range(1, 6):
            store(dsn, 100)
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            await_that(partial(is_beyond, dsn, n * 100 - 1))
        # A pass whose connection is cut just after its commit counts for everybody but the loop.
        assert loop.passes > 0

    check_launches(dsn, 500)


@pytest.fixture
def own_server() -> Iterator[EmbeddedPostgres]:
    """A server that may be killed."""
    with tempfile.TemporaryDirectory(prefix="penstock-pg-") as folder:
        embedded = EmbeddedPostgres(Path(folder))
        embedded.join()
        yield embedded
        embedded.leave()


def test_a_killed_server_costs_time_and_nothing_else(own_server: EmbeddedPostgres) -> None:
    ensure_database(own_server.url("postgres"), "mine")
    dsn = own_server.url("mine")
    migrate(dsn)
    prepare_runs(dsn)
    make_triggers(dsn)
    with looping(dsn):
        store(dsn, 1_000)
        pid = own_server.pid
        assert pid is not None
        os.kill(pid, signal.SIGQUIT)
        await_that(lambda: own_server.pid is None)
        own_server.revive()
        store(dsn, 500)
        await_that(lambda: cursor(dsn) == 1_500)

    check_launches(dsn, 1_500)
