"""Run passes on PostgreSQL: lock, look, read, decide, write, commit.

    trigger_cursor FOR UPDATE ─▶ acts · ended runs · what is due · new events ─▶ run_pass (pure)
                                                                                    │
    one commit ◀─ cursor · pass · deliveries · history · runs and jobs · counters ◀─┘

A crash anywhere before the commit leaves nothing behind, and whoever runs the next pass decides the
same again. A host that finds a pass going on leaves the rest to it. The state of the last pass
stays in memory, and is read again when another host has run one since, or when this one failed;
so the host that ran the last pass is given `patience` to run the next one, too.
tests/triggers/on_postgres/test_chaos.py kills hosts and the server while events flow.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import sql

from penstock.base.on_postgres import answering
from penstock.envelope.codec import encode
from penstock.envelope.envelope import Stored
from penstock.sql import query
from penstock.store.on_postgres import read_events
from penstock.store.walk.choose import Parameter
from penstock.store.walk.on_postgres import Connection
from penstock.triggers.delivery import Act, ActOutcome, RunEnd
from penstock.triggers.host.acts import act_row, notice
from penstock.triggers.host.commit.on_postgres import is_small, keep
from penstock.triggers.host.incident import incident_event
from penstock.triggers.host.kept.on_postgres import load_kept, load_roster
from penstock.triggers.host.look import Look
from penstock.triggers.host.memory import Memory
from penstock.triggers.host.past.on_postgres import PostgresPast
from penstock.triggers.host.patience import Patience
from penstock.triggers.host.starting import Careful, Hopeful, odd_columns, went_plainly
from penstock.triggers.host.summary import PassSummary
from penstock.triggers.inputs import DUE_LIMIT, PassInputs
from penstock.triggers.limits import Limits
from penstock.triggers.passes import positions_due, run_pass, wanted
from penstock.triggers.port import Launcher, Outbox
from penstock.triggers.result import PassResult
from penstock.triggers.state import State

BATCH = 500  # events of one pass
_CAREFUL_PASSES = 20  # after a launch that did not go plainly, the next are asked for one by one


class _Disagreed(Exception):
    """The launcher did not do what the pass took for granted: it must be decided again."""


class TriggerHost:
    """Runs passes over one connection of its own; any thread may ask, one at a time is served."""

    def __init__(
        self,
        dsn: str,
        launcher: Launcher,
        limits: Limits,
        *,
        outbox: Outbox | None = None,
        batch: int = BATCH,
        patience: timedelta = timedelta(),
    ) -> None:
        self._dsn = dsn
        self._launcher = launcher
        self._outbox = outbox
        self._batch = batch
        self._limits = limits
        self._settings = encode(limits.wire()).decode()
        self._turn = threading.Lock()
        self._connection: Connection | None = None
        self._careful_until = 0
        self._memory = Memory()
        self._patience = Patience(patience)

    def run_pass(self) -> PassSummary:
        """Judge what is there to be judged, once; a summary without a number if there is nothing,
        or if it is left to another host.

        StoreUnavailable while PostgreSQL is away.
        """
        with self._turn, answering():
            connection = self._open()
            seen = self._look(connection)
            until = self._patience.until(seen, self._memory.number)
            if until is not None or not seen.has_work:
                return seen.idle(until)
            return self._in_transaction(connection, (), due_limit=DUE_LIMIT)[0]

    def act(self, act: Act) -> ActOutcome:
        """Carry out what an operator wants, durably on return, and wake the workers.

        Only the act is carried out: what it sets free is judged by whoever runs the next pass, so a
        process that launches nothing can do this too.
        """
        with self._turn, answering():
            _, result = self._in_transaction(self._open(), (act,), due_limit=0)
        if result is None:
            raise AssertionError("a pass with an act is never idle")
        return result.acts[0]

    def close(self) -> None:
        """Let go of the connection; a later pass opens another."""
        with self._turn:
            self._hang_up()

    def _in_transaction(
        self, connection: Connection, acts: Sequence[Act], *, due_limit: int
    ) -> tuple[PassSummary, PassResult | None]:
        connection.autocommit = False
        try:
            try:
                return self._pass(connection, acts, due_limit)
            except _Disagreed:
                connection.rollback()
                self._memory = Memory()
                return self._pass(connection, acts, due_limit)
        except BaseException:
            # What is in memory may be ahead of what was committed.
            self._memory = Memory()
            raise
        finally:
            self._leave(connection)

    def _leave(self, connection: Connection) -> None:
        """End the transaction if it is still open, which gives up the lock."""
        try:
            connection.rollback()
            connection.autocommit = True
        except psycopg.Error:
            self._hang_up()

    def _pass(
        self, connection: Connection, acts: Sequence[Act], due_limit: int
    ) -> tuple[PassSummary, PassResult | None]:
        with connection.pipeline():
            locking = connection.execute(
                query("trigger_passes", "lock" if acts else "lock_if_free")
            )
            seen = self._look(connection)
        if locking.fetchone() is None or not (acts or seen.has_work):
            return seen.idle(), None
        number = seen.number + 1
        self._get_ready(connection, seen)
        events = self._events_after(connection, seen) if due_limit else []
        inputs = PassInputs(
            number=number,
            judged_at=seen.judged_at,
            roster=self._memory.roster,
            limits=self._limits,
            acts=acts,
            run_ends=_run_ends(connection, number) if seen.has_run_ends else (),
            events=events,
            due_limit=due_limit,
        )
        result = self._decide(connection, inputs)
        to = events[-1].position if events else seen.position
        self._commit(connection, inputs, result, after=seen.position, to=to)
        self._memory.number = number
        return _summary(inputs, result, seen, to), result

    def _get_ready(self, connection: Connection, seen: Look) -> None:
        """Have the state, the definitions and the limits that count in the next pass."""
        memory, number = self._memory, seen.number + 1
        if memory.number != seen.number:
            memory.state = State.load(load_kept(connection))
        if memory.revision != seen.revision:
            connection.execute(query("trigger_passes", "take_versions"), {"pass": number})
            memory.roster = load_roster(connection, number)
            memory.revision = seen.revision
        if memory.settings_pass is None or memory.settings_pass != seen.settings_pass:
            values = {"pass": number, "settings": self._settings}
            found = connection.execute(query("trigger_passes", "settings"), values).fetchone()
            memory.settings_pass = seen.settings_pass
            if found is None or found[1] != self._settings:
                connection.execute(query("trigger_passes", "keep_settings"), values)
                memory.settings_pass = number

    def _events_after(self, connection: Connection, seen: Look) -> list[Stored]:
        if seen.head <= seen.position:
            return []
        walk = sql.SQL(query("store", "after"))
        values: dict[str, Parameter] = {"after": seen.position, "limit": self._batch}
        return read_events(connection, walk, values, prepare=True)[::-1]

    def _decide(self, connection: Connection, inputs: PassInputs) -> PassResult:
        """Decide everything and start the runs, in the pass's own transaction."""
        past = PostgresPast(connection)
        past.fetch_events(positions_due(self._memory.state, inputs))
        past.fetch(wanted(self._memory.state, inputs, past))
        if inputs.number < self._careful_until:
            start = Careful(lambda launches: self._launcher(connection, launches))
            result = run_pass(self._memory.state, inputs, past, start)
            if start.odd:
                values = odd_columns(start.odd) | {"pass": inputs.number}
                connection.execute(query("trigger_passes", "keep_outcomes"), values)
            return result
        result = run_pass(self._memory.state, inputs, past, Hopeful())
        if result.launches:
            outcomes = self._launcher(connection, result.launches)
            if not went_plainly(result.launches, outcomes):
                self._careful_until = inputs.number + _CAREFUL_PASSES
                raise _Disagreed
        return result

    def _commit(
        self, connection: Connection, inputs: PassInputs, result: PassResult, *, after: int, to: int
    ) -> None:
        """Write everything and commit; a small pass does it in one round trip."""
        if result.incidents and self._outbox is not None:
            self._outbox(connection, [incident_event(each) for each in result.incidents])
        with connection.pipeline() if is_small(result) else nullcontext():
            if result.is_quiet and not inputs.run_ends:
                connection.execute(query("trigger_passes", "do_not_wait"))
            keep(connection, result, inputs.run_ends)
            self._record(connection, inputs, result, after=after, to=to)
            connection.commit()

    def _record(
        self, connection: Connection, inputs: PassInputs, result: PassResult, *, after: int, to: int
    ) -> None:
        values: dict[str, Any] = {
            "pass": inputs.number, "judged_at": inputs.judged_at, "after": after, "to": to,
            "due_limit": inputs.due_limit, "next_due_at": result.next_due,
            "released": list(result.released) or None,
        }  # fmt: skip
        connection.execute(query("trigger_passes", "record"), values)
        connection.execute(query("trigger_passes", "advance"), values)
        if inputs.acts:
            rows = [act_row(act) for act in inputs.acts]
            acts, bys, ats = (list(column) for column in zip(*rows, strict=True))
            values |= {"acts": acts, "bys": bys, "ats": ats}
            connection.execute(query("trigger_passes", "keep_acts"), values)
            payload = notice(inputs.number, inputs.acts, result.acts)
            connection.execute(query("trigger_passes", "notify"), {"payload": payload})

    def _look(self, connection: Connection) -> Look:
        row = connection.execute(query("trigger_passes", "look")).fetchone()
        if row is None:
            raise AssertionError("migration 0006 made the row of trigger_cursor")
        return Look(*row)

    def _open(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._hang_up()
            self._memory = Memory()  # a server that crashed may have lost a pass that was quiet
            self._connection = psycopg.connect(self._dsn, autocommit=True, connect_timeout=5)
            self._connection.execute(query("trigger_passes", "settle_in"))
        return self._connection

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _run_ends(connection: Connection, number: int) -> list[RunEnd]:
    rows = connection.execute(query("trigger_passes", "take_run_ends"), {"pass": number})
    return [RunEnd(*row) for row in rows]


def _summary(inputs: PassInputs, result: PassResult, seen: Look, to: int) -> PassSummary:
    is_due = result.next_due is not None and result.next_due <= inputs.judged_at
    return PassSummary(
        number=inputs.number,
        judged_at=inputs.judged_at,
        position=to,
        events=len(inputs.events),
        deliveries=len(result.deliveries),
        launches=len(result.launches),
        next_due_at=result.next_due,
        has_more=seen.head > to or (is_due and bool(result.deliveries or result.held)),
    )
