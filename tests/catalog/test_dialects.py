"""Four shapes arrive and one is stored: every dialect is found, and none speaks for another."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.catalog.envelopes import TRACE, envelopes, stored

from penstock.catalog.dialects import DIALECTS, Dialect, dialect_of
from penstock.catalog.trace import context_of, traceparent_of
from penstock.catalog.vocabularies import ALL
from penstock.envelope.check import write
from penstock.envelope.codec import encode
from penstock.envelope.envelope import Envelope, JsonObject
from penstock.envelope.fields import RULES
from penstock.ingress.pipeline import judge, queued_form
from penstock.ingress.verdict import Accepted, Arrival, Reason, Rejected
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.registry import Registry

ARRIVAL = Arrival(datetime(2026, 3, 1, tzinfo=UTC), "fallback")
BY_NAME = {dialect.name: dialect for dialect in DIALECTS}
EVENT = Envelope(
    id="e-1",
    type="metastore.record.updated",
    source="metastore.api",
    occurred_at=datetime(2026, 1, 31, 10, 30, tzinfo=UTC),
    payload={"namespace": "flags", "key": "search", "version": 12},
    tags={"team": "web"},
    correlation_id="req-1",
    schema_version=1,
)


@pytest.fixture(scope="module")
def registry() -> Registry:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    return book.current()


def test_the_dialects_are_cloudevents_the_governed_and_the_domain_event() -> None:
    assert sorted(BY_NAME) == ["cloudevents", "domain", "governed"]


@given(envelopes)
def test_the_native_form_speaks_no_dialect(envelope: Envelope) -> None:
    assert dialect_of(write(envelope)) is None


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_the_mark_of_a_dialect_is_no_field_of_ours(dialect: Dialect) -> None:
    assert dialect.mark not in RULES
    assert set(dialect.places) <= set(RULES)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@given(envelope=envelopes)
def test_what_one_dialect_writes_no_other_claims(dialect: Dialect, envelope: Envelope) -> None:
    written = dialect.from_stored(stored(envelope))

    assert dialect_of(written) is dialect
    assert dialect.mark in written


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_an_event_becomes_the_same_row_in_whichever_shape_it_comes(
    registry: Registry, dialect: Dialect
) -> None:
    verdict = judge(encode(dialect.from_stored(stored(EVENT))), ARRIVAL, registry)

    assert isinstance(verdict, Accepted), verdict
    assert verdict.envelope == EVENT


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_what_the_door_queues_of_a_dialect_is_judged_the_same_again(
    registry: Registry, dialect: Dialect
) -> None:
    raw = encode(dialect.from_stored(stored(EVENT)))
    first = judge(raw, ARRIVAL, registry)
    assert isinstance(first, Accepted)

    queued = queued_form(first, raw, ARRIVAL)
    assert isinstance(queued, bytes)
    again = judge(queued, ARRIVAL, registry)

    assert isinstance(again, Accepted)
    assert (again.envelope, again.content_hash) == (first.envelope, first.content_hash)


@pytest.mark.parametrize(
    ("name", "pointer"),
    [("cloudevents", "/data/key"), ("domain", "/data/key"), ("governed", "/payload/key")],
)
def test_a_refusal_names_the_place_in_the_document_that_was_sent(
    registry: Registry, name: str, pointer: str
) -> None:
    bad = EVENT._replace(payload={"namespace": "flags", "key": ""})

    verdict = judge(encode(BY_NAME[name].from_stored(stored(bad))), ARRIVAL, registry)

    assert isinstance(verdict, Rejected)
    assert (verdict.reason, verdict.pointer) == (Reason.PAYLOAD_INVALID, pointer)
    assert verdict.faults[0].pointer == pointer
    assert verdict.event_type == EVENT.type


@pytest.mark.parametrize("flags", ["00", "01", "ff"])
def test_a_span_context_and_its_traceparent_say_the_same(flags: str) -> None:
    parent = TRACE[:-2] + flags

    assert traceparent_of(context_of(parent)) == parent


def test_a_span_context_without_flags_counts_as_sampled() -> None:
    context: JsonObject = {"traceId": TRACE[3:35], "spanId": TRACE[36:52]}

    assert traceparent_of(context) == TRACE
    assert context_of(TRACE) == context


@given(st.text(max_size=60))
def test_what_is_no_traceparent_has_no_span_context(text: str) -> None:
    assert context_of(text) == {}
    assert traceparent_of(text) is None
    assert traceparent_of({"traceId": text, "spanId": text}) is None
