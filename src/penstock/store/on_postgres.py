"""Read events back from PostgreSQL: a page of matches, one by its id, all after a position.

    page(query)      newest first, in the order of the log; the cursor goes on from any page
    after(position)  oldest first, every event committed since, without a gap
    matching(query)  oldest first, the next matches after a position, and how far they reach

tests/store/test_twins_agree.py holds it to its twin in memory.
"""

from __future__ import annotations

import re
from typing import LiteralString, cast

import orjson
from psycopg import sql
from psycopg.rows import TupleRow

from penstock.base.errors import StoreUnavailable
from penstock.base.on_postgres import Pool, answering
from penstock.envelope.codec import load_stored
from penstock.envelope.envelope import Envelope, JsonObject, Severity, Stored
from penstock.sql import query as named
from penstock.store.cursor import read_cursor, write_cursor
from penstock.store.onward.on_postgres import Leg, find_leg, log_leg
from penstock.store.onward.reach import Span, Stretch, asks_for_all, near, stretch
from penstock.store.query import LIMIT_DEFAULT, EventQuery, Page
from penstock.store.walk.choose import Parameter
from penstock.store.walk.on_postgres import (
    POSITION_MAX,
    Connection,
    Reading,
    find_way,
    head_of,
    keep_order,
    sources_of,
)

_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_STRETCH = 5_000  # of other tenants' events are passed over before asking source by source


class EventReader:
    """Reads one tenant's events as the reader role; `all_pool` is for the stream of all tenants."""

    def __init__(self, pool: Pool, all_pool: Pool | None = None, *, cursor_key: bytes) -> None:
        self._pool = pool
        self._all_pool = all_pool
        self._reading = Reading(pool)
        self._key = cursor_key

    def page(
        self, query: EventQuery, *, limit: int = LIMIT_DEFAULT, cursor: str | None = None
    ) -> Page:
        """The newest matching events, or those that follow a cursor of the same query."""
        tenant, before = query.tenant_id, POSITION_MAX
        if cursor is not None:
            before = read_cursor(cursor, tenant, query.digest, key=self._key)
        with self._reading.tenant(tenant, query.json_path) as connection:
            way = find_way(connection, query, before=before)
            found = read_events(connection, way.sql, way.parameters | {"limit": limit + 1})
        events, has_more = found[:limit], len(found) > limit
        following = None
        if has_more:
            following = write_cursor(tenant, events[-1].position, query.digest, key=self._key)
        return Page(events, following, has_more, limit)

    def by_id(self, tenant_id: str, event_id: str) -> Stored | None:
        """One event, or None when this tenant has none by that id."""
        if _ID.fullmatch(event_id) is None:
            return None
        with self._reading.tenant(tenant_id) as connection:
            found = read_events(connection, _part("by_id"), {"tenant": tenant_id, "id": event_id})
        return found[0] if found else None

    def after(self, position: int, limit: int, *, tenant_id: str | None = None) -> list[Stored]:
        """The first events after a position, oldest first; of all tenants when none is named."""
        parameters: dict[str, Parameter] = {"after": position, "limit": limit}
        if tenant_id is None:
            return self._after_all(parameters)
        parameters |= {"tenant": tenant_id, "stretch": _STRETCH}
        with self._reading.tenant(tenant_id) as connection:
            keep_order(connection)
            found = read_events(connection, _part("after_near"), parameters)
            if len(found) < limit and position + _STRETCH < head_of(connection):
                parameters["sources"] = sources_of(connection, tenant_id, most=None)
                found = read_events(connection, _part("after_by_source"), parameters)
        return found[::-1]

    def matching(self, query: EventQuery, *, after: int, until: int, limit: int) -> Stretch:
        """The first matches after a position, oldest first, none after `until`.

        There may be fewer than `limit` before `until` is reached; then go on from `through`.
        """
        span = Span(after, until)
        if asks_for_all(query):
            events = self.after(after, limit, tenant_id=query.tenant_id)
            found = stretch(events, span, limit)
            return Stretch([e for e in events if e.position <= until], min(found.through, until))
        with self._reading.tenant(query.tenant_id, query.json_path) as connection:
            keep_order(connection)
            found = _walked(connection, log_leg(query, near(span, limit)), limit)
            wanted = limit - len(found.events)
            if not wanted or found.through >= until:
                return found
            leg = find_leg(connection, query, Span(found.through, until))
            rest = _walked(connection, leg, wanted)
        return Stretch(found.events + rest.events, rest.through)

    def head(self) -> int:
        """The last position given out."""
        with answering(), self._pool.connection() as connection:
            return head_of(connection)

    def _after_all(self, parameters: dict[str, Parameter]) -> list[Stored]:
        if self._all_pool is None:
            raise StoreUnavailable("expected a pool that reads all tenants, found none")
        with answering(), self._all_pool.connection() as connection:
            return read_events(connection, _part("after"), parameters)[::-1]


_SEVERITIES = {str(each): each for each in Severity}


def _part(name: str) -> sql.Composable:
    return sql.SQL(named("store", name))


def _walked(connection: Connection, leg: Leg, limit: int) -> Stretch:
    events = read_events(connection, leg.way.sql, leg.way.parameters | {"limit": limit})
    return stretch(events[::-1], leg.span, limit)


def read_events(
    connection: Connection,
    walk: sql.Composable,
    parameters: dict[str, Parameter],
    *,
    prepare: bool = False,
) -> list[Stored]:
    """The events of one walk, newest first.

    Planned for these very values each time, since a plan for the average value is a wrong one;
    `prepare` is for a walk that is the same whatever the values.
    """
    page: LiteralString = named("store", "page")
    text = sql.SQL(page).format(walk=walk)
    return [_stored(row) for row in connection.execute(text, parameters, prepare=prepare)]


def _stored(row: TupleRow) -> Stored:
    """The columns of `page`, in their order, as the value we keep."""
    (
        position, tenant_id, event_id, event_type, source, occurred_at, received_at, payload, tags,
        correlation_id, causation_id, traceparent, ttl_ms, metadata, schema_version, schema_hash,
        severity, severity_rule, content_hash,
    ) = row  # fmt: skip
    # Every event that is judged, streamed or shown comes this way: in order, and what is empty or
    # all of text is not looked at for numbers.
    envelope = Envelope(
        event_id, event_type, source, occurred_at, load_stored(payload),
        {} if tags == "{}" else orjson.loads(tags),
        correlation_id, causation_id, traceparent, ttl_ms,
        {} if metadata == "{}" else cast("JsonObject", load_stored(metadata)),
        schema_version, tenant_id,
    )  # fmt: skip
    return Stored(
        position, envelope, received_at, _SEVERITIES[severity], severity_rule, schema_hash,
        content_hash,
    )  # fmt: skip
