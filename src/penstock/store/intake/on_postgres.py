"""Settle a lot in PostgreSQL: one transaction, short under the head lock.

    lock head ─ who may ─ what is known ─▶ settle (pure) ─▶ COPY events ─ COPY tags
                                           ─▶ dead letters ─ ledger ─ advance head ─ NOTIFY ─ commit

Rows come written out. Under the lock they go straight into the log by COPY at the positions the
lock hands out; no staging table is written first. A crash at any point rolls all of it back, the
segment stays on disk, and the next try finds the same inputs.

Ids are looked up only while there is a reason to: the unique index refuses a lot with an id that
the log has, the lot is settled again with a look at each id, and so are those that follow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from penstock.base.errors import PenstockError, StoreUnavailable
from penstock.base.on_postgres import Pool, answering, become
from penstock.ingress.lot import Lot, Receipt, Row, SegmentMark
from penstock.ingress.rows import EVENT_COLUMNS, TAG_COLUMNS
from penstock.sql import query
from penstock.store.intake.settle import Key, LetterTally, Settlement, keys_of, settle

Connection = psycopg.Connection[TupleRow]
_WARY_LOTS = 200  # how many lots are looked up after one that held a duplicate


class Fenced(PenstockError):
    """A newer ingress has taken over; this one must stop writing."""

    code = "fenced"
    remedy = "Nothing to do: the newer ingress goes on from the same ledger."


class PostgresIntake:
    """An intake over one connection of its own, reopened when it breaks."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: Connection | None = None
        self._wary = 0

    def settle(self, lot: Lot) -> Receipt:
        """Settle the lot, all of it or nothing; StoreUnavailable when PostgreSQL is away."""
        try:
            try:
                receipt = self._commit(lot, look_up=self._wary > 0)
            except psycopg.errors.UniqueViolation:
                self._wary = _WARY_LOTS
                receipt = self._commit(lot, look_up=True)
        except psycopg.Error as error:
            self.close()
            raise StoreUnavailable(f"the lot was not committed: {error}") from error
        self._wary = _WARY_LOTS if receipt.duplicates else max(0, self._wary - 1)
        return receipt

    def _commit(self, lot: Lot, *, look_up: bool) -> Receipt:
        connection = self._open()
        with connection.transaction():
            return _settle(connection, lot, look_up=look_up)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._dsn, autocommit=True, connect_timeout=5)
            become(self._connection, "penstock_ingest")
            self._connection.execute(query("intake", "never_scan"))
            self._connection.execute(query("intake", "bound_waits"))
        return self._connection


