"""Look back over the log in PostgreSQL, and keep snapshots beside it.

    PostgresHistory     reads as the reader role: one tenant, read-only, with a time limit
    PostgresSnapshots   reads likewise; writes the cache, and nothing else, by a role that may

Each stretch of a history is a short transaction of its own. What is read never changes, so they
need not share a snapshot of the database, and no connection is held while events are folded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import LiteralString, TypeAlias, cast

import psycopg
import structlog
from psycopg import sql
from psycopg.rows import TupleRow

from penstock.base.clock import Clock, SystemClock
from penstock.base.errors import PenstockError, StoreUnavailable
from penstock.base.on_postgres import Pool, answering
from penstock.envelope.codec import encode, load_stored
from penstock.envelope.envelope import JsonObject, Stored
from penstock.envelope.names import glob_regex, is_glob
from penstock.sql import query as named
from penstock.store.on_postgres import read_events
from penstock.store.timetravel.boundary import Boundary, from_definition
from penstock.store.timetravel.diff import same
from penstock.store.timetravel.history import STRETCH, Stretch
from penstock.store.timetravel.lens import Lens
from penstock.store.timetravel.moment import Moment
from penstock.store.timetravel.roster import installed
from penstock.store.timetravel.snapshot import SnapshotKey, Used
from penstock.store.timetravel.state import State
from penstock.store.timetravel.travel import TimeTravel
from penstock.store.walk.choose import Parameter
from penstock.store.walk.on_postgres import Connection, Reading

Walked: TypeAlias = tuple[LiteralString, str]  # a statement, and the value it walks
_COUNT_MAX = 20_000  # of a tag are counted to find the rarest
_NOTHING_MATCHES = "(?!)"
_log = structlog.get_logger("timetravel")


def open_time_travel(
    reader: Pool,
    writer: Pool,
    *,
    cursor_key: bytes,
    lens: Callable[[], Lens],
    clock: Clock | None = None,
) -> TimeTravel:
    """Time travel over the store, with the reducers of this installation."""
    roster = installed()
    for name, why in roster.broken.items():
        _log.error("reducer_not_loaded", reducer=name, detail=why)
    return TimeTravel(
        PostgresHistory(reader),
        PostgresSnapshots(reader, writer),
        roster,
        cursor_key=cursor_key,
        clock=clock or SystemClock(),
        timer=time.monotonic,
        lens=lens,
    )


class PostgresHistory:
    """The log of PostgreSQL, oldest first."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._reading = Reading(pool)

    def head(self) -> Moment:
        position, at = self._one("log_head", {})
        return Moment(position, at)

    def locate(self, asked: int | datetime) -> Moment:
        if isinstance(asked, int):
            return Moment(asked, self._one("instant_of", {"position": asked})[0])
        position, at = self._one("position_at", {"instant": asked})
        return Moment(position, at)

    def walk(
        self, boundary: Boundary, *, after: int, upto: int, size: int = STRETCH
    ) -> Iterator[Stretch]:
        walked: Walked | None = None
        while after < upto:
            with self._reading.tenant(boundary.tenant_id) as connection:
                walked = walked or _walked(connection, boundary)
                positions = _positions(connection, boundary, walked, after, upto, size)
                events = _events(connection, boundary, positions)
            after = positions[-1] if len(positions) == size else upto
            yield Stretch(events, after)

    def has_grown(self, boundary: Boundary, *, after: int, by: int) -> bool:
        with self._reading.tenant(boundary.tenant_id) as connection:
            walked = _walked(connection, boundary)
            return len(_positions(connection, boundary, walked, after, 2**63 - 1, by)) == by

    def find(self, tenant_id: str, event_id: str) -> Stored | None:
        parameters: dict[str, Parameter] = {"tenant": tenant_id, "id": event_id}
        with self._reading.tenant(tenant_id) as connection:
            found = read_events(connection, sql.SQL(named("store", "by_id")), parameters)
        return found[0] if found else None

    def _one(self, name: str, parameters: dict[str, Parameter]) -> TupleRow:
        with answering(), self._pool.connection() as connection:
            row = connection.execute(named("timetravel", name), parameters).fetchone()
        if row is None:
            raise StoreUnavailable("a one-row table of the store has no row")
        return row


