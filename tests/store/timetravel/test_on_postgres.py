"""History read from PostgreSQL is what its twin in memory says, tenant by tenant."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.support import KEY, NOON, load, load_many, stored
from tests.store.timetravel.support import ISSUE, said, told, travel_in, value

from penstock.base.errors import StoreUnavailable
from penstock.base.on_postgres import Pool
from penstock.envelope.envelope import Stored
from penstock.sql import query
from penstock.store.timetravel.boundary import Boundary, boundary
from penstock.store.timetravel.in_memory import HistoryInMemory
from penstock.store.timetravel.lens import as_stored
from penstock.store.timetravel.moment import START, Moment
from penstock.store.timetravel.on_postgres import (
    PostgresHistory,
    PostgresSnapshots,
    open_time_travel,
)
from penstock.store.timetravel.snapshot import SnapshotKey
from penstock.store.timetravel.state import State
from penstock.store.walk.on_postgres import Reading

TYPES = ("metastore.record.updated", "metastore.record.created", "CODE.MERGED.SUCCESS")
TENANTS = ("default", "acme")
ODD = ("日:本", "'\"\\")
LOG = [
    stored(
        n,
        tenant_id=TENANTS[n % 5 == 0],
        type=TYPES[n % 3],
        tags={"hot": "x", "naïve": ODD[n % 2], **({"rare": "y"} if n % 11 == 0 else {})},
        correlation_id=(None, "req-1", "req-2", "REQ-1")[n % 4],
        payload={"n": n},
    )
    for n in range(1, 121)
]  # fmt: skip
boundaries = st.builds(
    boundary,
    st.sampled_from((*TENANTS, "nobody")),
    st.lists(
        st.sampled_from(
            [("hot", "x"), ("rare", "y"), ("naïve", ODD[0]), ("naïve", ODD[1]), ("no", "1")]
        ),
        min_size=1, max_size=3,
    ),
    st.lists(st.sampled_from([*TYPES, "metastore.**", "*.MERGED.*", "no.such"]), max_size=2),
    st.sampled_from([None, None, "req-1", "REQ-1", "req"]),
)  # fmt: skip


@pytest.fixture(scope="module")
def log(shared_database: str, shared_pool: Pool) -> PostgresHistory:
    load(shared_database, LOG)
    return PostgresHistory(shared_pool)


def walked(history: Any, where: Boundary, after: int, upto: int, size: int) -> list[Stored]:
    """All events of a walk, whose stretches lie one after another and reach the end."""
    found: list[Stored] = []
    reached = after
    for stretch in history.walk(where, after=after, upto=upto, size=size):
        assert all(reached < event.position <= stretch.upto for event in stretch.events)
        reached = stretch.upto
        found += stretch.events
    assert reached == upto or after >= upto
    return found


@settings(max_examples=80, deadline=None)
@given(boundaries, st.integers(0, 120), st.integers(0, 120), st.sampled_from([1, 3, 50]))
def test_a_walk_finds_the_events_of_the_twin_in_their_order(
    log: PostgresHistory, where: Boundary, after: int, upto: int, size: int
) -> None:
    twin = HistoryInMemory(LOG)

    found = walked(log, where, after, upto, size)

    assert found == walked(twin, where, after, upto, size)
    assert [e.position for e in found] == sorted(e.position for e in found)


@pytest.mark.parametrize("where", [boundary("default", correlation_id="req-1"), ISSUE])
def test_a_correlation_and_a_single_event_are_walked_likewise(
    log: PostgresHistory, where: Boundary
) -> None:
    alone = Boundary("default", event_id="evt-7")

    assert walked(log, where, 0, 120, 10) == walked(HistoryInMemory(LOG), where, 0, 120, 10)
    assert [e.position for e in walked(log, alone, 0, 120, 10)] == [7]
    assert walked(log, alone, 7, 120, 10) == []


@given(st.integers(-3, 125), st.integers(-1, 1))
@settings(max_examples=60, deadline=None)
def test_an_instant_names_the_last_position_received_by_then(
    log: PostgresHistory, second: int, around_ms: int
) -> None:
    instant = NOON + timedelta(seconds=second, milliseconds=5 + around_ms)

    assert log.locate(instant) == HistoryInMemory(LOG).locate(instant)


def test_positions_and_the_newest_one_are_located_with_their_instants(log: PostgresHistory) -> None:
    twin = HistoryInMemory(LOG)

    assert log.head() == twin.head() == Moment(120, LOG[-1].received_at)
    for position in (0, 1, 60, 120):
        assert log.locate(position) == twin.locate(position)


def test_whether_a_boundary_has_grown_is_counted_only_as_far_as_needed(
    log: PostgresHistory,
) -> None:
    where = boundary("default", [("hot", "x")])

    assert log.has_grown(where, after=0, by=96)
    assert not log.has_grown(where, after=0, by=97)
    assert not log.has_grown(where, after=120, by=1)


def test_an_empty_log_has_no_moment_but_its_start(reader_pool: Pool) -> None:
    history = PostgresHistory(reader_pool)

    assert history.head() == history.locate(NOON) == history.locate(0) == START


def test_many_events_received_at_one_instant_belong_to_it_all(
    database: str, reader_pool: Pool
) -> None:
    load_many(
        database,
        """
        INSERT INTO workflow_events (position, tenant_id, id, type, source, occurred_at,
          received_at, severity, severity_rule, content_hash, hash)
        SELECT n, 'default', 'evt-' || n, 'a.b', 's', now(),
               timestamptz '2026-03-01 12:00:00Z' + make_interval(secs => n / 100),
               'info', 'default', '', ''
          FROM generate_series(1, 5000) AS n""",
    )
    history = PostgresHistory(reader_pool)

    assert history.locate(NOON + timedelta(seconds=20)).position == 2_099
    assert history.locate(NOON + timedelta(seconds=20, microseconds=-1)).position == 1_999
    assert history.locate(NOON - timedelta(seconds=1)) == START


def test_an_event_is_found_only_by_its_own_tenant(log: PostgresHistory) -> None:
    found = log.find("default", "evt-7")

    assert found == LOG[6]
    assert log.find("acme", "evt-7") is None
    assert log.find("default", "no such") is None


def test_one_tenant_s_snapshots_are_hidden_from_another_by_the_database_itself(
    reader_pool: Pool, all_pool: Pool
) -> None:
    PostgresSnapshots(reader_pool, all_pool).keep(SnapshotKey(ISSUE, "r@1"), State({"a": 1}, 1, 1))

    with reader_pool.connection() as connection, connection.transaction():
        connection.execute("SELECT set_config('penstock.tenant', 'acme', true)")
        for table in ("state_snapshots", "state_boundaries"):
            assert connection.execute(f"SELECT * FROM {table}".encode()).fetchall() == []  # noqa: S608


@pytest.mark.parametrize("table", ["state_snapshots", "state_boundaries", "workflow_events"])
def test_the_reader_may_write_nothing(reader_pool: Pool, table: str) -> None:
    with reader_pool.connection() as connection, connection.transaction():
        with pytest.raises(psycopg.Error, match=r"read-only|permission"):
            connection.execute(f"DELETE FROM {table}".encode())  # noqa: S608
        raise psycopg.Rollback


def test_a_cold_question_about_a_long_history_holds_no_connection_while_it_folds(
    database: str, all_pool: Pool, reader_pool: Pool
) -> None:
    load(database, told(*({"n": n} for n in range(1_100))))
    history = PostgresHistory(reader_pool)

    for _ in history.walk(ISSUE, after=0, upto=1_100):
        stats = reader_pool.get_stats()
        assert stats["pool_available"] == stats["pool_size"]


def test_a_store_that_does_not_answer_is_said_to_be_away(database: str, reader_pool: Pool) -> None:
    reader_pool.close()

    with pytest.raises(StoreUnavailable):
        travel_in(reader_pool, None).state(ISSUE)


def test_the_opened_time_travel_answers_with_the_reducers_installed(
    database: str, reader_pool: Pool, all_pool: Pool
) -> None:
    load(database, [said(1, {"a": 1}), said(2, {"b": 12345678901234567890.5})])

    travel = open_time_travel(reader_pool, all_pool, cursor_key=KEY, lens=as_stored)

    assert travel.state(ISSUE).state.value["a"] == 1
    assert "last-write-wins" in travel.roster.names


def test_numbers_come_back_digit_by_digit(database: str, reader_pool: Pool) -> None:
    load(database, [said(1, {"n": 0.1, "m": 9007199254740993})])

    assert value(travel_in(reader_pool, None)) == {"n": 0.1, "m": 9007199254740993}


CROWDED = """
INSERT INTO workflow_events (position, tenant_id, id, type, source, occurred_at, received_at, tags,
  correlation_id, severity, severity_rule, content_hash, hash)
