"""Prepare a walk through the log: ask PostgreSQL for counts, and put the chosen SQL together.

    with reading.tenant("acme") as connection:
        way = find_way(connection, query, before=position)
        connection.execute(sql.SQL(query("store", "page")).format(walk=way.sql), …)

All questions of one reading see one snapshot, so an event that arrives in between cannot be
missing from the middle of an answer. The role may only read, sees one tenant, and has a time limit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import cast

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from penstock.base.errors import QueryTooSlow, StoreUnavailable
from penstock.base.on_postgres import Pool, answering
from penstock.envelope.names import is_glob, matches_glob
from penstock.sql import query as named
from penstock.store.jsonpath import refused
from penstock.store.query import EventQuery
from penstock.store.walk.choose import (
    COUNT_MAX,
    STRETCH,
    VALUES_MAX,
    Newest,
    Parameter,
    Walk,
    Wanted,
    candidates,
    choose,
    choose_log,
    has_window,
    literal_range,
    walk_parameters,
)

Connection = psycopg.Connection[TupleRow]

POSITION_MAX = 2**63 - 1
_TYPES_SEEN_MAX = 5_000
# A jsonPath may run to its time limit and take much memory on the way; the other readers keep
# most of the pool.
_PATHS_AT_ONCE = 2
_PATH_WAIT_S = 4.0


@dataclass(frozen=True, slots=True)
class Way:
    """A walk as SQL, and the parameters it wants beside `limit`."""

    sql: sql.Composed
    parameters: dict[str, Parameter]


class Reading:
    """Lends connections for reading one tenant, and says in our words what goes wrong."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._paths = threading.BoundedSemaphore(_PATHS_AT_ONCE)

    @contextmanager
    def tenant(self, tenant_id: str, json_path: str | None = None) -> Iterator[Connection]:
        """A read-only transaction that sees one tenant at one instant."""
        with (
            self._turn() if json_path is not None else nullcontext(),
            said_plainly(json_path),
            self._pool.connection() as connection,
        ):
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            with connection.transaction():
                connection.execute(named("store", "enter"), {"tenant": tenant_id})
                yield connection

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._paths.acquire(timeout=_PATH_WAIT_S):
            raise QueryTooSlow(
                f"expected a turn within {_PATH_WAIT_S:g} s, found other jsonPath searches running"
            )
        try:
            yield
        finally:
            self._paths.release()


@contextmanager
def said_plainly(json_path: str | None = None) -> Iterator[None]:
    """Turn what psycopg raises into our errors; without a jsonPath the rest is our mistake."""
    with answering():
        try:
            yield
        except psycopg.errors.StatementTooComplex:
            if json_path is None:
                raise
            raise refused("expected a simpler path, found one nested too deep") from None
        except psycopg.OperationalError:
            raise
        except psycopg.Error as error:
            if json_path is None:
                raise
            said = (error.diag.message_primary, error.diag.message_detail)
            raise refused(": ".join(filter(None, said)) or "it cannot be run") from None


def find_way(
    connection: Connection, query: EventQuery, *, before: int = POSITION_MAX, wanted: Wanted = "few"
) -> Way:
    """The walk to take for a query below a position."""
    before = min(before, end_of(connection, query) + 1)
    types = find_types(connection, query)
    walk = find_walk(connection, query, types, before=before, wanted=wanted)
    if walk.index == "log":
        keep_order(connection)
    return compose(query, types, walk, before=before)


def end_of(connection: Connection, query: EventQuery) -> int:
    """The last position of the log as of the place that the query names."""
    if query.as_of_instant is not None:
        parameters: dict[str, Parameter] = {"instant": query.as_of_instant}
        return cast("int", _one(connection, "position_at", parameters)[0])
    return POSITION_MAX - 1 if query.as_of_position is None else query.as_of_position


def keep_order(connection: Connection) -> None:
    """From here on, let this transaction walk the log in its order rather than sort."""
    connection.execute(named("store", "keep_order"))


