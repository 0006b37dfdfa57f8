"""Join the rooms that act: triggers judge what is stored, workflows run what they decide.

    log ──▶ TriggerLoop ── launches ──▶ runs and jobs ──▶ WorkflowWorker ──▶ executors
     ▲                                                          │
     └──────────────── OutboxRelay ◀── events of runs ◀─────────┘        Scheduler starts runs too

One process does all of it, on threads: `penstock worker`, or `penstock serve` in inline mode. As
many as there are may run at once: one of them judges while it lives, and steps are claimed.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import structlog

from penstock.base.clock import Clock
from penstock.base.errors import PenstockError
from penstock.base.on_postgres import Pool, open_pool
from penstock.base.settings import Settings
from penstock.catalog.vocabularies import ALL
from penstock.envelope.envelope import JsonObject
from penstock.health.on_postgres import ReportBook
from penstock.health.rounds.on_postgres import alert_round
from penstock.house.jobs import load_jobs, own_jobs
from penstock.house.privacy import open_vault
from penstock.registry.book import RegistryBook
from penstock.registry.on_postgres import PostgresRegistryStore
from penstock.store.append.appends import Appends
from penstock.store.append.on_postgres import PostgresLog
from penstock.store.on_postgres import EventReader
from penstock.store.privacy.hide import Hiding
from penstock.triggers.host.loop import TriggerLoop
from penstock.triggers.host.on_postgres import TriggerHost
from penstock.triggers.limits import Breaker, Limits, parse_source_limits
from penstock.triggers.wake.on_postgres import Wake
from penstock.workflows.book.services.on_postgres import ServiceBook
from penstock.workflows.engine.launching.on_postgres import Launching
from penstock.workflows.engine.on_postgres import Engine, Plans
from penstock.workflows.engine.schedules.on_postgres import PostgresSchedules
from penstock.workflows.launch.callbacks import callbacks_in
from penstock.workflows.launch.executors import (
    Executors,
    ExecutorSettings,
    make_executors,
    make_outbound,
)
from penstock.workflows.launch.guard import PORTS
from penstock.workflows.launch.secrets.on_disk import SecretFolder
from penstock.workflows.outbox.on_postgres import PostgresOutbox, put
from penstock.workflows.outbox.relay import OutboxRelay
from penstock.workflows.plan import Caps
from penstock.workflows.queue.ear.on_postgres import Ear
from penstock.workflows.queue.on_postgres import WorkerQueue
from penstock.workflows.scheduler import Scheduler
from penstock.workflows.worker import Pace, WorkflowWorker, worker_name

_END_S = 12.0
_PATIENCE = timedelta(milliseconds=250)  # then another worker judges what this one should have
_ALERT_EVERY_S = 15.0
_log = structlog.get_logger("worker")


def limits_of(settings: Settings) -> Limits:
    """The limits that decisions are made under; SettingsInvalid when one is misspelt."""
    return Limits(
        sources=parse_source_limits(settings.event_source_rate_limits),
        breaker=Breaker(
            settings.trigger_error_threshold,
            settings.trigger_error_window_ms,
            settings.trigger_pause_ms,
        ),
    )


def plans_of(settings: Settings) -> Plans:
    """The plans of definitions, under the caps of these settings."""
    return Plans(Caps(settings.fanout_items_max, settings.fanout_concurrency_max))


def outbound_of(settings: Settings, sandbox_path: Sequence[str] = ()) -> ExecutorSettings:
    """What steps and alerts may reach: public addresses, and the networks that are listed."""
    surroundings = {"PENSTOCK_URL": settings.base_url}
    if sandbox_path:
        surroundings["PYTHONPATH"] = os.pathsep.join(sandbox_path)
    cidrs = [text.strip() for text in settings.allowed_outbound.split(",")]
    return ExecutorSettings(
        allowed_cidrs=tuple(filter(None, cidrs)),
        allowed_ports=PORTS if not any(cidrs) else frozenset(range(1, 65536)),
        blocked_ports=frozenset({settings.port, 5432}),
        sandbox_environment=surroundings,
    )


def open_trigger_host(dsn: str, settings: Settings, plans: Plans) -> TriggerHost:
    """A host that judges events, and starts workflows in the transaction of its decisions."""
    return TriggerHost(dsn, Launching(plans), limits_of(settings), outbox=put, patience=_PATIENCE)


def open_executors(
    settings: Settings, services: ServiceBook, appends: Appends, events: EventReader
) -> Executors:
    """Whatever can run a step; Spark is started by the first step that needs it."""
    folders = load_jobs(settings.jobs)
    return make_executors(
        outbound_of(settings, sandbox_path=folders),
        services,
        jobs=own_jobs(appends),
        secrets=SecretFolder(settings.data_dir / "secrets"),
        callbacks=callbacks_in(events.by_id),
        open_session=partial(_open_session, settings),
    )


def _open_session(settings: Settings) -> Any:
    from penstock.base.on_spark import open_session

    return open_session(settings, name="penstock-worker")


@contextlib.contextmanager
def acting(settings: Settings, dsn: str, stop: threading.Event, clock: Clock) -> Iterator[None]:
    """Judge, run, schedule and publish on threads, for as long as the block lasts."""
    pool = open_pool(dsn, "owner", size_max=5)
    readers = open_pool(dsn, "penstock_reader", size_max=2)
    ingest = open_pool(dsn, "penstock_ingest", size_max=1)
    book = RegistryBook(PostgresRegistryStore(pool), mode=settings.registry_mode)
    book.declare(ALL)
    protect = Hiding(open_vault(settings, ingest.connection))
    appends = Appends(
        PostgresLog(dsn, readers), registry=book.refresh, clock=clock, protect=protect
    )
    plans, done = plans_of(settings), threading.Event()
    events = EventReader(readers, cursor_key=b"")  # events by their id: nothing is paged
    executors = open_executors(settings, ServiceBook(pool), appends, events)
    loop = TriggerLoop(open_trigger_host(dsn, settings, plans), Wake(dsn))
    scheduler = Scheduler(PostgresSchedules(pool, plans))
    relay = OutboxRelay(PostgresOutbox(pool, appends))
    worker = _worker(settings, dsn, plans, executors)
    threads = [
        _thread("triggers", loop.run),
        _thread("workflows", partial(worker.run, done)),
        _thread("schedules", partial(scheduler.run, done)),
        _thread("outbox", partial(relay.run, done)),
        _thread("watch", partial(_end_when_exhausted, executors, stop, done)),
        _thread("alerts", partial(_keep_alerting, settings, pool, scheduler, done)),
    ]
    try:
        yield
    finally:
        done.set()
        loop.stop()
        worker.wake()
        for thread in threads:
            thread.join(_END_S)
        executors.close()
        appends.close()
        _close(pool, readers, ingest)


def _worker(settings: Settings, dsn: str, plans: Plans, executors: Executors) -> WorkflowWorker:
    queue = WorkerQueue(dsn, Engine(plans), name=worker_name())
    pace = Pace(slots=settings.worker_concurrency)
    return WorkflowWorker(queue, executors, Ear(dsn), pace=pace, is_inline=executors.is_inline)


def _end_when_exhausted(executors: Executors, stop: threading.Event, done: threading.Event) -> None:
    """Threads that never come back cannot be taken back: a new process can."""
    while not done.wait(1.0):
        if executors.is_exhausted:
            _log.critical("handlers_never_returned", abandoned=executors.abandoned, pid=os.getpid())
            stop.set()
            return


def _keep_alerting(
    settings: Settings, pool: Pool, scheduler: Scheduler, done: threading.Event
) -> None:
    """Tell people what they should know, and health what this scheduler did."""
    http = make_outbound(outbound_of(settings))
    reports = ReportBook(pool)
    while not done.wait(_ALERT_EVERY_S):
        try:
            alert_round(pool, settings, http)
            counts: JsonObject = {"runsCreated": scheduler.runs, "errors": scheduler.refused}
            reports.write(f"scheduler:{worker_name()}", counts)
        except PenstockError as error:
            _log.warning("alerts_postponed", code=error.code, detail=error.detail)


def _thread(name: str, run: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


def _close(*pools: Pool) -> None:
    for pool in pools:
        pool.close()
