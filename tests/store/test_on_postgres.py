"""Events come back as they were stored, in commit order, whatever happens in between."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from tests.store.support import KEY, NOON, load, load_many, stored

from penstock.base.errors import StoreUnavailable
from penstock.base.on_postgres import Pool, open_pool
from penstock.envelope.envelope import Severity
from penstock.store.on_postgres import EventReader
from penstock.store.query import EventQuery
from penstock.store.walk.on_postgres import Reading, head_of


def test_every_part_of_an_event_comes_back(database: str, reader: EventReader) -> None:
    event = stored(
        1,
        id="evt-001",
        type="CODE.MERGED.SUCCESS",
        source="/a?b#c",
        occurred_at=NOON + timedelta(microseconds=123_456),
        payload={"π": [1, 2.5, None, True, Decimal("0.10000000000000000000000001"), 2**62]},
        tags={"userId": "ü:1"},
        correlation_id="req-1",
        causation_id="evt-000",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ttl_ms=60_000,
        metadata={"deep": {"er": "\u2028"}},
        schema_version=3,
        tenant_id="acme",
        severity=Severity.WARNING,
    )
    load(database, [event])

    assert reader.page(EventQuery("acme")).events == [event]
    assert reader.by_id("acme", "evt-001") == event
    assert reader.after(0, 10) == [event]


def test_a_payload_may_be_any_json(database: str, reader: EventReader) -> None:
    payloads = [None, True, 0, -1.5, "text", [], {}, [{"a": [None]}]]
    load(database, [stored(n, payload=payload) for n, payload in enumerate(payloads, 1)])

    assert [event.envelope.payload for event in reader.after(0, 10)] == payloads


def test_events_that_arrive_between_pages_disturb_nothing(
    database: str, reader: EventReader
) -> None:
    load(database, [stored(n) for n in range(1, 8)])
    first = reader.page(EventQuery("default"), limit=3)

    load(database, [stored(n, occurred_at=NOON - timedelta(days=1)) for n in range(8, 12)])
    second = reader.page(EventQuery("default"), limit=3, cursor=first.next_cursor)
    third = reader.page(EventQuery("default"), limit=3, cursor=second.next_cursor)

    shown = [e.position for page in (first, second, third) for e in page.events]
    assert shown == [7, 6, 5, 4, 3, 2, 1]
    assert [e.position for e in reader.after(7, 10)] == [8, 9, 10, 11]


def test_a_late_event_is_shown_where_it_was_committed(database: str, reader: EventReader) -> None:
    load(database, [stored(1), stored(2), stored(3, occurred_at=NOON - timedelta(days=400))])

    assert [e.position for e in reader.page(EventQuery("default")).events] == [3, 2, 1]


def test_one_reading_sees_one_instant(database: str, reader_pool: Pool) -> None:
    load(database, [stored(1)])

    with Reading(reader_pool).tenant("default") as connection:
        before = head_of(connection)
        load(database, [stored(2, type="a.new_type")])
        after = head_of(connection)

    assert (before, after) == (1, 1)


def test_a_small_tenant_catches_up_through_a_long_log(database: str, reader: EventReader) -> None:
    load_many(database, LONG_LOG)

    seen: list[int] = []
    while found := reader.after(seen[-1] if seen else 0, 3, tenant_id="small"):
        seen += [event.position for event in found]
    newest_first: list[int] = []
    cursor = None
    while True:
        page = reader.page(EventQuery("small"), limit=3, cursor=cursor)
        newest_first += [event.position for event in page.events]
        cursor = page.next_cursor
        if cursor is None:
            break

    assert seen == list(range(1500, 12_001, 1500))
    assert newest_first == seen[::-1]


LONG_LOG = """
INSERT INTO workflow_events (position, tenant_id, id, type, source, occurred_at, severity,
                             severity_rule, content_hash, hash)
SELECT n, CASE WHEN n % 1500 = 0 THEN 'small' ELSE 'large' END, 'e' || n, 'a.b', 's' || n % 7,
       timestamptz '2026-03-01Z' + n * interval '1 s', 'info', 'default', '', ''
  FROM generate_series(1, 12000) AS n
"""


@pytest.fixture
def closed_reader(database: str) -> EventReader:
    with open_pool(database, "penstock_reader", size_max=1, wait_s=0.2) as pool:
        pass
    return EventReader(pool, pool, cursor_key=KEY)


def test_a_database_that_is_away_is_said_so(closed_reader: EventReader) -> None:
    for read in (
        lambda: closed_reader.page(EventQuery("default")),
        lambda: closed_reader.page(EventQuery("default", json_path="$.a")),
        lambda: closed_reader.by_id("default", "evt-1"),
        lambda: closed_reader.after(0, 1),
        lambda: closed_reader.after(0, 1, tenant_id="default"),
        closed_reader.head,
    ):
        with pytest.raises(StoreUnavailable):
            read()


def test_a_crowded_pool_is_said_to_be_unavailable(database: str) -> None:
    with open_pool(database, "penstock_reader", size_max=1, wait_s=0.1) as pool:
        reader = EventReader(pool, cursor_key=KEY)

        with pool.connection(), pytest.raises(StoreUnavailable):
            reader.page(EventQuery("default"))

        assert reader.page(EventQuery("default")).events == []


def test_a_reader_without_a_pool_for_all_tenants_refuses_to_read_them(reader_pool: Pool) -> None:
    with pytest.raises(StoreUnavailable, match="all tenants"):
        EventReader(reader_pool, cursor_key=KEY).after(0, 1)
