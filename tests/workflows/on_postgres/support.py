"""Make workflows, workers and executors for tests: real PostgreSQL, handlers that are functions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from penstock.base.on_postgres import Pool, open_pool
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.workflows.book.definitions.on_postgres import DefinitionBook
from penstock.workflows.engine.acts.on_postgres import RunActs
from penstock.workflows.engine.on_postgres import Engine
from penstock.workflows.port import Failed, Failure, StepCall, StepResult, Succeeded
from penstock.workflows.queue.ear.on_postgres import Ear
from penstock.workflows.queue.on_postgres import WorkerQueue
from penstock.workflows.worker import Pace, WorkflowWorker

TENANT = "acme"
Handler = Callable[[StepCall], StepResult]
QUICK = Pace(slots=4, poll_s=0.05, reap_s=0.05, heartbeat_s=0.2, cancel_s=0.05, leave_s=2.0)


def step(step_id: str, *after: str, handler: str = "echo", **fields: Any) -> JsonObject:
    return {
        "id": step_id, "type": "function", "handler": handler, "dependsOn": list(after), **fields,
    }  # fmt: skip


def workflow(slug: str, *steps: JsonObject, **fields: Any) -> JsonObject:
    return {"slug": slug, "name": slug, "steps": list(steps), **fields}


CHAIN = workflow(
    "chain",
    step("a", parameters={"n": 1}),
    step("b", "a", parameters={"n": "{{ steps.a.output.n }}"}),
    step("c", "b", parameters={"n": "{{ steps.b.output.n }}"}),
)
RETRY_AT_ONCE = {"maxAttempts": 3, "strategy": "none"}


def echo(call: StepCall) -> StepResult:
    return Succeeded(call.input)


class Handlers:
    """An executor over functions; `release` lets go those that wait."""

    def __init__(self, **handlers: Handler) -> None:
        self._handlers: dict[str, Handler] = {"echo": echo, "wait": self._wait, **handlers}
        self.calls: list[StepCall] = []
        self.canceled: dict[str, threading.Event] = {}
        self.release = threading.Event()

    def run(self, call: StepCall) -> StepResult:
        self.canceled.setdefault(call.job_run_id, threading.Event())
        self.calls.append(call)
        handler = self._handlers.get(call.slug)
        if handler is None:
            return Failed(Failure.HANDLER_UNKNOWN, call.slug, retryable=False)
        return handler(call)

    def cancel(self, call_id: str) -> None:
        self.canceled.setdefault(call_id, threading.Event()).set()

    def _wait(self, call: StepCall) -> StepResult:
        stopped = self.canceled[call.job_run_id]
        until = time.monotonic() + 20
        while time.monotonic() < until and not self.release.is_set():
            if stopped.wait(0.01):
                return Failed(Failure.CANCELED, "told to stop", retryable=False)
        return Succeeded(call.input)


class Shop:
    """A database with workflows, and what tests do to it."""

    def __init__(self, dsn: str, pool: Pool) -> None:
        self.dsn = dsn
        self.pool = pool
        self.definitions = DefinitionBook(pool)
        self.acts = RunActs(pool)

    def define(self, *documents: JsonObject) -> None:
        for document in documents:
            self.definitions.create(TENANT, document, by="tests")

    def start(self, slug: str, **fields: Any) -> str:
        return self.acts.start(TENANT, slug, **fields)

    def ask(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        with self.pool.connection() as connection:
            return connection.execute(text.encode(), values).fetchall()

    def do(self, text: str, *values: object) -> None:
        with self.pool.connection() as connection:
            connection.execute(text.encode(), values)

    def status(self, run_id: str) -> str:
        return str(self.ask("SELECT status FROM workflow_runs WHERE id = %s", run_id)[0][0])

    def steps(self, run_id: str) -> dict[str, str]:
        rows = self.ask(
            "SELECT address, status FROM workflow_run_steps WHERE run_id = %s ORDER BY place",
            run_id,
        )
        return dict(rows)  # type: ignore[arg-type]

    def output(self, run_id: str) -> JsonValue:
        found: JsonValue = self.ask("SELECT output FROM workflow_runs WHERE id = %s", run_id)[0][0]
        return found

    def ended(self, *run_ids: str, within_s: float = 20) -> list[str]:
        """Wait until these runs are over, and say how."""
        wait_for(
            lambda: all(self.status(run) not in {"pending", "running"} for run in run_ids), within_s
        )
        return [self.status(run) for run in run_ids]

    def worker(
        self, executor: Handlers, *, pace: Pace = QUICK, name: str = "w", lease_s: float = 60.0
    ) -> WorkflowWorker:
        jobs = WorkerQueue(self.dsn, Engine(), name=name, lease_s=lease_s)
        return WorkflowWorker(jobs, executor, Ear(self.dsn), pace=pace, name=name)

    @contextmanager
    def working(self, executor: Handlers | None = None, **fields: Any) -> Iterator[WorkflowWorker]:
        worker, stop = self.worker(executor or Handlers(), **fields), threading.Event()
        thread = threading.Thread(target=worker.run, args=(stop,))
        thread.start()
        try:
            yield worker
        finally:
            stop.set()
            worker.wake()
            thread.join(20)
            assert not thread.is_alive()


@contextmanager
def shop(dsn: str) -> Iterator[Shop]:
    with open_pool(dsn, "owner", size_max=6) as pool:
        yield Shop(dsn, pool)


def wait_for(claim: Callable[[], object], within_s: float = 20, what: str = "") -> None:
    """Wait until something is true, and fail when it does not become so."""
    until = time.monotonic() + within_s
    while not claim():
        assert time.monotonic() < until, f"still not true after {within_s} s {what}"
        time.sleep(0.005)


def backends(dsn: str, application: str) -> list[int]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name LIKE %s", (application + "%",)
        )
        return [row[0] for row in rows]
