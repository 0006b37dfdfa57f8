"""Hold the check before sending to the judgement of the pipeline: no event is judged two ways."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base.errors import NotInProfile
from penstock.catalog.vocabularies import ALL
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.ingress.pipeline import judge
from penstock.ingress.verdict import Accepted, Arrival, Via
from penstock.publish.refusal import refusal
from penstock.registry.book import RegistryBook
from penstock.registry.declare import EventType
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.registry import Registry

NOW = datetime(2026, 1, 31, tzinfo=UTC)
EXAMPLES = [event for vocabulary in ALL for event in vocabulary.events if event.example]


def declared() -> Registry:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    return book.current()


REGISTRY = declared()
ODD: list[JsonValue] = [
    None, True, 0, -1, 2**63, 1.5, 1e300, "", " ", "x" * 300, "a.b", "A.B", "\x00", "é", [], {},
    [[]], {"a": 1}, "2026-01-31T10:30:00Z", "2026-01-31", "018f0000-0000-7000-8000-000000000000",
]  # fmt: skip
KEYS = [
    "id", "type", "source", "occurredAt", "payload", "tags", "correlationId", "causationId",
    "traceparent", "ttl", "metadata", "schemaVersion", "tenantId", "unknown",
]  # fmt: skip


def assert_agreement(event: JsonObject) -> None:
    try:
        raw = encode(event)
    except NotInProfile:
        assert refusal(event, now=NOW, registry=REGISTRY) is not None
        return
    verdict = judge(raw, Arrival(NOW, "fallback", Via.SDK), REGISTRY)

    refused = refusal(event, now=NOW, registry=REGISTRY)

    if isinstance(verdict, Accepted):
        assert refused is None
    else:
        assert refused is not None
        assert (refused.reason, refused.faults) == (verdict.reason, verdict.faults)


def event_of(declared: EventType) -> JsonObject:
    return {"id": "evt-1", "type": declared.name, "source": "s", "payload": declared.example}


@pytest.mark.parametrize("declared", EXAMPLES, ids=lambda declared: declared.name)
def test_both_say_the_same_of_every_example_and_of_odd_payloads(declared: EventType) -> None:
    event = event_of(declared)

    assert_agreement(event)
    for odd in ODD:
        assert_agreement({**event, "payload": odd})
        assert_agreement({**event, "payload": {**(declared.example or {}), "path": odd}})


@pytest.mark.parametrize("key", KEYS)
def test_both_say_the_same_of_an_example_with_one_odd_field(key: str) -> None:
    for odd in ODD:
        assert_agreement({**event_of(EXAMPLES[0]), key: odd})


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(ODD), max_size=6))
def test_both_say_the_same_of_whatever_is_put_together(parts: dict[str, JsonValue]) -> None:
    base: JsonObject = {"type": "asset.produced", "source": "s", "payload": {"assetId": "a"}}

    assert_agreement(parts)
    assert_agreement({**base, **parts})
