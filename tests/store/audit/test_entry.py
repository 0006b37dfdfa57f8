"""A row read back has the hash it was stored with, and no other row has it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.audit.support import OPEN, event, store

from penstock.envelope.envelope import JsonValue
from penstock.ingress.pipeline import judge
from penstock.ingress.verdict import Accepted, Arrival
from penstock.store.audit.entry import COLUMNS, Row, entry_hash, read_row
from penstock.store.audit.merkle import leaf

SELECT = ", ".join(COLUMNS)
LINES = f"COPY (SELECT {SELECT} FROM workflow_events ORDER BY position) TO STDOUT"  # noqa: S608
texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=("Cs",)), max_size=8)
numbers = st.one_of(
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)
LITERALS = (
    "1e16", "1e22", "1E+5", "-0.0", "-0", "1e-7", "123456789012345678e3", "0.1", "1.10", "1e300",
    "1.234567890123456789e30", "9223372036854775807", "1.0", "100000.0", "2.5e15", "[0.0, -0.0]",
    '"\\u0007\\b\\f\\n\\r\\t\\u000b\\"\\\\ \\u007f é 😀 \\u2028"', '{"b": 1, "aa": 2, "B": [ ]}',
)  # fmt: skip


def rows_of(connection: psycopg.Connection[tuple[object, ...]]) -> list[Row]:
    connection.execute("SET timezone = 'UTC'")
    with connection.cursor().copy(LINES.encode()) as copy:
        return [read_row(bytes(line)) for line in copy]


def rows(database: str) -> list[Row]:
    with psycopg.connect(database) as connection:
        return rows_of(connection)


def acceptable(raws: Sequence[bytes]) -> list[bytes]:
    return [raw for raw in raws if isinstance(judge(raw, Arrival(NOW, "x"), OPEN), Accepted)]


NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_every_literal_is_hashed_alike_before_it_is_stored_and_after_it_is_read(
    database: str,
) -> None:
    raws = [
        orjson.dumps(event(number, payload="@")).replace(b'"@"', literal.encode())
        for number, literal in enumerate(LITERALS)
    ]
    store(database, raws)

    assert [row.hash.hex() for row in rows(database)] == [row.leaf.hex() for row in rows(database)]


def test_text_that_copy_would_escape_is_hashed_alike(database: str) -> None:
    odd = "a\tb\nc\rd\\e\x08f\x0bg\x0ch\x1f\x7f"
    store(
        database,
        [event(1, correlationId="a\\tb\\", causationId="\\N", tags={"k": odd}, payload=[odd])],
    )

    (row,) = rows(database)
    assert row.hash == row.leaf
    assert row.tags == {"k": odd}


def test_an_event_that_says_only_what_it_must_is_hashed_alike(database: str) -> None:
    store(database, [{"type": "a.b", "source": "c", "id": "1"}])

    (row,) = rows(database)
    assert row.hash == row.leaf


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(values, texts, st.dictionaries(texts, values, max_size=3)), min_size=20))
def test_any_event_is_hashed_alike_before_it_is_stored_and_after_it_is_read(
    shared_database: str, drawn: list[tuple[JsonValue, str, dict[str, JsonValue]]]
) -> None:
    raws = [
        orjson.dumps({
            "id": f"{number}", "type": "a.b", "source": "c", "payload": payload,
            "metadata": metadata, **({"correlationId": text} if text else {}),
        })
        for number, (payload, text, metadata) in enumerate(drawn)
    ]  # fmt: skip
    kept = acceptable(raws)
    with psycopg.connect(shared_database) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("DELETE FROM workflow_events")
    store(shared_database, kept)

    found = rows(shared_database)
    assert len(found) == len(kept)
    assert all(row.hash == row.leaf for row in found)


CHANGES = (
    "payload = '{\"version\": 1.00}'",
    "payload = '{\"version\": 1e400}'",
    "payload = '[1e-400]'",
    "tags = '{\"a\": 1}'",
    "tags = '[]'",
    "occurred_at = 'infinity'",
    "occurred_at = '0044-03-15 BC'",
    "occurred_at = '12345-01-01'",
    "received_at = '-infinity'",
    "traceparent = E'a\\tb'",
    "traceparent = ''",
    "schema_hash = ''",
    "correlation_id = ''",
    "correlation_id = E'\\\\N'",
    "correlation_id = NULL",
    "hash = ''",
    "content_hash = ''",
    "metadata = 'null'",
    "metadata = '{}'",
    "ttl_ms = NULL",
    "schema_version = NULL",
)


@pytest.mark.parametrize("change", CHANGES)
def test_no_change_of_a_row_keeps_its_hash(database: str, change: str) -> None:
    store(database, [event(1, payload={"version": 1.0})])
    before = rows(database)[0]
    with psycopg.connect(database) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(f"UPDATE workflow_events SET {change}".encode())  # noqa: S608

        try:
            (after,) = rows_of(connection)
        except ValueError:
            return
    assert (after.leaf, after.received_us) != (before.leaf, before.received_us) or (
        after.hash != after.leaf
    )


def test_the_entry_covers_place_and_time() -> None:
    one: dict[str, Any] = {"position": 1, "received_us": 2, "row_leaf": bytes(32)}

    hashes = {
        entry_hash(**one),
        entry_hash(**{**one, "position": 2}),
        entry_hash(**{**one, "received_us": 3}),
        entry_hash(**{**one, "row_leaf": b"\x01" * 32}),
    }

    assert len(hashes) == 4
    assert entry_hash(**one) == leaf(bytes(7) + b"\x01" + bytes(7) + b"\x02" + bytes(32))
