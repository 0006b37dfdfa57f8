"""Read runs from PostgreSQL: one, a page, a trace; with steps, executions, history and figures.

Every question names a tenant. A step that a worker holds is shown as running: the queue knows, and
the step's own row is written only when something ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from psycopg.rows import TupleRow

from penstock.base.errors import NotFound
from penstock.base.on_postgres import Pool, answering
from penstock.envelope.codec import load_stored
from penstock.envelope.envelope import JsonValue
from penstock.sql import query
from penstock.workflows.book.figures import (
    Bucket,
    RetryBacklog,
    RetryEntry,
    Stats,
    StatusFigures,
    Streak,
    TimelineEntry,
)
from penstock.workflows.book.timeline import of_delivery, of_run, of_scheduler
from penstock.workflows.book.views import Happened, JobRunView, RetrySummary, RunView, StepView
from penstock.workflows.definition import WorkflowDefinition
from penstock.workflows.plan import Plan
from penstock.workflows.queue.figures import QueueFigures, WorkerSeen
from penstock.workflows.queue.on_postgres import queue_figures, workers

_ROOM = "workflows_book"
LIMIT_MAX = 200


class RunReader:
    """The runs of all tenants."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def run(self, tenant_id: str, run_id: str) -> RunView:
        """One run; NotFound when this tenant has none by that id."""
        found = self._rows("run", {"tenant": tenant_id, "id": run_id})
        if not found:
            raise NotFound(f"expected a run {run_id}, found none")
        return _run(found[0])

    def runs(
        self,
        tenant_id: str,
        *,
        slug: str | None = None,
        statuses: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: tuple[datetime, str] | None = None,
        limit: int = 50,
    ) -> list[RunView]:
        """The newest runs; `before` is the created_at and id of the last one of a page."""
        at, run_id = before or (None, None)
        values = {
            "tenant": tenant_id, "slug": slug, "statuses": list(statuses) if statuses else None,
            "since": since, "until": until, "before_at": at, "before_id": run_id, "limit": limit,
        }  # fmt: skip
        return [_run(row) for row in self._rows("runs", values)]

    def correlated(self, tenant_id: str, correlation_id: str, limit: int = 1000) -> list[RunView]:
        """The runs of one trace, oldest first."""
        values = {"tenant": tenant_id, "correlation": correlation_id, "limit": limit}
        return [_run(row) for row in self._rows("correlated", values)]

    def steps(self, tenant_id: str, run_id: str) -> list[StepView]:
        """The steps of a run, in the order they were made."""
        return [_step(row) for row in self._rows("steps", {"tenant": tenant_id, "id": run_id})]

    def job_runs(self, tenant_id: str, run_id: str) -> list[JobRunView]:
        """Every execution of a run's steps, oldest first."""
        values = {"tenant": tenant_id, "id": run_id}
        found = [JobRunView(*row) for row in self._rows("job_runs", values)]
        if all(each.kind for each in found):
            return found
        # Whoever freed what a dead worker held, or asks what runs now, has not read the definition.
        plan = _plan(self._rows("definition_of_run", values)[0])
        return [each if each.kind else each.known_by(plan.work_at(each.address)) for each in found]

    def history(
        self, tenant_id: str, run_id: str, *, after: int = 0, limit: int = 1000
    ) -> list[Happened]:
        """What happened to a run, in order."""
        values = {"tenant": tenant_id, "id": run_id, "after": after, "limit": limit}
        return [
            Happened(key, address, event_type, load_stored(payload), at)
            for key, address, event_type, payload, at in self._rows("history", values)
        ]

    def stats(self, tenant_id: str, slug: str | None, since: datetime, until: datetime) -> Stats:
        """How the runs that began in a stretch of time went."""
        values = {"tenant": tenant_id, "slug": slug, "since": since, "until": until}
        figures = tuple(
            StatusFigures(status, count, average, *(quantiles or (None, None)))
            for status, count, average, quantiles in self._rows("stats", values)
        )
        reasons = tuple((reason, n) for reason, n in self._rows("failure_reasons", values))
        return Stats(since, until, figures, reasons)

    def run_metrics(
        self, tenant_id: str, slug: str | None, since: datetime, until: datetime, bucket_s: float
    ) -> list[Bucket]:
        """The same, per stretch of equal length."""
        values = {
            "tenant": tenant_id, "slug": slug, "since": since, "until": until, "bucket_s": bucket_s,
        }  # fmt: skip
        return [Bucket(*row) for row in self._rows("run_metrics", values)]

    def typical_ms(self, tenant_id: str, slug: str) -> float | None:
        """How long the last successful runs took, by their median; None without any."""
        row = self._rows("typical_ms", {"tenant": tenant_id, "slug": slug})
        return None if not row or row[0][0] is None else float(row[0][0])

    def timeline(
        self,
        tenant_id: str,
        slug: str,
        since: datetime,
        until: datetime,
        *,
        statuses: Sequence[str] = (),
        limit: int = LIMIT_MAX,
    ) -> list[TimelineEntry]:
        """Runs, deliveries, and pauses and failures of triggers, merged, newest first."""
        runs = self.runs(tenant_id, slug=slug, since=since, until=until, limit=limit)
        values = {
            "tenant": tenant_id, "slug": slug, "since": since, "until": until, "limit": limit,
        }  # fmt: skip
        entries = [of_run(each) for each in runs]
        entries += [of_delivery(row) for row in self._rows("trigger_entries", values)]
        entries += [of_scheduler(row) for row in self._rows("scheduler_entries", values)]
        wanted = [e for e in entries if not statuses or e.status in statuses]
        return sorted(wanted, key=lambda each: (each.at, each.id), reverse=True)[:limit]

    def retries(self, tenant_id: str | None = None, *, limit: int = 50) -> RetryBacklog:
        """Steps that wait for another try; of all tenants when none is named."""
        (row,) = self._rows("retry_summary", {"tenant": tenant_id})
        entries = self._rows("retry_entries", {"tenant": tenant_id, "limit": limit})
        return RetryBacklog(
            RetrySummary(*row),
            tuple(RetryEntry(*_with_json(row, 11)) for row in entries),
        )

    def streaks(self, *, threshold: int, window_s: float) -> list[Streak]:
        """Workflows that failed at least so often lately."""
        values = {"threshold": threshold, "window_s": window_s}
        return [Streak(*row) for row in self._rows("failure_streak", values)]

    def queue(self) -> QueueFigures:
        """How the queue is."""
        with answering(), self._pool.connection() as connection:
            return queue_figures(connection)

    def workers(self) -> list[WorkerSeen]:
        """Who works."""
        with answering(), self._pool.connection() as connection:
            return workers(connection)

    def _rows(self, name: str, values: Mapping[str, object]) -> list[TupleRow]:
        with answering(), self._pool.connection() as connection:
            return connection.execute(query(_ROOM, name), values).fetchall()