SELECT n, 'default', 'evt-' || n, 'a.b', 's', now(), now(),
       jsonb_build_object('hot', 'x', 'rare', CASE WHEN n %% 1000 = 0 THEN 'y' ELSE 'n' || n END),
       'req-' || n %% 50, 'info', 'default', '', ''
  FROM generate_series(1, 20000) AS n;
INSERT INTO event_tags (tenant_id, tag, position)
SELECT e.tenant_id, t.key || ':' || t.value, e.position
  FROM workflow_events AS e, jsonb_each_text(e.tags) AS t
""".replace("%%", "%")


def test_whatever_is_walked_only_its_own_index_is_read(database: str, reader_pool: Pool) -> None:
    load_many(database, CROWDED)
    wanted: dict[str, Any] = {
        "tenant": "default", "after": 10_000, "upto": 20_000, "limit": 500,
        "positions": [*range(10_000, 10_500)], "correlation_id": None, "is_any_type": True,
        "types": [], "type_regex": "(?!)", "tags": ['{"hot":"x"}'],
    }  # fmt: skip
    plans = {
        "stretch_of_tag": ("hot:x", "event_tags_pkey"),
        "stretch_of_correlation": ("req-7", "workflow_events_correlation"),
        "stretch_of_event": ("evt-7", "workflow_events_id"),
        "in_boundary": ("", "workflow_events_pkey"),
    }
    for analyzed in (False, True):
        if analyzed:
            with psycopg.connect(database, autocommit=True) as connection:
                connection.execute("ANALYZE")
        with Reading(reader_pool).tenant("default") as connection:
            for name, (walked_value, index) in plans.items():
                rows = connection.execute(
                    b"EXPLAIN " + query("timetravel", name).encode(),
                    wanted | {"walked": walked_value},
                    prepare=False,
                ).fetchall()
                plan = "\n".join(row[0] for row in rows)
                assert index in plan, plan
                assert "Seq Scan" not in plan, plan
                assert "Sort" not in plan or name == "in_boundary", plan


def test_of_several_tags_the_rarest_is_walked(database: str, reader_pool: Pool) -> None:
    load_many(database, CROWDED)
    where = boundary("default", [("hot", "x"), ("rare", "y")])

    stretches = [*PostgresHistory(reader_pool).walk(where, after=0, upto=20_000)]

    assert [e.position for e in stretches[0].events] == [*range(1_000, 20_001, 1_000)]
    assert len(stretches) == 1
