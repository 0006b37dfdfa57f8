"""Summarise matching events in PostgreSQL, as the reader role and within its time limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from psycopg import sql

from penstock.base.clock import Clock, SystemClock
from penstock.base.on_postgres import Pool
from penstock.envelope.envelope import Severity
from penstock.explorer.facets import (
    KEYS_DEFAULT,
    SAMPLE_MAX,
    VALUES_DEFAULT,
    Facets,
    check_keys,
    rank_values,
    tag_keys,
)
from penstock.explorer.histogram import BUCKETS_DEFAULT, Bucket, Ruler, fill, rule, window_of
from penstock.sql import query as named
from penstock.store.query import EventQuery
from penstock.store.walk.choose import filter_parameters
from penstock.store.walk.on_postgres import (
    Connection,
    Reading,
    filters,
    find_types,
    find_walk,
    find_way,
)


class ExplorerReader:
    """Counts what a query would find, for one tenant at a time."""

    def __init__(
        self, pool: Pool, *, clock: Clock | None = None, sample_max: int = SAMPLE_MAX
    ) -> None:
        self._reading = Reading(pool)
        self._clock = clock or SystemClock()
        self._sample_max = sample_max

    def facets(
        self, query: EventQuery, *, keys: Sequence[str] = KEYS_DEFAULT, limit: int = VALUES_DEFAULT
    ) -> Facets:
        """The commonest values of each key among the newest matching events."""
        check_keys(keys)
        with self._reading.tenant(query.tenant_id, query.json_path) as connection:
            way = find_way(connection, query, wanted="many")
            text = sql.SQL(named("explorer", "facets")).format(walk=way.sql)
            asked = {"keys": list(keys), "tag_keys": tag_keys(keys), "limit": self._sample_max}
            rows = connection.execute(text, way.parameters | asked, prepare=False).fetchall()
        counted: dict[str | None, list[tuple[str, int]]] = {}
        for key, value, events in rows:
            counted.setdefault(key, []).append((value, events))
        sampled = counted[None][0][1]
        return Facets(
            tuple(rank_values(key, counted.get(key, ()), limit) for key in keys),
            sampled=sampled,
            complete=sampled < self._sample_max,
        )

    def histogram(self, query: EventQuery, *, buckets: int = BUCKETS_DEFAULT) -> list[Bucket]:
        """Matching events per stretch of time and severity; by default over the last hour."""
        first, last = window_of(query, self._clock.now())
        query = replace(query, occurred_from=first, occurred_to=last)
        ruler = rule(first, last, buckets)
        with self._reading.tenant(query.tenant_id, query.json_path) as connection:
            return fill(ruler, _count(connection, query, ruler))


def _count(
    connection: Connection, query: EventQuery, ruler: Ruler
) -> list[tuple[datetime, Severity, int]]:
    types = find_types(connection, query)
    walk = find_walk(connection, query, types, wanted="all")
    connection.execute(named("explorer", "let_planner_choose"))
    name = "histogram_of_tag" if walk.index == "tag" else "histogram"
    parameters = filter_parameters(query, types) | {"tag": "".join(walk.values)}
    rows = connection.execute(
        sql.SQL(named("explorer", name)).format(filters=filters()),
        {**parameters, "step": ruler.step},
        prepare=False,
    )
    return [(start, Severity(severity), events) for start, severity, events in rows]
