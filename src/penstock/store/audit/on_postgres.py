"""Seal the log in PostgreSQL, and read back what proves it.

    lock ─ newest checkpoint ─ rows since ─▶ next_seal (pure) ─▶ seal · tiles · signed note ─ commit
                                                                             ─▶ note to a file

The note is written out after the commit: a crash in between leaves the database ahead, which the
next seal makes good. The other way round would look like a log that lost its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from penstock.base.clock import Clock, SystemClock
from penstock.base.errors import AuditDamaged, NotSealed
from penstock.base.on_postgres import Pool, answering
from penstock.sql import query
from penstock.store.audit.checkpoint import (
    Checkpoint,
    SignerKey,
    VerifierKey,
    is_superseded,
    read_note,
)
from penstock.store.audit.entry import COLUMNS
from penstock.store.audit.merkle import (
    TILE,
    Frontier,
    Tiles,
    consistency_path,
    frontier_of,
    inclusion_path,
)
from penstock.store.audit.proof import Consistency, Proof, proven
from penstock.store.audit.seal import (
    SEAL_EVENTS_MAX,
    Checkpoints,
    Seal,
    SealedRange,
    leaves_between,
    next_seal,
)

Connection = psycopg.Connection[TupleRow]
_LOCK = 0x7365616C  # "seal"


class Kept(NamedTuple):
    """A checkpoint, and the note that says it."""

    checkpoint: Checkpoint
    note: str


class Sealer:
    """Seals what was stored since the last seal; one process at a time does."""

    def __init__(
        self, pool: Pool, key: SignerKey, checkpoints: Checkpoints, *, clock: Clock | None = None
    ) -> None:
        self._pool = pool
        self._key = key
        self._checkpoints = checkpoints
        self._clock = clock or SystemClock()
        self._tree: Frontier | None = None
        self._outside: list[Checkpoint] = []  # the newest two that are written out, newest first

    def seal(self) -> int:
        """Seal up to 10,000 events; how many there were. AuditDamaged when that would be a lie."""
        with answering(), self._pool.connection() as connection:
            try:
                with connection.transaction():
                    sealed = self._seal(connection)
            except (psycopg.DataError, psycopg.NotSupportedError) as error:
                raise AuditDamaged(f"a row holds what no event can: {error}") from error
        if sealed is None:
            return 0
        seal, note = sealed
        self._write_out(seal.last, note)
        self._tree = seal.frontier
        return seal.last - seal.first + 1

    def _seal(self, connection: Connection) -> tuple[Seal, str] | None:
        if not _one(connection, "lock", key=_LOCK)[0]:
            return None
        tree = self._follow(connection, _newest(connection, self._key.verifier))
        head = _one(connection, "head")[0]
        if head == tree.size:
            return None
        last = min(head, tree.size + SEAL_EVENTS_MAX)
        bounds = {"after": tree.size, "last": last}
        rows = connection.execute(query("audit", "unsealed"), bounds, binary=True).fetchall()
        seal = next_seal(tree, rows)
        if seal.last != last:
            raise AuditDamaged(f"expected events up to {max(head, tree.size)}, found less")
        note = self._key.sign(seal.last, seal.frontier.root(), self._clock.now())
        _keep(connection, seal, note)
        return seal, note

    def _follow(self, connection: Connection, kept: Kept | None) -> Frontier:
        """The tree up to the newest checkpoint; another process may have sealed since we did."""
        size = kept.checkpoint.size if kept is not None else 0
        if self._tree is not None and self._tree.size == size:
            return self._tree
        tiles = tiles_of(connection, size)
        tree = frontier_of(size, tiles)
        if kept is not None and tree.root() != kept.checkpoint.root:
            raise AuditDamaged(f"the seals up to {size} do not lead to the root that was signed")
        outside = [read_kept(note, self._key.verifier) for note in self._checkpoints.newest(2)]
        for known in outside:
            if known.size > size:
                raise AuditDamaged(f"expected seals up to {known.size}, as signed, found {size}")
            if frontier_of(known.size, tiles).root() != known.root:
                raise AuditDamaged(f"the seals up to {known.size} are not those that were signed")
        self._outside = outside
        if kept is not None and all(known.size < size for known in outside):
            self._write_out(size, kept.note)  # a crash came between the commit and the file
        return tree

    def _write_out(self, size: int, note: str) -> None:
        self._checkpoints.keep(size, note)
        superseded = is_superseded(self._outside)
        if superseded:
            self._checkpoints.drop(self._outside[0].size)
        stays = self._outside[1:] if superseded else self._outside[:1]
        self._outside = [read_kept(note, self._key.verifier), *stays]


class AuditReader:
    """Proofs out of what was sealed."""

    def __init__(self, pool: Pool, key: VerifierKey) -> None:
        self._pool = pool
        self._key = key

    def checkpoint(self) -> Kept:
        """The newest checkpoint; NotSealed before the first."""
        with answering(), self._pool.connection() as connection:
            return self._newest(connection)

    def consistency(self, before: int) -> Consistency:
        """That the log of `before` events became the log of the newest checkpoint."""
        with answering(), self._pool.connection() as connection, connection.transaction():
            newest = self._newest(connection)
            size = newest.checkpoint.size
            if not 0 < before <= size:
                raise NotSealed(f"expected a size from 1 to {size}, found {before}")
            path = consistency_path(before, size, tiles_of(connection, size))
            return Consistency(newest.note, before, path)

    def proof(self, tenant_id: str, event_id: str) -> Proof | None:
        """That an event is in the log; None when there is none, NotSealed when no seal has it."""
        with answering(), self._pool.connection() as connection, connection.transaction():
            bound = {"tenant": tenant_id, "id": event_id}
            found = connection.execute(query("audit", "position_of"), bound).fetchone()
            if found is None:
                return None
            newest, position = self._newest(connection), found[0]
            size = newest.checkpoint.size
            if position > size:
                raise NotSealed(f"expected a position up to {size}, found {position}")
            path = inclusion_path(position - 1, size, tiles_of(connection, size))
            begin_checking(connection)
            (line,) = copy_rows(connection, position, position)
            return proven(newest.note, newest.checkpoint, line, path)

    def _newest(self, connection: Connection) -> Kept:
        kept = _newest(connection, self._key)
        if kept is None:
            raise NotSealed("expected a checkpoint, found none yet")
        return kept


def begin_checking(connection: Connection) -> None:
    """Have rows come out in the one form that `entry.read_row` reads, for this transaction."""
    connection.execute(query("audit", "begin_checking"))


def copy_rows(connection: Connection, first: int, last: int) -> Iterator[bytes]:
    """The rows of these positions as lines of COPY, in order."""
    statement = sql.SQL(query("audit", "copy_rows")).format(
        columns=sql.SQL(", ").join(map(sql.Identifier, COLUMNS)),
        first=sql.Literal(first),
        last=sql.Literal(last),
    )
    with connection.cursor().copy(statement) as copy:
        for line in copy:
            yield bytes(line)


def read_seals(connection: Connection, first: int, last: int) -> list[SealedRange]:
    """The seals that hold any of these positions, in order."""
    bounds = {"first": first, "last": last}
    found = connection.execute(query("audit", "leaves"), bounds, binary=True)
    return [SealedRange(*row) for row in found.fetchall()]


def tiles_of(connection: Connection, size: int) -> Tiles:
    """The tree of that size, as the seals and nodes of the database have it."""

    @cache
    def tile(level: int, index: int) -> bytes:
        first = index * TILE
        if level == 0:
            last = min(first + TILE, size)
            return leaves_between(read_seals(connection, first + 1, last), first + 1, last)
        bounds = {"level": level, "first": first}
        rows = connection.execute(query("audit", "tile"), bounds, binary=True).fetchall()
        return b"".join(row[1] for place, row in enumerate(rows, first) if row[0] == place)

    return tile


def _keep(connection: Connection, seal: Seal, note: str) -> None:
    row = {"first": seal.first, "last": seal.last, "leaves": seal.leaves}
    connection.execute(query("audit", "keep_seal"), row)
    if seal.nodes:
        levels, numbers, hashes = zip(*seal.nodes, strict=True)
        columns = {"levels": list(levels), "indexes": list(numbers), "hashes": list(hashes)}
        connection.execute(query("audit", "keep_nodes"), columns)
    connection.execute(query("audit", "keep_checkpoint"), {"note": note})


def _newest(connection: Connection, key: VerifierKey) -> Kept | None:
    row = connection.execute(query("audit", "checkpoint")).fetchone()
    return Kept(read_kept(row[0], key, cosigned=False), row[0]) if row is not None else None


def read_kept(note: str, key: VerifierKey, *, cosigned: bool = True) -> Checkpoint:
    """The checkpoint of a note that must be ours; AuditDamaged when it is not."""
    try:
        return read_note(note, key, cosigned=cosigned)
    except ValueError as error:
        raise AuditDamaged(f"a checkpoint is not what was signed: {error}") from error


def _one(connection: Connection, name: str, **bound: object) -> TupleRow:
    row = connection.execute(query("audit", name), bound or None).fetchone()
    if row is None:
        raise AuditDamaged(f"expected one row from `{name}`, found none")
    return row