class LogIndex:
    """Which ids the log holds, and with what content."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def known(self, tenant_id: str, ids: Sequence[str]) -> dict[str, bytes]:
        """The content hash of each of these ids that is stored."""
        with answering(), self._pool.connection(timeout=2) as connection:
            found = _known(connection, [(tenant_id, event_id) for event_id in ids])
        return {event_id: content for (_, event_id), content in found.items()}


def _settle(connection: Connection, lot: Lot, *, look_up: bool) -> Receipt:
    base, at, epoch, settled = _lock(connection, lot)
    if lot.epoch is not None and epoch != lot.epoch:
        raise Fenced(f"expected ingress epoch {lot.epoch}, found {epoch}")
    marks = [mark for mark in lot.segments if mark.segment not in settled]
    messages = [item for mark in marks for item in mark.messages]
    messages.extend(lot.messages)
    if not messages and not marks:
        return Receipt(last_position=base, already_settled=tuple(sorted(settled)))
    known = _known(connection, keys_of(messages)) if look_up else {}
    result = settle(messages, known, now=at)
    _copy_events(connection, result.fresh, base, at)
    _copy_tags(connection, result.fresh, base)
    last = base + len(result.fresh)
    with connection.pipeline():
        _keep_letters(connection, result.letters.values(), at)
        connection.execute(query("intake", "count_appended"), {"base": base})
        _count_sources(connection, result)
        _count_writers(connection, lot, marks)
        _count_totals(connection, result, last)
        connection.execute(query("intake", "advance"), {"position": last, "at": at})
        if result.fresh:
            connection.execute(query("intake", "notify"), {"position": str(last)})
    return Receipt(
        stored=len(result.fresh),
        duplicates=result.duplicates,
        dead=result.dead,
        last_position=last,
        already_settled=tuple(sorted(settled)),
    )


def _lock(connection: Connection, lot: Lot) -> tuple[int, datetime, int, set[str]]:
    """Take the head lock, first of all statements, so that what follows sees every commit."""
    names = [mark.segment for mark in lot.segments]
    with connection.pipeline():
        head = connection.execute(query("intake", "lock_head"))
        fence = connection.execute(query("intake", "epoch"))
        done = connection.execute(query("intake", "settled"), {"segments": names})
        base, at = _one(head)
        return base, at.astimezone(UTC), _one(fence)[0], {row[0] for row in done.fetchall()}


def _known(connection: Connection, keys: list[Key]) -> dict[Key, bytes]:
    ids: dict[str, list[str]] = {}
    for tenant_id, event_id in keys:
        ids.setdefault(tenant_id, []).append(event_id)
    known: dict[Key, bytes] = {}
    for tenant_id, wanted in ids.items():
        bound = {"tenant": tenant_id, "ids": wanted}
        found = connection.execute(query("intake", "known"), bound, binary=True)
        known |= {(tenant_id, event_id): content for event_id, content in found.fetchall()}
    return known


def _copy_events(connection: Connection, fresh: Sequence[Row], base: int, at: datetime) -> None:
    if not fresh:
        return
    stamp = f"\t{at.isoformat()}".encode()
    block = b"".join([b"%d%b%b" % (base + n, stamp, row.line) for n, row in enumerate(fresh, 1)])
    _copy(connection, "workflow_events", EVENT_COLUMNS, block)


def _copy_tags(connection: Connection, fresh: Sequence[Row], base: int) -> None:
    block = b"".join(
        [b"%d%b" % (base + n, line) for n, row in enumerate(fresh, 1) for line in row.tags]
    )
    if block:
        _copy(connection, "event_tags", TAG_COLUMNS, block)


def _copy(connection: Connection, table: str, columns: tuple[str, ...], block: bytes) -> None:
    statement = sql.SQL(query("intake", "copy")).format(
        table=sql.Identifier(table), columns=sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(block)


def _keep_letters(connection: Connection, letters: Iterable[LetterTally], at: datetime) -> None:
    for letter in letters:
        keep_letter(connection, letter, at)


def keep_letter(connection: Connection, letter: LetterTally, at: datetime) -> None:
    """Keep one dead letter, or count it up when it is known."""
    rejected = letter.rejected
    connection.execute(
        query("intake", "keep_letter"),
        {
            "id": rejected.dead_letter_id,
            "tenant_id": rejected.tenant_id,
            "reason": rejected.reason,
            "detail": _storable(rejected.detail),
            "pointer": _storable(rejected.pointer),
            "type": _storable(rejected.event_type),
            "source": _storable(rejected.source),
            "event_id": _storable(rejected.event_id),
            "raw": rejected.raw,
            "via": rejected.via,
            "at": at,
            "count": letter.count,
        },
    )


def _storable(text: str | None) -> str | None:
    """Text that PostgreSQL can keep: what a bad message says of itself may hold anything."""
    if text is None:
        return None
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _count_sources(connection: Connection, result: Settlement) -> None:
    for (tenant_id, source), tally in result.sources.items():
        connection.execute(
            query("intake", "count_source"),
            {
                "tenant_id": tenant_id,
                "source": _storable(source),
                "stored": tally.stored,
                "duplicates": tally.duplicates,
                "dead": tally.dead,
                "lag_total_ms": tally.lag_total_ms,
                "lag_last_ms": tally.lag_last_ms,
                "lag_max_ms": tally.lag_max_ms,
                "last_event_at": tally.last_event_at,
            },
        )


def _count_writers(connection: Connection, lot: Lot, marks: Sequence[SegmentMark]) -> None:
    ends: dict[str, int] = {}
    settled: dict[str, int] = {}
    for mark in marks:
        ends[mark.writer] = max(ends.get(mark.writer, 0), mark.end)
        settled[mark.writer] = settled.get(mark.writer, 0) + len(mark.messages)
        connection.execute(query("intake", "settle_segment"), {"segment": mark.segment})
    for writer in sorted(ends):
        row = {"writer": writer, "end": ends[writer], "lines": settled[writer]}
        connection.execute(query("intake", "count_segments"), row)
    if lot.messages:
        row = {"writer": lot.writer, "lines": len(lot.messages)}
        connection.execute(query("intake", "count_direct"), row)


def _count_totals(connection: Connection, result: Settlement, last: int) -> None:
    totals = {
        "stored": len(result.fresh), "duplicates": result.duplicates, "dead": result.dead,
        "counted": last,
    }  # fmt: skip
    connection.execute(query("intake", "count_totals"), totals)


def _one(cursor: psycopg.Cursor[TupleRow]) -> TupleRow:
    row = cursor.fetchone()
    if row is None:
        raise StoreUnavailable("a one-row table of the store has no row")
    return row
