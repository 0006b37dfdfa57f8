"""The typed reading of an event is there when its payload has what the type needs."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.envelope.envelope import JsonValue
from penstock.registry.insight import derived_of
from penstock.registry.schema import SchemaVersion

AT = datetime(2026, 3, 1, tzinfo=UTC)


def needing(required: JsonValue) -> SchemaVersion:
    metadata: dict[str, JsonValue] = {} if required is None else {"derivedRequires": required}
    return SchemaVersion("a.b", 1, "active", {}, "h", metadata, AT, "t", AT, "t")


def test_a_payload_with_every_field_has_a_typed_reading() -> None:
    payload: JsonValue = {"a": 1, "b": 0, "c": ""}

    assert derived_of(needing(["a", "b"]), "x.y", payload) == {"type": "x.y", "payload": payload}


@pytest.mark.parametrize("payload", [{}, {"a": 1}, {"a": 1, "b": None}, [], None, "x", 3])
def test_a_payload_that_lacks_a_field_has_none(payload: JsonValue) -> None:
    assert derived_of(needing(["a", "b"]), "x.y", payload) is None


@pytest.mark.parametrize("schema", [None, needing(None), needing("a"), needing({"a": 1})])
def test_a_type_that_promises_no_reading_has_none(schema: SchemaVersion | None) -> None:
    assert derived_of(schema, "x.y", {"a": 1}) is None


@pytest.mark.parametrize("schema", [None, needing(None), needing([])])
def test_every_filestore_event_is_read_as_it_is(schema: SchemaVersion | None) -> None:
    assert derived_of(schema, "filestore.node.other", {"z": 1}) == {
        "type": "filestore.node.other",
        "payload": {"z": 1},
    }
