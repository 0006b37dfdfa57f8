"""Carry runs on in PostgreSQL: lock them, let `advance` say what follows, write it in bulk.

    ended ── lock_finished ──▶ those whose fence still holds, their runs locked by id
          ── advance ────────▶ Changes ── one statement per kind of row

Everything happens in the caller's transaction. An execution that lost its fence changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import psycopg
from psycopg.rows import TupleRow

from penstock.base.errors import NotFound
from penstock.envelope.codec import encode, load_stored
from penstock.envelope.envelope import JsonObject
from penstock.sql import query
from penstock.workflows.advance import advance
from penstock.workflows.definition import WorkflowDefinition
from penstock.workflows.engine.changes import Changes, Rows, done_of
from penstock.workflows.engine.states import States
from penstock.workflows.outbox.on_postgres import put
from penstock.workflows.plan import Caps, Plan
from penstock.workflows.queue.job import Ended
from penstock.workflows.run import RunState, RunStatus, StepState, StepStatus

Connection = psycopg.Connection[TupleRow]
_ROOM = "workflows_engine"
# In this order: a step before the job that names it, the jobs before the run that is told of them.
_WRITES = (
    "insert_steps", "update_steps", "delete_jobs", "drop_jobs", "queue_jobs", "insert_job_runs",
    "insert_history", "update_runs",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Advanced:
    """What became of a batch of executions, once it is committed."""

    states: dict[str, tuple[int, RunState]] = field(default_factory=dict)
    dropped: Sequence[tuple[str, str]] = ()
    fenced: int = 0
    delay_ms: int | None = None


class Plans:
    """Definitions made ready to run, each version read once."""

    def __init__(self, caps: Caps | None = None) -> None:
        self._caps = caps
        self._known: dict[tuple[str, int], Plan] = {}

    def get(self, connection: Connection, definition_id: str, version: int) -> Plan:
        """The plan of one version; NotFound when there is no such version."""
        key = (definition_id, version)
        plan = self._known.get(key)
        if plan is None:
            row = _run(connection, "load_definition", {"id": definition_id, "version": version})
            found = row.fetchone()
            if found is None:
                raise NotFound(f"expected version {version} of {definition_id}, found none")
            # It was checked when it was saved; a later, stricter check must not stop a run.
            definition = WorkflowDefinition.model_validate(
                load_stored(found[0]), by_alias=True, by_name=False
            )
            plan = self._known[key] = Plan(definition, self._caps)
        return plan


class Engine:
    """Carries runs on; keeps those in memory that it saw last. One thread at a time."""

    def __init__(self, plans: Plans | None = None) -> None:
        self.plans = plans or Plans()
        self._states = States()

    def advance(self, connection: Connection, ended: Sequence[Ended]) -> Advanced:
        """Note executions that are over, and queue what follows, in the caller's transaction."""
        if not ended:
            return Advanced()
        by_id = {each.claimed.id: each for each in ended}
        fences: Rows = [{"id": each.claimed.id, "fence": each.claimed.fence} for each in ended]
        locked = _run(connection, "lock_finished", {"rows": _text(fences)}).fetchall()
        revs = {run_id: rev for _, run_id, rev, _ in locked}
        before = self._read(connection, revs)
        changes = Changes()
        for run_id, rows in groupby(locked, key=lambda row: str(row[1])):
            mine = [by_id[row[0]] for row in rows]
            claimed = mine[0].claimed
            plan = self.plans.get(connection, claimed.definition_id, claimed.definition_version)
            progress = advance(plan, before[run_id], [done_of(each) for each in mine])
            changes.add(claimed.tenant_id, before[run_id], progress, mine)
        write(connection, changes)
        return Advanced(
            {run_id: (revs[run_id] + 1, state) for run_id, state in changes.states.items()},
            changes.dropped,
            len(ended) - len(locked),
            changes.delay_ms_min,
        )

    def committed(self, advanced: Advanced) -> None:
        """Keep what was written, now that it is."""
        for run_id, (rev, state) in advanced.states.items():
            if state.status in _ACTIVE:
                self._states.put(run_id, rev, state)
            else:
                self._states.forget(run_id)

    def _read(self, connection: Connection, revs: dict[str, int]) -> dict[str, RunState]:
        found: dict[str, RunState] = {}
        for run_id, rev in revs.items():
            state = self._states.at(run_id, rev)
            if state is not None:
                found[run_id] = state
        missing = [run_id for run_id in revs if run_id not in found]
        return found | read_runs(connection, missing) if missing else found


_ACTIVE = (RunStatus.PENDING, RunStatus.RUNNING)


def read_runs(connection: Connection, run_ids: Sequence[str]) -> dict[str, RunState]:
    """Runs with their steps, as `advance` reads them."""
    steps: dict[str, dict[str, StepState]] = {run_id: {} for run_id in run_ids}
    for row in _run(connection, "load_steps", {"ids": list(run_ids)}):
        state = _step(row[1:])
        steps[row[0]][state.address] = state
    runs = {}
    for row in _run(connection, "load_runs", {"ids": list(run_ids)}):
        run_id, _, status, parameters, shared, key, trigger, partition, correlation = row
        runs[run_id] = RunState(
            run_id, RunStatus(status), _object(parameters), steps[run_id], _object(shared), key,
            None if trigger is None else _object(trigger), partition, correlation,
        )  # fmt: skip
    return runs


def write(connection: Connection, changes: Changes) -> None:
    """Write what has changed; the caller's transaction makes it true."""
    with connection.pipeline():
        put(connection, changes.events)  # before the end of the run, which they led to
        for name in _WRITES:
            rows: Rows = getattr(changes, name)
            if rows:
                _run(connection, name, {"rows": _text(rows)})
        if changes.dropped:
            connection.execute(query("workflows_queue", "wake"), {"word": "cancel"}, prepare=True)


def _step(row: TupleRow) -> StepState:
    address, step_id, status, attempt, given, output, reason, detail, index = row
    return StepState(
        address, step_id, StepStatus(status), attempt, None if given is None else _object(given),
        None if output is None else load_stored(output), reason, detail, index,
    )  # fmt: skip


def _object(text: str) -> JsonObject:
    found = load_stored(text)
    if not isinstance(found, dict):
        raise TypeError(f"expected a stored object, found {type(found).__name__}")
    return found


def _text(rows: Rows | Iterable[JsonObject]) -> str:
    return encode(list(rows)).decode()


def _run(
    connection: Connection, name: str, parameters: dict[str, object]
) -> psycopg.Cursor[TupleRow]:
    return connection.execute(query(_ROOM, name), parameters, prepare=True)
