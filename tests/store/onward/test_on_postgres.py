"""PostgreSQL is led to the next matches by an index, and never looks at more than was planned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from psycopg import sql
from tests.store.support import load_many

from penstock.base.on_postgres import Pool
from penstock.envelope.envelope import Severity
from penstock.sql import query as named
from penstock.store.onward.on_postgres import Leg, find_leg, log_leg
from penstock.store.onward.reach import ENTRIES_MAX, FAR, Span
from penstock.store.query import EventQuery
from penstock.store.walk.on_postgres import Connection, Reading, keep_order

LAST = 30_000
# Half of all events are a.hot, five are a.rare; every thousandth is the small tenant's.
EVENTS = f"""
INSERT INTO workflow_events (position, tenant_id, id, type, source, occurred_at, tags,
                             correlation_id, severity, severity_rule, content_hash, hash)
SELECT n, CASE WHEN n % 1000 = 7 THEN 'small' ELSE 'acme' END, 'e' || n,
       CASE WHEN n % 6000 = 0 THEN 'a.rare' WHEN n % 2 = 0 THEN 'a.hot' ELSE 'b.c' || n % 6 END,
       's' || n % 3, timestamptz '2026-03-01 12:00Z' + n * interval '1 s',
       jsonb_build_object('mode', 'm' || n % 2, 'user', 'u' || n / 7), 'req-' || n / 4,
       CASE WHEN n % 997 = 0 THEN 'error' ELSE 'info' END, 'default', '', ''
  FROM generate_series(1, {LAST}) AS n
"""  # noqa: S608, for the number above
TAGS = """
INSERT INTO event_tags
SELECT e.tenant_id, t.key || ':' || t.value, e.position
  FROM workflow_events AS e CROSS JOIN jsonb_each_text(e.tags) AS t
"""


@pytest.fixture(scope="module")
def pool(shared_database: str, shared_pool: Pool) -> Pool:
    load_many(shared_database, EVENTS)
    load_many(shared_database, TAGS)
    return shared_pool


@pytest.fixture
def connection(pool: Pool) -> Iterator[Connection]:
    with Reading(pool).tenant("acme") as opened:
        keep_order(opened)
        yield opened


def leg(connection: Connection, **said: Any) -> Leg:
    return find_leg(connection, EventQuery("acme", **said), Span(0, LAST))


def looked_at(leg: Leg) -> object:
    """The positions that an index led to; None when the log itself is walked."""
    return leg.way.parameters.get("positions")


@pytest.mark.parametrize(
    ("said", "positions"),
    [
        ({"types": ("a.rare",)}, list(range(6_000, LAST + 1, 6_000))),
        ({"types": ("a.r*", "*.rare")}, list(range(6_000, LAST + 1, 6_000))),
        ({"types": ("nothing.*",)}, []),
        ({"tags": (("user", "u900"),)}, list(range(6_300, 6_307))),
        ({"correlation_id": "req-900"}, list(range(3_600, 3_604))),
        ({"severities": (Severity.ERROR,)}, list(range(997, LAST + 1, 997))),
        ({"types": ("a.hot",), "tags": (("user", "u900"),)}, list(range(6_300, 6_307))),
    ],
)
def test_rare_matches_are_reached_at_once_to_the_end(
    connection: Connection, said: dict[str, Any], positions: list[int]
) -> None:
    found = leg(connection, **said)

    assert looked_at(found) == [p for p in positions if p % 1000 != 7]
    assert found.span == Span(0, LAST)


def test_an_index_of_which_there_is_more_leads_to_a_part_of_the_way(
    connection: Connection,
) -> None:
    found = leg(connection, types=("b.c1",))  # every sixth event

    ours = [p for p in range(1, LAST, 6) if p % 1000 != 7][:ENTRIES_MAX]
    assert looked_at(found) == ours
    assert found.span == Span(0, ours[-1])


@pytest.mark.parametrize(
    "said",
    [
        {"types": ("a.hot",)},
        {"types": ("**",)},
        {"types": ("a.hot",), "tags": (("mode", "m1"),)},
        {"severities": (Severity.INFO,)},
        {"sources": ("s0", "s1", "s2")},
    ],
)
def test_where_no_index_is_shorter_a_stretch_of_the_log_is_taken(
    connection: Connection, said: dict[str, Any]
) -> None:
    found = leg(connection, **said)

    assert looked_at(found) is None
    assert found.span == Span(0, FAR)


def test_a_small_tenant_is_reached_past_the_events_of_others(pool: Pool) -> None:
    query = EventQuery("small", severities=(Severity.INFO,))

    with Reading(pool).tenant("small") as connection:
        found = find_leg(connection, query, Span(0, LAST))

    assert looked_at(found) == list(range(7, LAST + 1, 1_000))
    assert found.span == Span(0, LAST)


def explained(connection: Connection, text: sql.Composable, parameters: Any) -> str:
    rows = connection.execute(sql.SQL("EXPLAIN ") + text, parameters, prepare=False).fetchall()
    return "\n".join(line for (line,) in rows)


def test_each_index_is_walked_from_the_first_bound_to_the_second(connection: Connection) -> None:
    parameters = {"choices": [0], "indexes": ["type"], "values": ["a.hot"], "entries": [512],
                  "tenant": "acme", "after": 9_000, "until": 9_100}  # fmt: skip

    plan = explained(connection, sql.SQL(named("store", "probe_onward")), parameters)

    for index in ("type", "source", "correlation", "severity"):
        assert f"Scan using workflow_events_{index} on" in plan
    assert "Scan using event_tags_pkey on" in plan
    assert plan.count("Index Cond:") == 5
    assert plan.count("(ROW(") == 8, "both bounds are part of each index condition"
    assert "Filter: (ROW" not in plan
    assert "Sort" not in plan


@pytest.mark.parametrize("types", [(), ("a.hot",), ("a.*",)])
def test_a_stretch_of_the_log_is_read_in_its_order_and_not_beyond(
    connection: Connection, types: tuple[str, ...]
) -> None:
    query = EventQuery("acme", types=types, severities=(Severity.INFO,))
    way = log_leg(query, Span(500, 1_500)).way
    text = sql.SQL(named("store", "page")).format(walk=way.sql)

    plan = explained(connection, text, way.parameters | {"limit": 256})

    (bounded,) = (line for line in plan.splitlines() if "Index Cond:" in line)
    assert "(\"position\" > '500'::bigint) AND (\"position\" <= '1500'::bigint)" in bounded
    assert plan.count("Sort Key") == 1, "only the page as a whole is turned around"