class PostgresSnapshots:
    """Snapshots in PostgreSQL; the writer's role may change nothing of the log."""

    def __init__(self, reader: Pool, writer: Pool) -> None:
        self._reading = Reading(reader)
        self._writer = writer

    def nearest(self, key: SnapshotKey, *, upto: int) -> State | None:
        parameters = _names(key) | {"upto": upto}
        with self._reading.tenant(key.tenant_id) as connection:
            row = connection.execute(named("timetravel", "snapshot"), parameters).fetchone()
        if row is None:
            return None
        position, events, state, is_long_ago = row
        if is_long_ago:
            self._use(key)
        return State(cast("JsonObject", load_stored(state)), events, position)

    def keep(self, key: SnapshotKey, state: State) -> None:
        parameters = _names(key) | {"position": state.position, "events": state.events}
        try:
            parameters["state"] = encode(state.value).decode()
            with answering(), self._writer.connection() as connection, connection.transaction():
                connection.execute(named("timetravel", "use_boundary"), parameters)
                kept = connection.execute(named("timetravel", "keep_snapshot"), parameters)
                row = kept.fetchone()
                # A number or a text that jsonb says otherwise would make the next state another.
                if row is not None and not same(load_stored(row[0]), state.value):
                    raise psycopg.Rollback
        except (PenstockError, psycopg.Error) as error:
            _log.warning("snapshot_not_kept", position=state.position, detail=str(error))

    def in_use(self, *, most: int) -> Iterable[Used]:
        with answering(), self._writer.connection() as connection:
            rows = connection.execute(named("timetravel", "newest_of_boundaries"), {"most": most})
            found = rows.fetchall()
        for tenant_id, reducer, definition, position in found:
            boundary = from_definition(tenant_id, load_stored(definition))
            if boundary is not None:
                yield Used(SnapshotKey(boundary, reducer), position)

    def forget(self, tenant_id: str, boundary: Boundary | None = None) -> int:
        digest = None if boundary is None else boundary.digest
        return self._forget("forget_boundary", {"tenant": tenant_id, "boundary": digest})

    def forget_unused(self, *, days: int) -> int:
        return self._forget("forget_unused", {"days": days})

    def _forget(self, name: str, parameters: dict[str, Parameter]) -> int:
        with answering(), self._writer.connection() as connection:
            return connection.execute(named("timetravel", name), parameters).rowcount

    def _use(self, key: SnapshotKey) -> None:
        try:
            with answering(), self._writer.connection() as connection:
                connection.execute(named("timetravel", "use_boundary"), _names(key))
        except (PenstockError, psycopg.Error) as error:
            _log.warning("boundary_not_marked", detail=str(error))


def _names(key: SnapshotKey) -> dict[str, Parameter]:
    return {
        "tenant": key.tenant_id,
        "boundary": key.boundary.digest,
        "reducer": key.reducer,
        "definition": encode(key.boundary.definition).decode(),
    }


def _walked(connection: Connection, boundary: Boundary) -> Walked:
    """Which index to walk: one request's events are few; else the rarest tag."""
    if boundary.correlation_id is not None:
        return named("timetravel", "stretch_of_correlation"), boundary.correlation_id
    if boundary.event_id is not None:
        return named("timetravel", "stretch_of_event"), boundary.event_id
    tags = [f"{key}:{value}" for key, value in boundary.tags]
    if len(tags) > 1:
        parameters: dict[str, Parameter] = {
            "tenant": boundary.tenant_id, "tags": tags, "most": _COUNT_MAX,
        }  # fmt: skip
        row = connection.execute(named("timetravel", "rarest_tag"), parameters).fetchone()
        tags = [row[0]] if row is not None else tags
    return named("timetravel", "stretch_of_tag"), tags[0]


def _positions(
    connection: Connection, boundary: Boundary, walked: Walked, after: int, upto: int, size: int
) -> list[int]:
    statement, value = walked
    parameters: dict[str, Parameter] = {
        "tenant": boundary.tenant_id, "walked": value, "after": after, "upto": upto, "limit": size,
    }  # fmt: skip
    return [position for (position,) in connection.execute(statement, parameters, prepare=False)]


def _events(connection: Connection, boundary: Boundary, positions: list[int]) -> list[Stored]:
    if not positions:
        return []
    globs = [name for name in boundary.types if is_glob(name)]
    parameters: dict[str, Parameter] = {
        "tenant": boundary.tenant_id,
        "positions": positions,
        "correlation_id": boundary.correlation_id,
        "is_any_type": not boundary.types,
        "types": [name for name in boundary.types if not is_glob(name)],
        "type_regex": "|".join(f"(?:{glob_regex(glob)})" for glob in globs) or _NOTHING_MATCHES,
        "tags": [encode({key: value}).decode() for key, value in boundary.tags] or None,
    }
    part = sql.SQL(named("timetravel", "in_boundary"))
    return read_events(connection, part, parameters)[::-1]
