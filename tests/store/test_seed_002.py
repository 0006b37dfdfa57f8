"""The checkboxes of seed 002 about storage, queries, versions and documents, one test each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from tests.bench.__main__ import MEASURES

from penstock.base.ids import uuid7
from penstock.base.on_postgres import open_pool
from penstock.catalog.development.vocabulary import DEVELOPMENT
from penstock.catalog.vocabularies import ALL
from penstock.envelope.envelope import JsonObject
from penstock.ingress.lot import Judged, Lot, Receipt
from penstock.ingress.pipeline import judge
from penstock.ingress.rows import write
from penstock.ingress.verdict import Accepted, Arrival, Reason, Rejected
from penstock.registry.book import Proposal, RegistryBook
from penstock.registry.compatibility import breaks, compare
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.store.intake.on_postgres import PostgresIntake
from penstock.store.on_postgres import EventReader
from penstock.store.query import Query

ROOT = Path(__file__).parents[2]
ARRIVAL = Arrival(datetime(2026, 3, 1, tzinfo=UTC), "")


class Store:
    """The storage service as the ingress and readers use it."""

    def __init__(self, dsn: str) -> None:
        self.book = RegistryBook(InMemoryRegistryStore(), mode="strict")
        self.book.declare(ALL)
        self.intake = PostgresIntake(dsn)
        self.pool = open_pool(dsn, "penstock_reader")
        self.reader = EventReader(self.pool, cursor_key=b"k" * 32)

    def keep(self, *events: JsonObject) -> Receipt:
        raws = [json.dumps(event).encode() for event in events]
        judged = [Judged(raw, judge(raw, ARRIVAL, self.book.current())) for raw in raws]
        return self.intake.settle(Lot(writer="test", messages=write(judged)))

    def find(self, query: Query) -> list[str]:
        page = self.reader.page(query.of("default"), limit=100, cursor=None)
        return [stored.envelope.id for stored in page.events]


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    opened = Store(database)
    yield opened
    opened.intake.close()
    opened.pool.close()


def merged(**changes: object) -> JsonObject:
    return {  # type: ignore[return-value]
        "id": uuid7(),
        "type": "CODE.MERGED.SUCCESS",
        "timestamp": "2026-01-31T10:30:00.123Z",
        "tags": {"prId": "108"},
        "metadata": {"workflowVersion": "1.0.0", "eventSource": "system"},
        "data": {},
        **changes,
    }


def test_the_tagging_schema_is_flexible_jsonb_and_any_tag_is_found(store: Store) -> None:
    store.keep(merged(id=(one := uuid7()), tags={"prId": "1", "squad": "blue"}), merged())

    assert store.find(Query().tag("squad", "blue")) == [one]


def test_tags_have_an_indexing_strategy_for_performance(database: str) -> None:
    with psycopg.connect(database) as connection:
        found = connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE tablename = 'event_tags'"
        ).fetchall()

    assert any('(tenant_id, tag, "position")' in row[0] for row in found)


def test_versioning_of_event_schemas_is_supported() -> None:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    for field in ("a", "b"):
        schema: JsonObject = {"type": "object", "properties": {field: {"type": "string"}}}
        book.register(Proposal("team.thing.done", schema), by="test")

    registry = book.current()
    assert [v.version for v in registry.versions] == [1, 2]
    newest = registry.find("team.thing.done", None)
    assert newest is not None
    assert newest.version == 2


def test_an_event_type_documentation_generator_describes_every_type() -> None:
    pages = ROOT / "docs" / "reference" / "event-types"

    for event in DEVELOPMENT.events:
        assert event.purpose in (pages / f"{event.name}.md").read_text()


def test_an_event_validation_service_refuses_what_does_not_fit_and_stores_nothing(
    store: Store,
) -> None:
    receipt = store.keep(merged(id="not-a-uuid"), merged(timestamp="yesterday"))

    assert (receipt.stored, receipt.dead) == (0, 2)


def test_a_database_migration_makes_the_events_table_of_the_seed(
    store: Store, database: str
) -> None:
    store.keep(merged(id=(one := uuid7())))

    with psycopg.connect(database) as connection:
        row = connection.execute(
            "SELECT event_id, event_type, timestamp, tags, metadata, data, created_at FROM events"
        ).fetchone()
    assert row is not None
    assert row[:2] == (one, "CODE.MERGED.SUCCESS")
    assert row[3]["prId"] == "108"
    assert row[4]["workflowVersion"] == "1.0.0"


def test_an_event_storage_service_keeps_events_immutably_and_in_order(
    store: Store, database: str
) -> None:
    ids = [uuid7() for _ in range(5)]
    store.keep(*(merged(id=one) for one in ids))

    assert store.find(Query()) == ids[::-1]
    with psycopg.connect(database) as connection, pytest.raises(psycopg.Error, match="append-only"):
        connection.execute("UPDATE workflow_events SET type = 'CODE.X.Y'")


def test_database_indexes_serve_type_source_correlation_severity_and_time(database: str) -> None:
    with psycopg.connect(database) as connection:
        found = connection.execute(
            "SELECT string_agg(indexdef, ' ') FROM pg_indexes WHERE tablename = 'workflow_events'"
        ).fetchone()

    assert found is not None
    for column in ("type", "source", "correlation_id", "severity", "occurred_at"):
        assert column in found[0]


def test_event_query_builders_say_the_same_to_the_store_as_to_http(store: Store) -> None:
    store.keep(merged(id=(one := uuid7()), data={"mergeSha": "b41"}), merged(tags={"prId": "9"}))
    query = Query().type("CODE.*.SUCCESS").tag("prId", "108").jsonpath('$.mergeSha == "b41"')

    assert store.find(query) == [one]
    assert ("tag.prId", "108") in query.parameters()


def test_performance_of_insertion_and_querying_is_measured_against_bars() -> None:
    _, insertion = MEASURES["ingress"]
    _, querying = MEASURES["reading"]

    assert insertion["ratio_to_10k_per_s"] == (">=", 1.0)
    assert querying["tag_p99_ms"][1] <= 100


def test_schema_compatibility_is_checked_before_a_version_is_published() -> None:
    old: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}}
    new: JsonObject = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}

    assert breaks(compare(old, new))
    assert not breaks(compare(old, old))


def test_a_verdict_is_a_value_with_a_reason() -> None:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    good = judge(json.dumps(merged()).encode(), ARRIVAL, book.current())
    bad = judge(json.dumps(merged(type="CODE.NO.SUCH")).encode(), ARRIVAL, book.current())

    assert isinstance(good, Accepted)
    assert isinstance(bad, Rejected)
    assert bad.reason == Reason.TYPE_UNKNOWN
