"""Stored payloads are read back newest first, a page at a time, of one tenant and type only."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import psycopg
import pytest
from tests.store.support import NOON, load, load_many, stored

from penstock.base.errors import QueryTooSlow
from penstock.base.on_postgres import Pool, open_pool
from penstock.registry.evidence import KeptPayload, StoredPayloads
from penstock.store.compatibility.in_memory import InMemoryPayloads
from penstock.store.compatibility.on_postgres import PostgresPayloads

TYPE = "order.placed"
EVENTS = [
    stored(
        n,
        type=TYPE if n % 3 else "order.place",
        tenant_id="acme" if n % 5 else "other",
        source=f"shop.{n % 2}",
        payload={"n": n, "exact": Decimal("0.1000000000000000000000000001")},
        schema_version=None if n % 7 == 0 else 1 + n % 2,
    )
    for n in range(1, 60)
]


@pytest.fixture(params=["in_memory", "on_postgres"])
def payloads(request: pytest.FixtureRequest) -> Iterator[StoredPayloads]:
    if request.param == "in_memory":
        yield InMemoryPayloads(EVENTS)
        return
    database = request.getfixturevalue("database")
    load(database, EVENTS)
    with open_pool(database, "penstock_reader", size_max=2, timeout_ms=2_000) as pool:
        yield PostgresPayloads(pool)


def read(
    payloads: StoredPayloads, *, tenant: str = "acme", event_type: str = TYPE,
    before: int | None = None, since_s: int = 0, limit: int = 100,
) -> list[KeptPayload]:  # fmt: skip
    since = NOON + timedelta(seconds=since_s)
    return payloads.page(tenant, event_type, before=before, since=since, limit=limit, within_s=5)


def test_a_page_holds_the_newest_events_of_one_tenant_and_type(payloads: StoredPayloads) -> None:
    expected = [n for n in range(59, 0, -1) if n % 3 and n % 5]

    found = read(payloads)

    assert [kept.position for kept in found] == expected
    newest = found[0]
    assert (newest.event_id, newest.source) == ("evt-59", "shop.1")
    assert newest.payload == EVENTS[58].envelope.payload
    assert [kept.schema_version for kept in found][:3] == [2, 1, None]


def test_pages_follow_each_other_without_gap_or_repetition(payloads: StoredPayloads) -> None:
    seen: list[int] = []
    before = None
    while page := read(payloads, before=before, limit=7):
        seen += [kept.position for kept in page]
        before = page[-1].position

    assert seen == [kept.position for kept in read(payloads)]


def test_events_received_before_the_window_are_left_out(payloads: StoredPayloads) -> None:
    found = read(payloads, since_s=50)

    assert [kept.position for kept in found] == [59, 58, 56, 53, 52]


@pytest.mark.parametrize(
    ("tenant", "event_type"), [("nobody", TYPE), ("acme", "order"), ("acme", "order.placedX")]
)
def test_what_nobody_stored_is_nothing(
    payloads: StoredPayloads, tenant: str, event_type: str
) -> None:
    assert read(payloads, tenant=tenant, event_type=event_type) == []


def test_a_page_that_passes_its_time_is_stopped(database: str) -> None:
    load(database, EVENTS)
    with (
        open_pool(database, "penstock_reader", size_max=2) as pool,
        psycopg.connect(database) as other,
    ):
        other.execute("LOCK TABLE workflow_events IN ACCESS EXCLUSIVE MODE")

        with pytest.raises(QueryTooSlow):
            PostgresPayloads(pool).page(
                "acme", TYPE, before=None, since=NOON, limit=10, within_s=0.05
            )


_WAITS = """
SELECT 1 FROM pg_stat_activity
 WHERE datname = current_database() AND wait_event_type = 'Lock'
   AND clock_timestamp() - query_start > interval '150 ms'
"""


def give_way(database: str, holder: psycopg.Connection[tuple[object, ...]]) -> None:
    """Let go of the lock once somebody has waited longer than the pool would let them."""
    with psycopg.connect(database, autocommit=True) as watching:
        while watching.execute(_WAITS).fetchone() is None:
            pass
    holder.rollback()


def test_a_time_limit_of_its_own_outlives_that_of_the_pool_and_no_longer(database: str) -> None:
    load(database, EVENTS)
    with (
        open_pool(database, "penstock_reader", size_max=1, timeout_ms=50) as pool,
        psycopg.connect(database) as other,
    ):
        other.execute("LOCK TABLE workflow_events IN ACCESS EXCLUSIVE MODE")
        threading.Thread(target=give_way, args=(database, other)).start()

        found = read(PostgresPayloads(pool))

        assert found
        with pool.connection() as connection:
            assert connection.execute("SHOW statement_timeout").fetchone() == ("50ms",)


def test_only_the_index_on_type_is_walked_however_many_other_events_there_are(
    database: str, reader_pool: Pool
) -> None:
    load(database, EVENTS)
    load_many(
        database,
        """INSERT INTO workflow_events (position, tenant_id, id, type, source, occurred_at,
             received_at, severity, severity_rule, content_hash, hash)
           SELECT n, 'acme', 'x' || n, 'a.b', 's', '2026-03-01T12:00:00Z', '2026-03-01T13:00:00Z',
                  'info', 'default', '', '' FROM generate_series(100, 20000) AS n""",
    )
    from penstock.sql import query

    given = {"tenant": "acme", "type": TYPE, "before": 2**62, "since": NOON, "limit": 5}
    with reader_pool.connection() as connection, connection.transaction():
        connection.execute(
            query("compatibility", "enter"), {"tenant": "acme", "timeout_ms": "1000"}
        )
        plan = "\n".join(
            row[0]
            for row in connection.execute(
                "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, BUFFERS OFF) "
                + query("compatibility", "page"),
                given,
            )
        )

    assert "Index Scan Backward using workflow_events_type" in plan
    assert "Sort" not in plan