def _plan(row: TupleRow) -> Plan:
    definition = load_stored(row[0])
    return Plan(WorkflowDefinition.model_validate(definition, by_alias=True, by_name=False))


def _run(row: TupleRow) -> RunView:
    (
        key, tenant_id, definition_id, version, slug, status, run_key, parameters, shared, output,
        reason, detail, step_id, by, trigger, trigger_id, partition, correlation, cause, replay_of,
        created_at, started_at, completed_at, updated_at, pending, next_at, overdue, live_step,
    ) = row  # fmt: skip
    return RunView(
        key, tenant_id, definition_id, version, slug, status, run_key, _json(parameters),
        _json(shared), _json(output), reason, detail, step_id or live_step, by, _json(trigger),
        trigger_id, partition, correlation, cause, replay_of, created_at, started_at, completed_at,
        updated_at, RetrySummary(pending, overdue, next_at),
    )  # fmt: skip


def _step(row: TupleRow) -> StepView:
    return StepView(*_with_json(row, 6, 7, 15))


def _with_json(row: TupleRow, *places: int) -> list[Any]:
    """The row with the JSON texts at these places read."""
    found = list(row)
    for place in places:
        found[place] = _json(found[place])
    return found


def _json(text: str | None) -> JsonValue:
    return None if text is None else load_stored(text)
