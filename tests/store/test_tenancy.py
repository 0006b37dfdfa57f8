"""A reader of one tenant learns nothing of another, even where a filter of ours is wrong."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest
from psycopg import sql
from tests.store.support import load, stored

from penstock.base.on_postgres import Pool
from penstock.envelope.envelope import Severity
from penstock.sql import queries
from penstock.sql import query as named
from penstock.store.on_postgres import EventReader, read_events
from penstock.store.onward.on_postgres import find_reaches, log_leg, onward_way
from penstock.store.onward.reach import Span
from penstock.store.query import EventQuery
from penstock.store.walk.choose import Walk, filter_parameters
from penstock.store.walk.on_postgres import Reading, compose

THEIRS = [
    stored(n, tenant_id="theirs", tags={"userId": "u1"}, correlation_id="req-1",
           severity=Severity.ERROR)
    for n in range(1, 6)
]  # fmt: skip
WALKS = [
    Walk("log"),
    Walk("window"),
    Walk("tag", ("userId:u1",)),
    Walk("correlation", ("req-1",)),
    Walk("type", ("metastore.record.updated",)),
    Walk("source", ("metastore.api",)),
    Walk("severity", ("error",)),
]


@pytest.fixture(scope="module")
def theirs(shared_database: str, shared_pool: Pool) -> Pool:
    """A reader's pool on a log that holds another tenant's events only."""
    load(shared_database, THEIRS)
    return shared_pool


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.index)
def test_a_walk_that_asks_for_another_tenant_finds_nothing(theirs: Pool, walk: Walk) -> None:
    way = compose(EventQuery("theirs"), None, walk, before=100)

    with Reading(theirs).tenant("mine") as connection:
        wrong = read_events(connection, way.sql, way.parameters | {"limit": 10})
    with Reading(theirs).tenant("theirs") as connection:
        right = read_events(connection, way.sql, way.parameters | {"limit": 10})

    assert wrong == []
    assert len(right) == 5


@pytest.mark.parametrize("name", ["by_id", "after", "after_near", "after_by_source"])
def test_no_other_question_reaches_another_tenant(theirs: Pool, name: str) -> None:
    said = {"tenant": "theirs", "id": "evt-1", "after": 0, "limit": 10, "stretch": 10,
            "sources": ["metastore.api"]}  # fmt: skip

    with Reading(theirs).tenant("mine") as connection:
        found = read_events(connection, sql.SQL(named("store", name)), said)

    assert found == []


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.index)
def test_no_way_onward_leads_to_another_tenant(theirs: Pool, walk: Walk) -> None:
    query, span = EventQuery("theirs"), Span(0, 100)
    at = onward_way("onward_at", filter_parameters(query, []) | {"positions": list(range(1, 9))})
    ways = [log_leg(query, span).way, at]

    for tenant, seen in (("mine", 0), ("theirs", 5)):
        with Reading(theirs).tenant(tenant) as connection:
            found = [read_events(connection, w.sql, w.parameters | {"limit": 9}) for w in ways]
            reached = find_reaches(connection, query, span, [walk]) if walk.values else []
        assert [len(events) for events in found] == [seen, seen]
        assert [len(each.positions) for each in reached] == [seen] * len(reached)


@pytest.mark.parametrize("table", ["workflow_events", "event_tags", "events", "dead_letters"])
def test_without_a_tenant_a_reader_sees_no_rows_at_all(theirs: Pool, table: str) -> None:
    text = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))

    with theirs.connection() as connection:
        assert connection.execute(text).fetchone() == (0,)


def test_the_tenant_of_one_reading_is_forgotten_by_the_next(theirs: Pool) -> None:
    with Reading(theirs).tenant("theirs"):
        pass

    with theirs.connection() as connection:
        left = connection.execute("SELECT current_setting('penstock.tenant', true)").fetchone()

    assert left in [("",), (None,)]


def test_what_others_store_changes_nothing_that_a_tenant_is_told(
    database: str, reader: EventReader
) -> None:
    mine = [stored(n * 7, tenant_id="mine", payload={"n": n}) for n in range(1, 30)]
    load(database, mine)
    alone = [reader.page(EventQuery("mine"), limit=10), reader.by_id("mine", "evt-7")]

    load(database, [replace(event, position=event.position + 1000) for event in THEIRS])
    load(database, [stored(n, tenant_id="theirs", id=f"evt-{n}-b") for n in range(1, 200) if n % 7])

    assert [reader.page(EventQuery("mine"), limit=10), reader.by_id("mine", "evt-7")] == alone


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO event_tags VALUES ('mine', 'a:b', 1)",
        "UPDATE workflow_events SET type = 'a.b'",
        "DELETE FROM workflow_events",
        "TRUNCATE workflow_events",
        "CREATE TABLE mine (a int)",
        "SELECT * FROM access_tokens",
        "SELECT * FROM ledger_sources",
        "COPY workflow_events TO PROGRAM 'cat'",
        "SELECT pg_read_file('/etc/passwd')",
    ],
)
def test_a_reader_may_only_read_events(theirs: Pool, statement: str) -> None:
    with (
        pytest.raises(
            (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)
        ),
        theirs.connection() as connection,
    ):
        connection.execute(statement.encode())


def test_no_query_of_the_store_takes_text_where_a_parameter_belongs() -> None:
    holes = {
        f"{{{part}}}"
        for room in ("store", "explorer")
        for text in queries(room).values()
        for part in _holes(text)
    }

    assert holes == {"{walk}", "{filters}"}


def _holes(text: str) -> list[str]:
    return [part.partition("}")[0] for part in text.split("{")[1:]]
