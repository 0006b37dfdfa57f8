"""Hold the DomainEvent dialect to the seed's interface, and to losing nothing on the way."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from tests.catalog.envelopes import envelopes, read_back, stored

from penstock.base.clock import parse_instant
from penstock.catalog.domain_event import REQUIRED, from_stored, recognises, to_native
from penstock.catalog.vocabularies import ALL
from penstock.envelope.codec import decode, encode
from penstock.envelope.envelope import Envelope, JsonObject
from penstock.ingress.pipeline import judge
from penstock.ingress.verdict import Accepted, Arrival, Reason, Rejected, Verdict
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.registry import Registry

WHOLE: JsonObject = {
    "id": "0197a3c2-5a00-7000-8000-000000000001",
    "type": "ISSUE.ASSIGNED.SUCCESS",
    "timestamp": "2026-01-31T10:30:00.123Z",
    "tags": {"issueId": "42", "mode": "dev", "sprint": "7"},
    "metadata": {
        "workflowVersion": "1.0.0",
        "eventSource": "plugin",
        "correlationId": "corr-1",
        "causationId": "cause-1",
    },
    "data": {"assignee": "ana"},
}
ARRIVAL = Arrival(datetime(2026, 3, 1, tzinfo=UTC), "")


@pytest.fixture(scope="module")
def registry() -> Registry:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    return book.current()


def judged(registry: Registry, **changes: Any) -> Verdict:
    return judge(encode({**WHOLE, **changes}), ARRIVAL, registry)


def refused(verdict: Verdict) -> tuple[Reason, str]:
    assert isinstance(verdict, Rejected), verdict
    assert verdict.detail.startswith("expected") or ": expected" in verdict.detail
    assert verdict.remedy
    return verdict.reason, verdict.pointer


def test_a_domain_event_is_recognised_by_its_timestamp_and_data() -> None:
    assert recognises(WHOLE)
    assert not recognises({"type": "a.b", "source": "a.b", "data": {}})
    assert not recognises({"type": "a.b", "source": "a.b", "timestamp": "t", "payload": {}})
    assert not recognises({**WHOLE, "payload": {}})


def test_every_field_of_the_interface_finds_its_place() -> None:
    assert to_native(WHOLE) == {
        "id": "0197a3c2-5a00-7000-8000-000000000001",
        "type": "ISSUE.ASSIGNED.SUCCESS",
        "source": "plugin",
        "occurredAt": "2026-01-31T10:30:00.123Z",
        "tags": {"issueId": "42", "mode": "dev", "sprint": "7"},
        "metadata": {"workflowVersion": "1.0.0", "eventSource": "plugin"},
        "payload": {"assignee": "ana"},
        "correlationId": "corr-1",
        "causationId": "cause-1",
    }


def test_a_domain_event_is_accepted_and_stored_in_the_one_shape(registry: Registry) -> None:
    verdict = judged(registry)

    assert isinstance(verdict, Accepted)
    assert verdict.envelope == Envelope(
        id="0197a3c2-5a00-7000-8000-000000000001",
        type="ISSUE.ASSIGNED.SUCCESS",
        source="plugin",
        occurred_at=parse_instant("2026-01-31T10:30:00.123Z"),
        payload={"assignee": "ana"},
        tags={"issueId": "42", "mode": "dev", "sprint": "7"},
        correlation_id="corr-1",
        causation_id="cause-1",
        metadata={"workflowVersion": "1.0.0", "eventSource": "plugin"},
        schema_version=1,
    )


def test_the_same_domain_event_again_has_the_same_content(registry: Registry) -> None:
    first, again = judged(registry), judged(registry)

    assert isinstance(first, Accepted)
    assert isinstance(again, Accepted)
    assert first.content_hash == again.content_hash


@pytest.mark.parametrize("field", [f for f in REQUIRED if f not in ("timestamp", "data")])
def test_a_domain_event_without_one_of_its_required_fields_is_refused_at_it(
    registry: Registry, field: str
) -> None:
    event = {name: value for name, value in WHOLE.items() if name != field}

    verdict = judge(encode(event), ARRIVAL, registry)

    assert refused(verdict) == (Reason.ENVELOPE_INVALID, f"/{field}")


@pytest.mark.parametrize("field", ["timestamp", "data"])
def test_without_the_words_that_mark_it_a_domain_event_is_refused_too(
    registry: Registry, field: str
) -> None:
    event = {name: value for name, value in WHOLE.items() if name != field}

    assert refused(judge(encode(event), ARRIVAL, registry))[0] == Reason.ENVELOPE_INVALID


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"timestamp": "2026-01-31T10:30:00.123"}, "/timestamp"),
        ({"timestamp": "31 January"}, "/timestamp"),
        ({"timestamp": 1}, "/timestamp"),
        ({"id": "8f14e45f-ceea-467f-a0e6-3c9f1d2b7a10"}, "/id"),
        ({"tags": {"issueId": 42}}, "/tags/issueId"),
        ({"tags": {"issueId": None}}, "/tags/issueId"),
        ({"tags": []}, "/tags"),
        ({"metadata": []}, "/metadata"),
        ({"metadata": {"eventSource": "robot"}}, "/metadata/eventSource"),
        ({"metadata": {"correlationId": ""}}, "/metadata/correlationId"),
        ({"metadata": {"causationId": 7}}, "/metadata/causationId"),
        ({"surprise": 1}, "/surprise"),
    ],
)
def test_what_is_wrong_is_said_at_the_place_the_sender_knows(
    registry: Registry, changes: JsonObject, pointer: str
) -> None:
    assert refused(judged(registry, **changes)) == (Reason.ENVELOPE_INVALID, pointer)


def test_data_that_does_not_fit_is_refused_in_data(registry: Registry) -> None:
    assert refused(judged(registry, data={"mode": "party"})) == (
        Reason.PAYLOAD_INVALID,
        "/data/mode",
    )


def test_a_domain_event_of_an_unknown_type_is_refused_with_the_nearest_name(
    registry: Registry,
) -> None:
    verdict = judged(registry, type="ISSUE.ASSIGNED.SUCESS")

    assert refused(verdict) == (Reason.TYPE_UNKNOWN, "/type")
    assert isinstance(verdict, Rejected)
    assert "ISSUE.ASSIGNED.SUCCESS" in verdict.detail


def test_without_an_event_source_the_system_speaks(registry: Registry) -> None:
    verdict = judged(registry, metadata={"workflowVersion": "1"})

    assert isinstance(verdict, Accepted)
    assert verdict.envelope.source == "system"
    assert verdict.envelope.metadata == {"workflowVersion": "1", "eventSource": "system"}


@pytest.mark.parametrize("zone", ["Z", "+02:00"])
@pytest.mark.parametrize("fraction", ["", ".1", ".123", ".123456"])
def test_a_timestamp_of_iso_8601_is_read_to_the_instant_and_written_in_milliseconds(
    registry: Registry, zone: str, fraction: str
) -> None:
    text = f"2026-01-31T10:30:00{fraction}{zone}"
    verdict = judged(registry, timestamp=text)
    assert isinstance(verdict, Accepted)

    written = from_stored(stored(verdict.envelope))["timestamp"]

    assert verdict.envelope.occurred_at == datetime.fromisoformat(text)
    assert isinstance(written, str)
    assert len(written) == len("2026-01-31T10:30:00.123Z")
    assert written[19] == "."


def test_a_stored_event_is_written_with_the_six_fields_of_the_interface(registry: Registry) -> None:
    verdict = judged(registry)
    assert isinstance(verdict, Accepted)

    written = from_stored(stored(verdict.envelope))

    assert written == {**WHOLE, "schemaVersion": 1}


@given(envelopes)
def test_what_is_written_as_a_domain_event_is_read_back_the_same(envelope: Envelope) -> None:
    sent = decode(encode(from_stored(stored(envelope))))
    assert isinstance(sent, dict)

    assert recognises(sent)
    assert set(REQUIRED) <= set(sent)
    assert read_back(to_native(sent)) == envelope
