"""PostgreSQL reads the rows that we write, whatever is in them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from tests.store.append.support import NOW, event, registry

from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject
from penstock.ingress.pipeline import judge
from penstock.ingress.verdict import Accepted, Arrival
from penstock.store.append.rows import pack_event

ODD: list[JsonObject] = [
    event("plain"),
    event(
        "text", correlationId='a\\b "c" d', causationId="ä 😀", payload={"x": '\t\n\\"', "ü": []}
    ),
    event("tags", tags={"show": 'a:b\\c"d{e},f', "seat": "NULL", "row": "ß"}),
    event("numbers", payload={"n": 9007199254740991, "d": 0.1, "e": 1e16, "z": None}),
    event(
        "all", ttl=86_400_000, metadata={"k": "v"}, occurredAt="1999-12-31T23:59:59.999999+05:30"
    ),
]


def accepted(said: JsonObject) -> Accepted:
    found = judge(encode(said), Arrival(NOW, "unused", tenant_id="acme"), registry())
    assert isinstance(found, Accepted), found
    return found


def read_back(database: str, kind: str, written: bytes) -> dict[str, Any]:
    with psycopg.connect(database, autocommit=True, row_factory=dict_row) as connection:
        result = connection.pgconn.exec_params(
            f"SELECT to_jsonb($1::{kind})::text".encode(), [written], param_formats=[1]
        )
        assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message
        found: dict[str, Any] = psycopg.types.json.json.loads(result.get_value(0, 0) or b"null")
        return found


@pytest.mark.parametrize("said", ODD, ids=lambda said: str(said["id"]))
def test_an_event_comes_back_as_it_is(shared_database: str, said: JsonObject) -> None:
    verdict = accepted(said)
    envelope = verdict.envelope

    row = read_back(shared_database, "append_row", pack_event(verdict))

    assert row["tenant_id"] == "acme"
    assert (row["id"], row["type"], row["source"]) == (envelope.id, envelope.type, envelope.source)
    assert datetime.fromisoformat(row["occurred_at"]) == envelope.occurred_at
    assert row["payload"] == envelope.payload
    assert row["tags"] == dict(envelope.tags)
    assert row["words"] == [f"{key}:{value}" for key, value in envelope.tags.items()]
    assert row["correlation_id"] == envelope.correlation_id
    assert row["causation_id"] == envelope.causation_id
    assert row["traceparent"] == envelope.traceparent
    assert row["ttl_ms"] == envelope.ttl_ms
    assert row["metadata"] == dict(envelope.metadata)
    assert row["schema_version"] == envelope.schema_version
    assert row["schema_hash"] == verdict.schema_hash
    assert (row["severity"], row["severity_rule"]) == (verdict.severity, verdict.severity_rule)
    assert row["content_hash"] == "\\x" + verdict.content_hash.hex()
