"""Read a log out of PostgreSQL to check it, over one connection or several with one snapshot.

    facts ─▶ stretches of whole tiles ─▶ [rows · seals · tags ─▶ check_rows] each ─▶ conclude

Everything is streamed: a unit of 16,384 positions is in memory at a time. Several processes take
a part of the log each; they see the same snapshot, so events may be stored meanwhile.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection as PipeConnection
from multiprocessing.connection import wait
from typing import NamedTuple, cast

import psycopg
from psycopg import IsolationLevel, sql
from psycopg.rows import TupleRow

from penstock.base.errors import AuditDamaged, StoreUnavailable
from penstock.sql import query
from penstock.store.audit.check.conclude import Anchors, Facts, conclude, reach, read_anchors
from penstock.store.audit.check.report import AuditReport
from penstock.store.audit.check.stretch import (
    Findings,
    Leaves,
    TagRow,
    check_rows,
    tiles_between,
)
from penstock.store.audit.checkpoint import VerifierKey
from penstock.store.audit.merkle import Node
from penstock.store.audit.on_postgres import begin_checking, copy_rows, read_seals

Connection = psycopg.Connection[TupleRow]
Progress = Callable[[int], None]
UNIT = 64 * 256  # positions that are in memory at a time
_FETCH = 20_000
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


class Stretch(NamedTuple):
    """A part of the log, in whole units, to be checked in one go."""

    first: int
    last: int
    is_first: bool  # whatever lies before or behind the log is looked at by its ends
    is_last: bool
    sealed: int
    sizes: tuple[int, ...]  # of the checkpoints


def verify(
    dsn: str,
    notes: Iterable[tuple[str, str]],
    key: VerifierKey,
    *,
    processes: int = 1,
    begin: Callable[[int], None] = lambda _total: None,
    progress: Progress = lambda _events: None,
) -> AuditReport:
    """Check the whole log against the signed notes; `begin` hears how many events there are.

    Read the notes before calling this: whoever signs commits first and writes the note then.
    """
    with checking(dsn) as connection:
        facts = read_facts(connection)
        anchors = read_anchors(notes, facts.note, key)
        begin(facts.count)
        stretches = split(facts, anchors, processes)
        if len(stretches) == 1:
            findings = [check_stretch(connection, stretches[0], progress)]
        else:
            findings = check_apart(dsn, export_snapshot(connection), stretches, progress)
        return finish(connection, facts, anchors, findings)


def check_apart(
    dsn: str, snapshot: str, stretches: Sequence[Stretch], progress: Progress
) -> list[Findings]:
    """Check each stretch in a process of its own."""
    apart = get_context("spawn")
    readers: dict[PipeConnection, int] = {}
    found: dict[int, Findings] = {}
    for number, stretch in enumerate(stretches):
        reader, writer = apart.Pipe(duplex=False)
        apart.Process(
            target=_check_and_tell, args=(dsn, snapshot, stretch, writer), daemon=True
        ).start()
        writer.close()
        readers[reader] = number
    while readers:
        for ready in wait(list(readers)):
            reader = cast("PipeConnection", ready)
            try:
                told = reader.recv()
            except EOFError:
                raise StoreUnavailable("a process that checked the log ended early") from None
            if isinstance(told, int):
                progress(told)
                continue
            found[readers.pop(reader)] = told
    return [found[number] for number in range(len(stretches))]


def _check_and_tell(dsn: str, snapshot: str, stretch: Stretch, told: PipeConnection) -> None:
    gc.disable()  # rows hold no cycles, and there are many of them
    with checking(dsn, snapshot) as connection:
        told.send(check_stretch(connection, stretch, told.send))


def read_facts(connection: Connection) -> Facts:
    """What the database says about its log."""
    head, head_at = _one(connection, "head_as_text")
    first, last, count = _one(connection, "ends")
    seal_first, seal_last, seals, sealed = _one(connection, "seal_ends")
    note = connection.execute(query("audit", "checkpoint")).fetchone()
    return Facts(
        head, str(head_at).encode(), first, last, count, seal_first, seal_last, seals, sealed,
        None if note is None else note[0],
    )  # fmt: skip


def split(facts: Facts, anchors: Anchors, parts: int) -> list[Stretch]:
    """The log in that many parts of about the same length, fewer when it is short."""
    end = reach(facts, anchors)
    units = -(-end // UNIT)
    parts = max(1, min(parts, units))
    cuts = [units * part // parts * UNIT for part in range(parts)]
    sealed = anchors.inside.size if anchors.inside is not None else 0
    return [
        Stretch(
            low + 1, min(high, end), number == 0, number == parts - 1, sealed,
            tuple(size for size in anchors.sizes() if low < size <= high),
        )
        for number, (low, high) in enumerate(zip(cuts, [*cuts[1:], units * UNIT], strict=True))
    ]  # fmt: skip


def check_stretch(connection: Connection, stretch: Stretch, progress: Progress) -> Findings:
    """Check one stretch of the log in the transaction that this connection is in."""
    found = Findings()
    with _tags(connection, stretch) as tags_up_to:
        for first in range(stretch.first, max(stretch.last, stretch.first) + 1, UNIT):
            last = min(first + UNIT - 1, stretch.last)
            is_end = last == stretch.last
            leaves = Leaves(read_seals(connection, first, last), first, last)
            unit = check_rows(
                copy_rows(connection, first, last),
                tags_up_to(_HIGHEST if is_end else last),
                leaves,
                sealed=stretch.sealed,
                received_us=found.received_us,
            )
            unit.tiles = tiles_between(leaves, stretch.sizes)
            found.add(unit)
            progress(unit.events)
    return found


def finish(
    connection: Connection, facts: Facts, anchors: Anchors, findings: Sequence[Findings]
) -> AuditReport:
    """Put the stretches together, with what is left to compare."""
    beyond = _one(connection, "first_beyond", last=reach(facts, anchors))[0]
    rows = connection.execute(query("audit", "nodes"), binary=True).fetchall()
    return conclude(facts, anchors, findings, [Node(*row) for row in rows], beyond)


@contextmanager
def checking(dsn: str, snapshot: str | None = None) -> Iterator[Connection]:
    """A connection in a read-only transaction that sees one state of the log."""
    try:
        with psycopg.connect(dsn, autocommit=True, connect_timeout=5) as connection:
            connection.isolation_level = IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            with connection.transaction():
                if snapshot is not None:
                    statement = sql.SQL(query("audit", "use_snapshot"))
                    connection.execute(statement.format(snapshot=sql.Literal(snapshot)))
                begin_checking(connection)
                yield connection
    except psycopg.OperationalError as error:
        raise StoreUnavailable(f"PostgreSQL does not answer: {error}") from error


def export_snapshot(connection: Connection) -> str:
    """The name under which other connections see what this one sees."""
    return str(_one(connection, "snapshot")[0])


@contextmanager
def _tags(connection: Connection, stretch: Stretch) -> Iterator[Callable[[int], list[TagRow]]]:
    """A function that gives the tag rows up to a position, each once, in order."""
    bounds = {
        "first": _LOWEST if stretch.is_first else stretch.first,
        "last": _HIGHEST if stretch.is_last else stretch.last,
    }
    with connection.cursor(name="audit_tags") as cursor:
        cursor.execute(query("audit", "tags"), bounds)
        waiting: list[TagRow] = []

        def up_to(last: int) -> list[TagRow]:
            nonlocal waiting
            found: list[TagRow] = []
            while True:
                if waiting and waiting[-1][0] > last:
                    ready = sum(1 for row in waiting if row[0] <= last)
                    found += waiting[:ready]
                    waiting = waiting[ready:]
                    return found
                found += waiting
                waiting = cursor.fetchmany(_FETCH)
                if not waiting:
                    return found

        yield up_to


def _one(connection: Connection, name: str, **bound: object) -> TupleRow:
    row = connection.execute(query("audit", name), bound or None).fetchone()
    if row is None:
        raise AuditDamaged(f"expected one row from `{name}`, found none")
    return row
