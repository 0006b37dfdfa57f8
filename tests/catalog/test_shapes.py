"""The JSON Schemas of the two dialects judge the shape of an event as the pipeline does."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.vocabularies import ALL
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject
from penstock.ingress.pipeline import judge
from penstock.ingress.verdict import Accepted, Arrival
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.registry import Registry
from penstock.registry.schema import PayloadCheck, compile_faults

SHAPES = Path(__file__).parents[2] / "contracts" / "dialects"
ARRIVAL = Arrival(datetime(2026, 3, 1, tzinfo=UTC), "fallback")
LEFT_OUT = object()
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
DOMAIN: JsonObject = {
    "id": "0197a3c2-5a00-7000-8000-000000000001",
    "type": "ISSUE.ASSIGNED.SUCCESS",
    "timestamp": "2026-01-31T10:30:00.123Z",
    "tags": {"issueId": "42"},
    "metadata": {"workflowVersion": "1", "eventSource": "system", "correlationId": "c"},
    "data": {"assignee": "ana"},
}
GOVERNED: JsonObject = {
    "id": "7b1c9e1e-5a50-4c0f-9b1e-0d3f8d1f2a10",
    "type": "metadata.deprecated",
    "version": "1.0.0",
    "tenantId": "tenant-123",
    "source": "metadata-studio.api",
    "createdAt": "2025-12-01T08:00:00.000Z",
    "traceContext": {"traceId": "a", "spanId": "b"},
    "payload": {
        "entityId": "meta-456",
        "canonicalKey": "eps",
        "deprecatedBy": {"actorId": "cfo", "actorType": "HUMAN"},
    },
}
SAID_OF_BOTH: tuple[tuple[str, Any], ...] = (
    ("id", 7),
    ("id", "a b"),
    ("type", LEFT_OUT),
    ("type", "Not A Type"),
    ("type", "x" * 201),
    ("source", ""),
    ("source", "metastore.api"),
    ("tags", {"a": 1}),
    ("tags", {"a": None}),
    ("tags", {"a b": "x"}),
    ("tags", {"a": "x" * 257}),
    ("tags", {f"t{n}": "x" for n in range(65)}),
    ("tags", []),
    ("tags", {}),
    ("metadata", "x"),
    ("metadata", {"anything": [1]}),
    ("correlationId", "c"),
    ("correlationId", ""),
    ("correlationId", 7),
    ("causationId", "x" * 257),
    ("traceparent", TRACE),
    ("traceparent", "x"),
    ("ttl", 5000),
    ("ttl", 0),
    ("tenantId", "acme"),
    ("tenantId", "no such tenant"),
    ("surprise", 1),
)
OF_DOMAIN: tuple[tuple[str, Any], ...] = (
    *((name, LEFT_OUT) for name in DOMAIN),
    ("id", "7b1c9e1e-5a50-4c0f-9b1e-0d3f8d1f2a10"),
    ("timestamp", "2026-01-31T10:30:00+02:00"),
    ("timestamp", "2026-01-31T10:30:00"),
    ("timestamp", 1),
    ("metadata", {"eventSource": "robot"}),
    ("metadata", {"eventSource": "plugin"}),
    ("metadata", {"workflowVersion": 1}),
    ("metadata", {"causationId": ""}),
    ("metadata", {"causationId": None}),
    ("correlationId", None),
    ("data", []),
    ("schemaVersion", 1),
    ("schemaVersion", 0),
    ("occurredAt", "2026-01-31T10:30:00Z"),
    ("payload", {}),
)
OF_GOVERNED: tuple[tuple[str, Any], ...] = (
    *((name, LEFT_OUT) for name in ("id", "version", "tenantId", "source", "createdAt")),
    ("version", "1.2.3"),
    ("version", "1"),
    ("version", "0.1.0"),
    ("version", 1),
    ("createdAt", "2025-12-01T08:00:00"),
    ("createdAt", None),
    ("traceContext", {}),
    ("traceContext", {"traceId": 1}),
    ("traceContext", "x"),
    ("correlationId", None),
    ("schemaVersion", 1),
    ("timestamp", "2026-01-31T10:30:00Z"),
)
CASES = [
    *(("domain-event", DOMAIN, change) for change in (*SAID_OF_BOTH, *OF_DOMAIN)),
    *(("governed-event", GOVERNED, change) for change in (*SAID_OF_BOTH, *OF_GOVERNED)),
]


@pytest.fixture(scope="module")
def registry() -> Registry:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    return book.current()


def schema(shape: str) -> JsonObject:
    found = json.loads((SHAPES / f"{shape}.1.json").read_text())
    assert isinstance(found, dict)
    return found


def without_left_out(event: dict[str, Any]) -> JsonObject:
    return {name: value for name, value in event.items() if value is not LEFT_OUT}


@pytest.mark.parametrize("shape", ["domain-event", "governed-event"])
def test_the_shape_of_a_dialect_is_a_schema_that_compiles(shape: str) -> None:
    assert compile_faults(schema(shape)) == ()


@pytest.mark.parametrize(
    ("shape", "whole"), [("domain-event", DOMAIN), ("governed-event", GOVERNED)]
)
def test_a_whole_event_has_the_shape_and_is_accepted(
    registry: Registry, shape: str, whole: JsonObject
) -> None:
    assert PayloadCheck(schema(shape)).faults(whole) == ()
    assert isinstance(judge(encode(whole), ARRIVAL, registry), Accepted)


@pytest.mark.parametrize(("shape", "whole", "change"), CASES)
def test_the_schema_and_the_pipeline_agree_on_every_change(
    registry: Registry, shape: str, whole: JsonObject, change: tuple[str, Any]
) -> None:
    event = without_left_out({**whole, change[0]: change[1]})

    fits = PayloadCheck(schema(shape)).faults(event) == ()

    assert fits == isinstance(judge(encode(event), ARRIVAL, registry), Accepted)
