"""PostgreSQL walks the index that was chosen, however common or old the matches are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from psycopg import sql
from tests.store.support import NOON, load_many

from penstock.base.on_postgres import Pool
from penstock.envelope.envelope import Severity
from penstock.sql import query as named
from penstock.store.query import EventQuery
from penstock.store.walk import on_postgres as walking
from penstock.store.walk.choose import Walk
from penstock.store.walk.on_postgres import (
    Connection,
    Reading,
    compose,
    find_types,
    find_walk,
    keep_order,
)

# Half of all events are a.hot; a.old ended long ago; every tenth is another tenant's.
EVENTS = """
INSERT INTO workflow_events (position, tenant_id, id, type, source, occurred_at, tags,
                             correlation_id, severity, severity_rule, content_hash, hash)
SELECT n, CASE WHEN n % 10 = 0 THEN 'other' ELSE 'acme' END, 'e' || n,
       CASE WHEN n <= 40 THEN 'a.old' WHEN n % 2 = 0 THEN 'a.hot' ELSE 'b.c' || n % 6 END,
       's' || n % 3, timestamptz '2026-03-01 12:00Z' + n * interval '1 s',
       jsonb_build_object('mode', 'm' || n % 2, 'user', 'u' || n / 7), 'req-' || n / 4,
       CASE WHEN n % 997 = 0 THEN 'error' ELSE 'info' END, 'default', '', ''
  FROM generate_series(1, 20000) AS n
"""
TAGS = """
INSERT INTO event_tags
SELECT e.tenant_id, t.key || ':' || t.value, e.position
  FROM workflow_events AS e CROSS JOIN jsonb_each_text(e.tags) AS t
"""


@pytest.fixture(scope="module")
def connection(shared_database: str, shared_pool: Pool) -> Iterator[Connection]:
    load_many(shared_database, EVENTS)
    load_many(shared_database, TAGS)
    with Reading(shared_pool).tenant("acme") as opened:
        yield opened


def plan(connection: Connection, query: EventQuery, walk: Walk) -> str:
    way = compose(query, find_types(connection, query), walk, before=19_000)
    text = sql.SQL(named("store", "page")).format(walk=way.sql)
    with connection.transaction(force_rollback=True):
        if walk.index == "log":
            keep_order(connection)
        rows = connection.execute(
            sql.SQL("EXPLAIN ") + text, way.parameters | {"limit": 101}, prepare=False
        ).fetchall()
    return "\n".join(line for (line,) in rows)


@pytest.mark.parametrize(
    ("walk", "index"),
    [
        (Walk("type", ("a.hot",)), "workflow_events_type"),
        (Walk("type", ("a.old",)), "workflow_events_type"),
        (Walk("type", ("a.old", "a.hot", "b.c1")), "workflow_events_type"),
        (Walk("source", ("s1",)), "workflow_events_source"),
        (Walk("correlation", ("req-5",)), "workflow_events_correlation"),
        (Walk("severity", ("error", "critical")), "workflow_events_severity"),
        (Walk("tag", ("mode:m1",)), "event_tags_pkey"),
        (Walk("tag", ("user:u5",)), "event_tags_pkey"),
        (Walk("log"), "workflow_events_pkey"),
    ],
)
@pytest.mark.parametrize("json_path", [None, "$.x == 1"])
def test_a_walk_goes_backwards_through_its_index(
    connection: Connection, walk: Walk, index: str, json_path: str | None
) -> None:
    said = plan(connection, EventQuery("acme", json_path=json_path), walk)

    assert f"Scan Backward using {index} on" in said
    assert "Seq Scan" not in said


def chosen(connection: Connection, **said: Any) -> Walk:
    query = EventQuery("acme", **said)
    return find_walk(connection, query, find_types(connection, query))


def test_of_two_filters_the_rarer_is_walked(connection: Connection) -> None:
    hot, rare = ("mode", "m1"), ("user", "u5")

    assert chosen(connection, tags=(hot, rare)) == Walk("tag", ("user:u5",))
    assert chosen(connection, tags=(hot,), correlation_id="req-9").index == "correlation"
    assert chosen(connection, tags=(hot,), types=("a.old",)) == Walk("type", ("a.old",))
    assert chosen(connection, sources=("s1",), types=("a.hot",)) == Walk("type", ("a.hot",))
    assert chosen(connection, severities=(Severity.ERROR,), sources=("s1",)).index == "severity"


def test_a_short_stretch_of_time_is_walked_and_a_long_one_is_not(connection: Connection) -> None:
    short = {"occurred_from": NOON, "occurred_to": NOON + timedelta(minutes=1)}
    future = {"occurred_from": NOON + timedelta(days=9)}
    past = {"occurred_to": NOON + timedelta(hours=2)}

    assert chosen(connection, types=("a.hot",), **short) == Walk("window")
    assert chosen(connection, **future) == Walk("window")
    assert chosen(connection, **past) == Walk("window")
    assert chosen(connection, occurred_from=NOON) == Walk("log")
    assert chosen(connection, types=("a.hot",), occurred_from=NOON) == Walk("type", ("a.hot",))


def test_a_glob_becomes_the_types_that_this_tenant_has(connection: Connection) -> None:
    query = EventQuery("acme", types=("a.*", "x.y"))

    assert find_types(connection, query) == ["a.hot", "a.old", "x.y"]
    assert find_types(connection, EventQuery("acme", types=("**.c1",))) == ["b.c1"]
    assert find_types(connection, EventQuery("nobody", types=("**",))) == []


def test_types_too_many_to_walk_are_matched_as_they_come(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = EventQuery("acme", types=("a.*",))
    monkeypatch.setattr(walking, "VALUES_MAX", 1)

    assert find_types(connection, query) is None
    assert find_walk(connection, query, None) == Walk("log")


def test_the_log_is_walked_where_a_tenant_has_much_of_it(connection: Connection) -> None:
    nobody = replace(EventQuery("acme"), tenant_id="nobody")

    assert chosen(connection) == Walk("log")
    assert find_walk(connection, nobody, []) == Walk("source", ())