def compose(query: EventQuery, types: list[str] | None, walk: Walk, *, before: int) -> Way:
    """One walk as SQL with its parameters."""
    text = sql.SQL(named("store", f"walk_{walk.index}"))
    parameters = walk_parameters(query, types, walk) | {"before": before}
    return Way(text.format(filters=filters()), parameters)


def filters() -> sql.Composable:
    """The conditions on one row `e`, for the parameters of `filter_parameters`."""
    return sql.SQL(named("store", "where_filters"))


def find_types(connection: Connection, query: EventQuery) -> list[str] | None:
    """The names that the query's types stand for in this tenant; None when they are too many."""
    found = {name for name in query.types if not is_glob(name)}
    for pattern in query.types:
        if is_glob(pattern):
            low, high = literal_range(pattern)
            seen = connection.execute(
                named("store", "types_between"),
                {"tenant": query.tenant_id, "low": low, "high": high, "most": _TYPES_SEEN_MAX},
            ).fetchall()
            if len(seen) == _TYPES_SEEN_MAX:
                return None
            found.update(name for (name,) in seen if matches_glob(pattern, name))
    return sorted(found) if len(found) <= VALUES_MAX else None


def find_walk(
    connection: Connection,
    query: EventQuery,
    types: list[str] | None,
    *,
    before: int = POSITION_MAX,
    wanted: Wanted = "few",
) -> Walk:
    """The index that reaches the matches of a query soonest."""
    walks = candidates(query, types)
    counts: dict[int, int] = {}
    in_window = _count_window(connection, query) if has_window(query) else None
    if len(walks) + has_window(query) > 1 or wanted != "few":
        counts = _count(connection, query.tenant_id, walks, before)
    chosen = choose(walks, counts, in_window, wanted)
    return _choose_log(connection, query, before) if chosen is None else chosen


def _count(
    connection: Connection, tenant_id: str, walks: list[Walk], before: int
) -> dict[int, int]:
    rows = [(n, walk.index, value) for n, walk in enumerate(walks) for value in walk.values]
    parameters: dict[str, Parameter] = {
        "choices": [n for n, _, _ in rows],
        "indexes": [str(index) for _, index, _ in rows],
        "values": [value for _, _, value in rows],
        "tenant": tenant_id,
        "before": before,
        "most": COUNT_MAX,
    }
    return dict(connection.execute(named("store", "probe"), parameters, prepare=False).fetchall())


def _count_window(connection: Connection, query: EventQuery) -> int:
    parameters: dict[str, Parameter] = {
        "tenant": query.tenant_id,
        "occurred_from": query.occurred_from,
        "occurred_to": query.occurred_to,
        "most": COUNT_MAX,
    }
    return cast("int", _one(connection, "probe_window", parameters)[0])


def _choose_log(connection: Connection, query: EventQuery, before: int) -> Walk:
    end = min(before, head_of(connection) + 1)
    parameters: dict[str, Parameter] = {
        "tenant": query.tenant_id, "before": end, "stretch": STRETCH,
    }  # fmt: skip
    newest = Newest(*_one(connection, "probe_log", parameters))
    sources = [] if newest.is_dense else sources_of(connection, query.tenant_id)
    return choose_log(query, newest, sources)


def head_of(connection: Connection) -> int:
    """The last position given out."""
    return cast("int", _one(connection, "head", {})[0])


def sources_of(
    connection: Connection, tenant_id: str, *, most: int | None = VALUES_MAX + 1
) -> list[str]:
    """The sources of a tenant; by default up to one more than are walked one by one."""
    parameters = {"tenant": tenant_id, "most": most}
    rows = connection.execute(named("store", "sources_of_tenant"), parameters)
    return [source for (source,) in rows]


def _one(connection: Connection, name: str, parameters: dict[str, Parameter]) -> TupleRow:
    row = connection.execute(named("store", name), parameters, prepare=False).fetchone()
    if row is None:
        raise StoreUnavailable(f"expected an answer to {name}, found none")
    return row
