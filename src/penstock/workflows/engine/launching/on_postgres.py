"""Make runs in PostgreSQL, with their first steps and jobs, in the caller's transaction.

    Start ── current version ── parameters fit ── begin ──▶ run, steps, jobs, one event each
      │            └──────────────────┴──▶ an error: nothing is made of this one
      └── its key is taken by an active run ──▶ that run's id, and nothing is made

`Launching` is what the trigger worker calls inside its pass: a refusal is a value there, so that
one bad launch does not spoil the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import psycopg
from psycopg.rows import TupleRow

from penstock.base.errors import NotFound, NotInProfile, PenstockError
from penstock.envelope.codec import decode, encode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.sql import query
from penstock.triggers.delivery import Launch, Launched, LaunchOutcome, Refused
from penstock.workflows.advance import begin
from penstock.workflows.engine.changes import Changes, Rows, without_nulls
from penstock.workflows.engine.launching.start import Start, WorkflowDisabled, start_of
from penstock.workflows.engine.on_postgres import Plans, write
from penstock.workflows.plan import Plan
from penstock.workflows.run import RunState

Connection = psycopg.Connection[TupleRow]
_ROOM = "workflows_engine"
Known = tuple[str, str]


class Made(NamedTuple):
    """What became of a start: its own run, or the active one that has its key."""

    run_id: str
    is_new: bool


class _Ready(NamedTuple):
    start: Start
    definition_id: str
    version: int
    plan: Plan
    parameters: JsonObject


class Launching:
    """Makes runs; one per process is enough. `__call__` is the launcher of triggers."""

    def __init__(self, plans: Plans | None = None) -> None:
        self._plans = plans or Plans()

    def __call__(self, connection: Connection, launches: Sequence[Launch]) -> list[LaunchOutcome]:
        """One outcome per launch, in order; rows go in together."""
        starts: list[Start | PenstockError | TypeError] = []
        for launch in launches:
            try:
                starts.append(start_of(launch))
            except (PenstockError, TypeError) as error:
                starts.append(error)
        good = [start for start in starts if isinstance(start, Start)]
        made = iter(self.make(connection, good))
        return [_outcome(next(made) if isinstance(s, Start) else s) for s in starts]

    def make(self, connection: Connection, starts: Sequence[Start]) -> list[Made | PenstockError]:
        """Make what can be made, and say for each what became of it."""
        ready = self._ready(connection, starts)
        firsts: dict[Known, str] = {}  # within one statement a key can be taken only once
        good = [each for each in ready if isinstance(each, _Ready)]
        for each in good:
            firsts.setdefault(_key(each), each.start.run_id)
        fresh = [each for each in good if firsts[_key(each)] == each.start.run_id]
        taken = self._insert(connection, fresh)
        made = [
            each if isinstance(each, PenstockError) else _made(each, firsts, taken)
            for each in ready
        ]
        self._watch(connection, ready, made)
        return made

    def _watch(
        self,
        connection: Connection,
        ready: Sequence[_Ready | PenstockError],
        made: Sequence[Made | PenstockError],
    ) -> None:
        """A trigger that was attached to a run hears of its end, too."""
        rows: list[JsonValue] = [
            {"run_id": found.run_id, "trigger_id": each.start.trigger_id}
            for each, found in zip(ready, made, strict=True)
            if isinstance(each, _Ready) and isinstance(found, Made) and not found.is_new
            if each.start.trigger_id is not None
        ]
        if rows:
            connection.execute(query(_ROOM, "watch"), {"rows": encode(rows).decode()})

    def _ready(
        self, connection: Connection, starts: Sequence[Start]
    ) -> list[_Ready | PenstockError]:
        wanted = {(start.tenant_id, start.workflow_slug) for start in starts}
        rows: list[JsonValue] = [{"tenant_id": t, "slug": slug} for t, slug in sorted(wanted)]
        parameters = {"rows": encode(rows).decode()}
        found = connection.execute(query(_ROOM, "current_definitions"), parameters, prepare=True)
        current = {(row[0], row[1]): row[2:] for row in found.fetchall()}
        return [self._check(connection, start, current) for start in starts]

    def _check(
        self, connection: Connection, start: Start, current: dict[Known, TupleRow]
    ) -> _Ready | PenstockError:
        row = current.get((start.tenant_id, start.workflow_slug))
        if row is None:
            return NotFound(f"expected a workflow {start.workflow_slug!r}, found none")
        definition_id, version, is_active = row
        if not is_active:
            return WorkflowDisabled(
                f"expected an active workflow, found {start.workflow_slug!r} disabled"
            )
        version = start.version or version
        try:
            plan = self._plans.get(connection, definition_id, version)
            given = decode(encode(start.parameters))
            parameters = plan.parameters(given if isinstance(given, dict) else {})
        except (PenstockError, NotInProfile) as error:
            return error
        return _Ready(start, definition_id, version, plan, parameters)

    def _insert(
        self, connection: Connection, fresh: Sequence[_Ready]
    ) -> dict[Known, tuple[str, bool]]:
        """Which run has each key now, and whether it was made here."""
        if not fresh:
            return {}
        rows: Rows = [_row(each) for each in fresh]
        found = connection.execute(
            query(_ROOM, "insert_runs"), {"rows": encode(list(rows)).decode()}, prepare=True
        ).fetchall()
        taken = {(definition, key or run): (run, new) for run, definition, key, new in found}
        changes = Changes()
        for each in fresh:
            if taken.get(_key(each)) == (each.start.run_id, True):
                start = each.start
                run = RunState(
                    start.run_id, parameters=each.parameters, trigger=start.trigger,
                    run_key=start.key.key if start.key else None,
                    partition_key=start.partition_key, correlation_id=_correlation(start),
                )  # fmt: skip
                changes.add(start.tenant_id, run, begin(each.plan, run))
        write(connection, changes)
        connection.execute(query("workflows_queue", "wake"), {"word": ""}, prepare=True)
        return taken


def _key(each: _Ready) -> Known:
    start = each.start
    return each.definition_id, start.key.normalized if start.key else start.run_id


def _made(each: _Ready, firsts: dict[Known, str], taken: dict[Known, tuple[str, bool]]) -> Made:
    run_id, is_new = taken.get(_key(each), (firsts[_key(each)], False))
    return Made(run_id, is_new and run_id == each.start.run_id)


def _outcome(made: Made | PenstockError | TypeError) -> LaunchOutcome:
    if isinstance(made, Made):
        return Launched(made.run_id, attached=not made.is_new)
    return Refused(made.detail if isinstance(made, PenstockError) else str(made))


def _correlation(start: Start) -> str:
    return start.correlation_id or start.run_id


def _row(each: _Ready) -> JsonObject:
    start = each.start
    row: JsonObject = {
        "id": start.run_id,
        "tenant_id": start.tenant_id,
        "definition_id": each.definition_id,
        "definition_version": each.version,
        "workflow_slug": start.workflow_slug,
        "run_key": start.key.key if start.key else None,
        "run_key_normalized": start.key.normalized if start.key else None,
        "parameters": each.parameters,
        "triggered_by": start.triggered_by,
        "trigger": start.trigger,
        "trigger_id": start.trigger_id,
        "partition_key": start.partition_key,
        "correlation_id": _correlation(start),
        "causation_id": start.causation_id,
        "depth": start.depth,
        "replay_of": start.replay_of,
    }
    return without_nulls(row)
