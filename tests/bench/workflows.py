"""Measure workflows: no-op jobs, three-step runs beside DBOS, and the steps of a killed worker.

All on the embedded server as it is installed, every commit durable, one worker process.

`jobs_per_s` counts steps of runs that have a hundred each, launched beforehand, from the start of
the worker to the end of the last; every step leaves its row, its execution and its history. The
handler is inline and does nothing: it is the queue that is measured. `threaded_jobs_per_s` is the
same with a thread for each step.

Three-step runs are measured from the first launch to the last end, for both: ours launched in bulk,
as triggers do; DBOS with its queue and with plain starts, of which the better one counts. They take
turns, so that whatever else the machine does harms both alike; the ratio is that of the medians.
`…_with_events` is ours with the relay storing three events of each run in the log at the same time,
and until the last of them is there. Killed workers and their heirs keep the default pace.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict
from tests.workflows.on_postgres.process import MARKS

from penstock.base.clock import SystemClock
from penstock.base.ids import uuid7
from penstock.base.on_postgres import Pool, ensure_database, open_pool
from penstock.base.settings import Settings
from penstock.catalog.vocabularies import ALL
from penstock.envelope.envelope import DEFAULT_TENANT, JsonValue
from penstock.house import Database, prepare_database
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.store.append.appends import Appends
from penstock.store.append.on_postgres import PostgresLog
from penstock.workflows.book.definitions.on_postgres import DefinitionBook
from penstock.workflows.engine.acts.on_postgres import RunActs
from penstock.workflows.engine.launching.on_postgres import Launching
from penstock.workflows.engine.launching.start import Start
from penstock.workflows.engine.on_postgres import Engine
from penstock.workflows.outbox.on_postgres import PostgresOutbox
from penstock.workflows.outbox.relay import OutboxRelay
from penstock.workflows.port import StepCall, StepResult, Succeeded
from penstock.workflows.queue.ear.on_postgres import Ear
from penstock.workflows.queue.on_postgres import WorkerQueue
from penstock.workflows.worker import WorkflowWorker

_TURNS = 5
_RUNS, _DBOS_RUNS = 1_500, 150
_WIDE_RUNS, _WIDE = 60, 100
_KILLS = 5
_ROOT = Path(__file__).parents[2]
_ACTIVE = "SELECT count(*) FROM workflow_runs WHERE status IN ('pending', 'running')"


class Nothing:
    """An executor whose steps do nothing."""

    def run(self, _call: StepCall) -> StepResult:
        return Succeeded()

    def cancel(self, call_id: str) -> None: ...


def measure(folder: Path) -> dict[str, float]:
    """Jobs and runs per second, their ratio to DBOS, and how long a killed worker is missed."""
    with ExitStack() as stack:
        database = prepare_database(Settings(data_dir=folder / "data"))
        stack.callback(database.leave)
        pool = stack.enter_context(open_pool(database.dsn, "owner", size_max=6))
        _define(pool)
        jobs = [_wide(database, pool, inline=True) for _ in range(3)]
        threaded = [_wide(database, pool, inline=False) for _ in range(3)]
        queued, started = stack.enter_context(_dbos(database))
        rates: dict[str, list[float]] = {"ours": [], "queued": [], "started": [], "events": []}
        for _ in range(_TURNS):
            rates["ours"].append(_three(database, pool))
            rates["queued"].append(queued())
            rates["started"].append(started())
            rates["events"].append(_three(database, pool, with_events=True))
        median = {name: statistics.median(each) for name, each in rates.items()}
        theirs = max(median["queued"], median["started"])
        missed = _killed(database, pool)
    return {
        "jobs_per_s": round(statistics.median(jobs)),
        "threaded_jobs_per_s": round(statistics.median(threaded)),
        "runs_3_steps_per_s": round(median["ours"]),
        "runs_3_steps_with_events_per_s": round(median["events"]),
        "dbos_runs_3_steps_per_s": round(theirs, 1),
        "ratio_to_dbos": round(median["ours"] / theirs, 1),
        "ratio_to_dbos_with_events": round(median["events"] / theirs, 1),
        "killed_to_rerun_p50_s": round(statistics.median(missed), 2),
        "killed_to_rerun_max_s": round(max(missed), 2),
    }


def _define(pool: Pool) -> None:
    def step(name: str, *after: str, handler: str = "nothing") -> JsonValue:
        return {"id": name, "type": "function", "handler": handler, "dependsOn": list(after)}

    book = DefinitionBook(pool)
    shapes: dict[str, list[JsonValue]] = {
        "three": [step("a"), step("b", "a"), step("c", "b")],
        "wide": [step(f"s{n}") for n in range(_WIDE)],
        "slow": [step("a", handler="slow")],
    }
    for slug, steps in shapes.items():
        book.create(DEFAULT_TENANT, {"slug": slug, "name": slug, "steps": steps}, by="bench")


def _launch(pool: Pool, slug: str, count: int) -> None:
    launching = Launching()
    for begin in range(0, count, 500):
        starts = [
            Start(uuid7(), DEFAULT_TENANT, slug, {}, "bench")
            for _ in range(begin, min(count, begin + 500))
        ]
        with pool.connection() as connection, connection.transaction():
            launching.make(connection, starts)


@contextmanager
def _working(dsn: str, *, inline: bool = True) -> Iterator[None]:
    stop = threading.Event()
    worker = WorkflowWorker(
        WorkerQueue(dsn, Engine(), name="bench"), Nothing(), Ear(dsn), is_inline=lambda _: inline
    )
    thread = threading.Thread(target=worker.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        worker.wake()
        thread.join()


def _wait(pool: Pool, question: str, until: Callable[[int], bool] = lambda n: n == 0) -> None:
    with pool.connection() as connection:
        while True:
            row = connection.execute(question.encode()).fetchone()
            if row is not None and until(row[0]):
                return
            time.sleep(0.01)


def _wide(database: Database, pool: Pool, *, inline: bool) -> float:
    _launch(pool, "wide", _WIDE_RUNS)
    began = time.perf_counter()
    with _working(database.dsn, inline=inline):
        _wait(pool, _ACTIVE)
        return _WIDE_RUNS * _WIDE / (time.perf_counter() - began)


def _three(database: Database, pool: Pool, *, with_events: bool = False) -> float:
    with ExitStack() as stack:
        stack.enter_context(_working(database.dsn))
        if with_events:
            _drain(database, pool)
            stack.enter_context(_relaying(database, pool))
        began = time.perf_counter()
        _launch(pool, "three", _RUNS)
        _wait(pool, _ACTIVE)
        if with_events:
            _wait(pool, "SELECT count(*) FROM event_outbox")
        return _RUNS / (time.perf_counter() - began)


@contextmanager
def _appends(database: Database) -> Iterator[Appends]:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    with open_pool(database.dsn, "penstock_reader", size_max=2) as readers:
        log = PostgresLog(database.dsn, readers)
        appends = Appends(log, registry=book.current, clock=SystemClock())
        yield appends
        appends.close()


@contextmanager
def _relaying(database: Database, pool: Pool) -> Iterator[None]:
    with _appends(database) as appends:
        relay, stop = OutboxRelay(PostgresOutbox(pool, appends)), threading.Event()
        thread = threading.Thread(target=relay.run, args=(stop,))
        thread.start()
        yield
        stop.set()
        thread.join()


def _drain(database: Database, pool: Pool) -> None:
    """Only the events of this turn count."""
    with _appends(database) as appends:
        outbox = PostgresOutbox(pool, appends)
        while outbox.move():
            pass


@contextmanager
def _dbos(database: Database) -> Iterator[tuple[Callable[[], float], Callable[[], float]]]:
    # Not among what the tests need: `pip install -r requirements/bench.txt`.
    from dbos import DBOS

    ensure_database(database.dsn, "dbos")
    info = conninfo_to_dict(database.dsn)
    address = f"postgresql+psycopg://{info['user']}@/dbos?host={info['host']}"
    DBOS(
        config={
            "name": "bench", "system_database_url": address, "log_level": "ERROR",
            "max_executor_threads": 64, "sys_db_pool_size": 20,
        }
    )  # fmt: skip

    @DBOS.step()
    def nothing() -> None: ...

    @DBOS.workflow()
    def three() -> None:
        nothing()
        nothing()
        nothing()

    def rate(start: Callable[[], object]) -> float:
        began = time.perf_counter()
        handles = [start() for _ in range(_DBOS_RUNS)]
        for handle in handles:
            handle.get_result(polling_interval_sec=0.05)  # type: ignore[attr-defined]
        return _DBOS_RUNS / (time.perf_counter() - began)

    DBOS.launch()
    queue = DBOS.register_queue("bench", polling_interval_sec=0.05)
    try:
        yield (
            lambda: rate(lambda: queue.enqueue(three)),
            lambda: rate(lambda: DBOS.start_workflow(three)),
        )
    finally:
        DBOS.destroy()


def _killed(database: Database, pool: Pool) -> list[float]:
    """How long after the kill of its worker a step begins again in another, each time."""
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        connection.execute(MARKS.encode())
    acts, took_s = RunActs(pool), []
    for n in range(_KILLS):
        run = acts.start(DEFAULT_TENANT, "slow")
        marks = f"SELECT count(*) FROM marks WHERE job_run_id LIKE '{run}%'"
        with _process(database, f"victim-{n}") as victim:
            _wait(pool, marks, lambda found: found == 1)
            with _process(database, f"heir-{n}"):
                heirs = f"SELECT count(*) FROM workflow_workers WHERE name = 'heir-{n}'"
                _wait(pool, heirs, lambda found: found == 1)
                victim.kill()
                began = time.perf_counter()
                _wait(pool, marks, lambda found: found == 2)
                took_s.append(time.perf_counter() - began)
                acts.cancel(DEFAULT_TENANT, run, by="bench")
    return took_s


@contextmanager
def _process(database: Database, name: str) -> Iterator[subprocess.Popen[bytes]]:
    words = ["-m", "tests.workflows.on_postgres.process", database.dsn, name, "60", "default"]
    process = subprocess.Popen([sys.executable, *words], cwd=_ROOT, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
