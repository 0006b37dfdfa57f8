"""Workers are killed, stopped and cut off while runs go on; nothing is lost, nothing ends twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.workflows.on_postgres.process import MARKS, SLOTS
from tests.workflows.on_postgres.support import (
    CHAIN,
    TENANT,
    Handlers,
    Shop,
    backends,
    step,
    wait_for,
    workflow,
)
from tests.workflows.on_postgres.support import shop as open_shop

import penstock.workflows
from penstock.base.ids import uuid7
from penstock.base.on_postgres import EmbeddedPostgres, ensure_database
from penstock.sql.on_postgres import migrate
from penstock.workflows.book.on_postgres import WorkflowBook
from penstock.workflows.engine.launching.on_postgres import Launching
from penstock.workflows.engine.launching.start import Start
from penstock.workflows.engine.on_postgres import Engine
from penstock.workflows.port import Succeeded
from penstock.workflows.queue.job import LOST_MAX
from penstock.workflows.queue.on_postgres import WorkerQueue

ROOT = Path(__file__).parents[3]
SLOW = workflow("slow", step("a", handler="slow"))
BRIEF = workflow("brief", *(step(n, *b, handler="brief") for n, b in (("a", ""), ("b", "a"))))


@contextmanager
def process(dsn: str, name: str, lease_s: float = 60) -> Iterator[subprocess.Popen[bytes]]:
    """A worker of its own; it is gone when the block ends."""
    worker = subprocess.Popen(
        [sys.executable, "-m", "tests.workflows.on_postgres.process", dsn, name, str(lease_s)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
    )
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait()


def launch_many(shop: Shop, slug: str, count: int) -> list[str]:
    ids = [uuid7() for _ in range(count)]
    with psycopg.connect(shop.dsn) as connection:
        Launching().make(connection, [Start(key, TENANT, slug, {}, "tests") for key in ids])
    return ids


def active(shop: Shop) -> int:
    found = shop.ask("SELECT count(*) FROM workflow_runs WHERE status IN ('pending', 'running')")
    return int(found[0][0])


@pytest.mark.prove
def test_a_storm_of_kills_loses_no_run_and_ends_none_twice(shop: Shop) -> None:
    """Each kill takes what one worker had in hand; a step is to blame after its fifth, not before.

    So the storm ends before any step can have met that many.
    """
    shop.define(BRIEF)
    shop.do(MARKS)
    runs, rng, kills = launch_many(shop, "brief", 300), random.Random(5), 0

    with ExitStack() as stack:
        pair = [stack.enter_context(process(shop.dsn, f"victim-{n}")) for n in range(2)]
        while active(shop):
            # Whoever is killed next has begun to work, so that it dies with something in hand.
            victim = pair[kills % 2]
            worked = f"SELECT count(*) FROM marks WHERE pid = {victim.pid}"  # noqa: S608
            wait_for(lambda: not active(shop) or shop.ask(worked)[0][0], 30)
            until = time.monotonic() + rng.uniform(0.02, 0.2)
            wait_for(lambda: not active(shop) or time.monotonic() > until)
            if kills < LOST_MAX - 1 and active(shop):
                os.kill(victim.pid, signal.SIGKILL)
                kills += 1
                name = f"victim-{kills + 1}"
                pair[(kills - 1) % 2] = stack.enter_context(process(shop.dsn, name))

    statuses = shop.ask("SELECT status, count(*) FROM workflow_runs GROUP BY 1")
    executions = shop.ask("SELECT count(*) FROM marks")[0][0]
    lost = shop.ask("SELECT count(*) FROM job_runs WHERE failure_reason = 'worker_lost'")[0][0]
    assert kills >= 3, "the storm did not happen"
    assert 0 < lost <= SLOTS * kills, "a worker holds what it runs, and no more"
    assert statuses == [("succeeded", len(runs))]
    assert shop.ask("SELECT count(*) FROM jobs") == [(0,)]
    assert 2 * len(runs) <= executions <= 2 * len(runs) + SLOTS * kills
    ends = (
        "SELECT count(*), count(DISTINCT run_id) FROM event_outbox WHERE run_status = 'succeeded'"
    )
    assert shop.ask(ends) == [(len(runs), len(runs))]
    good = "SELECT count(*) FROM job_runs WHERE status = 'succeeded'"
    assert shop.ask(good) == [(2 * len(runs),)]


@pytest.mark.prove
def test_the_steps_of_a_killed_worker_run_elsewhere_within_three_seconds(shop: Shop) -> None:
    shop.define(SLOW)
    shop.do(MARKS)
    with process(shop.dsn, "victim") as victim:
        run = shop.start("slow")
        wait_for(lambda: shop.ask("SELECT count(*) FROM marks")[0][0], 30)
        handlers = Handlers(slow=lambda call: Succeeded(call.attempt))
        with shop.working(handlers, name="heir"):
            wait_for(lambda: backends(shop.dsn, "worker heir"))
            os.kill(victim.pid, signal.SIGKILL)
            killed_at = time.monotonic()
            wait_for(lambda: handlers.calls)
            took_s = time.monotonic() - killed_at

    assert took_s < 3
    found = WorkflowBook(shop.pool).runs.job_runs(TENANT, run)
    assert (found[0].status, found[0].failure_reason) == ("failed", "worker_lost")
    assert (found[0].kind, found[0].job_slug) == ("function", "slow")


@pytest.mark.prove
def test_a_worker_that_was_stopped_past_its_lease_is_fenced_when_it_continues(shop: Shop) -> None:
    shop.define(SLOW)
    shop.do(MARKS)
    with process(shop.dsn, "sleeper") as sleeper:
        run = shop.start("slow")
        wait_for(lambda: shop.ask("SELECT count(*) FROM marks")[0][0], 30)
        os.kill(sleeper.pid, signal.SIGSTOP)
        heir = Handlers(slow=lambda _call: Succeeded("heir"))
        with shop.working(heir, name="heir", lease_s=0.5):
            assert shop.ended(run) == ["succeeded"]
            os.kill(sleeper.pid, signal.SIGCONT)
            again = "SELECT count(*) FROM workflow_workers WHERE name = 'sleeper'"
            wait_for(lambda: shop.ask(again) == [(1,)], 30)  # it noticed, and began anew

    assert shop.output(run) == {"a": "heir"}
    found = WorkflowBook(shop.pool).runs.job_runs(TENANT, run)
    assert [(j.status, j.failure_reason, j.worker) for j in found] == [
        ("failed", "heartbeat-timeout", "sleeper"), ("succeeded", None, "heir"),
    ]  # fmt: skip


def test_a_worker_that_loses_its_connection_keeps_what_nobody_took(shop: Shop) -> None:
    shop.define(workflow("slow", step("a", handler="wait")))
    run, handlers = shop.start("slow"), Handlers()

    with shop.working(handlers, name="cut"):
        wait_for(lambda: handlers.calls)
        shop.do("SELECT pg_terminate_backend(%s)", backends(shop.dsn, "worker cut")[0])
        wait_for(lambda: shop.ask("SELECT count(*) FROM workflow_workers WHERE id > 1")[0][0])
        handlers.release.set()
        assert shop.ended(run) == ["succeeded"]

    assert len(handlers.calls) == 1


def test_a_worker_whose_jobs_were_taken_stops_them(shop: Shop) -> None:
    shop.define(workflow("slow", step("a", handler="wait")))
    shop.start("slow")
    handlers = Handlers()

    with shop.working(handlers, name="cut"):
        wait_for(lambda: handlers.calls)
        first = handlers.calls[0].job_run_id
        shop.do(
            "UPDATE jobs SET fence = fence + 1, worker = NULL, run_at = 'infinity', state = 'w'"
        )
        shop.do("SELECT pg_terminate_backend(%s)", backends(shop.dsn, "worker cut")[0])
        wait_for(handlers.canceled[first].is_set)


def test_without_its_wake_up_a_worker_polls(shop: Shop) -> None:
    shop.define(CHAIN)
    with shop.working():
        listening = "SELECT pid FROM pg_stat_activity WHERE query = 'LISTEN penstock_jobs'"
        wait_for(lambda: shop.ask(listening))
        shop.do("SELECT pg_terminate_backend(%s)", shop.ask(listening)[0][0])

        assert shop.ended(shop.start("chain"), within_s=10) == ["succeeded"]


@pytest.mark.prove
def test_runs_go_on_after_postgresql_was_stopped_at_once_in_their_midst() -> None:
    # Not in pytest's own folder: another run of it would close that to PostgreSQL's user.
    folder = tempfile.TemporaryDirectory(prefix="penstock-runs-")
    server = EmbeddedPostgres(Path(folder.name))
    server.join()
    try:
        ensure_database(server.url("postgres"), "runs")
        migrate(server.url("runs"))
        with open_shop(server.url("runs")) as shop:
            shop.define(CHAIN)
            runs = launch_many(shop, "chain", 300)
            with shop.working(), shop.working(name="second"):
                done = "SELECT count(*) FROM workflow_runs WHERE status = 'succeeded'"
                wait_for(lambda: shop.ask(done)[0][0] > 10)
                server._control("stop", "-m", "immediate", "-w")
                server.revive()
                assert set(shop.ended(*runs, within_s=60)) == {"succeeded"}
            assert shop.ask("SELECT count(*) FROM jobs") == [(0,)]
            assert shop.ask("SELECT count(*) FROM job_runs WHERE status = 'succeeded'") == [(900,)]
    finally:
        server.leave()
        folder.cleanup()


def test_a_step_that_outlives_too_many_workers_is_to_blame(shop: Shop) -> None:
    shop.define(CHAIN)
    run, handlers = shop.start("chain"), Handlers()
    shop.do("UPDATE jobs SET lost = %s", LOST_MAX)

    with shop.working(handlers):
        assert shop.ended(run) == ["failed"]

    assert handlers.calls == []
    (found, *_) = WorkflowBook(shop.pool).runs.steps(TENANT, run)
    assert found.failure_reason == "worker_lost"


@pytest.mark.prove
def test_a_step_that_kills_its_worker_is_blamed_and_its_neighbours_are_not(shop: Shop) -> None:
    shop.define(BRIEF, workflow("poison", step("a", handler="poison")))
    shop.do(MARKS)
    bad, good = shop.start("poison"), launch_many(shop, "brief", 40)

    with ExitStack() as stack:
        workers = [stack.enter_context(process(shop.dsn, "w0"))]
        while active(shop):
            if workers[-1].poll() is not None:
                workers.append(stack.enter_context(process(shop.dsn, f"w{len(workers)}")))
            wait_for(lambda: not active(shop) or workers[-1].poll() is not None, 60)

    assert shop.status(bad) == "failed"
    assert {shop.status(run) for run in good} == {"succeeded"}
    assert len(workers) == LOST_MAX + 1


def test_a_claim_stays_quick_over_two_hundred_thousand_delayed_jobs(shop: Shop) -> None:
    shop.define(CHAIN)
    shop.do(
        "INSERT INTO jobs (tenant_id, run_id, address, attempt, run_at)"
        " SELECT 't', 'r' || n, 'a', 1, now() + interval '1 day' FROM generate_series(1, 200000) n"
    )
    shop.do("ANALYZE jobs")
    jobs = WorkerQueue(shop.dsn, Engine(), name="one")
    jobs.open()
    jobs.turn([], 10)
    took_s = []
    for _ in range(15):
        shop.start("chain")
        began = time.perf_counter()
        assert len(jobs.turn([], 10).claimed) == 1
        took_s.append(time.perf_counter() - began)
    jobs.leave()

    assert sorted(took_s)[len(took_s) // 2] < 0.05


def test_only_the_databases_clock_is_asked() -> None:
    folder = Path(penstock.workflows.__file__).parent
    mine = [*folder.glob("queue/**/*.py"), *folder.glob("engine/**/*.py"), folder / "worker.py"]

    assert [
        str(module) for module in mine
        if any(word in module.read_text() for word in ("datetime.now", "time.time(", "utcnow"))
    ] == []  # fmt: skip
