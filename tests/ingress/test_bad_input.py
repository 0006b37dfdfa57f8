"""Bad input of every kind is refused with its reason, its place and a remedy; nothing is stored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.base.ids import uuid7
from penstock.catalog.vocabularies import ALL
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject
from penstock.ingress.pipeline import judge, queued_form
from penstock.ingress.verdict import Accepted, Arrival, Reason, Rejected, Verdict
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.registry import Mode, Registry

ARRIVAL = Arrival(datetime(2026, 3, 1, tzinfo=UTC), "")
UUID4 = "8f14e45f-ceea-467f-a0e6-3c9f1d2b7a10"


def opened(mode: Mode) -> Registry:
    book = RegistryBook(InMemoryRegistryStore(), mode=mode)
    book.declare(ALL)
    return book.current()


STRICT, OPEN = opened("strict"), opened("open")


def judged(registry: Registry = STRICT, **changes: Any) -> Verdict:
    event: JsonObject = {
        "id": uuid7(),
        "type": "ISSUE.ASSIGNED.SUCCESS",
        "source": "system",
        "occurredAt": "2026-03-01T10:30:00.000Z",
        "payload": {"issueId": "42"},
        "tags": {"issueId": "42"},
        **changes,
    }
    return judge(encode(event), ARRIVAL, registry)


def refused(verdict: Verdict) -> tuple[str, str]:
    assert isinstance(verdict, Rejected), verdict
    assert verdict.detail
    assert verdict.remedy.endswith(".")
    assert verdict.faults[0].pointer == verdict.pointer
    return verdict.reason, verdict.pointer


def schema_hash(event_type: str) -> str:
    schema = STRICT.find(event_type, None)
    assert schema is not None
    return schema.schema_hash


def test_an_unregistered_type_is_refused_with_the_nearest_name() -> None:
    verdict = judged(type="ISSUE.ASIGNED.SUCCESS")

    assert refused(verdict) == (Reason.TYPE_UNKNOWN, "/type")
    assert isinstance(verdict, Rejected)
    assert "ISSUE.ASSIGNED.SUCCESS" in verdict.detail


def test_an_open_registry_takes_an_unregistered_type_and_marks_it() -> None:
    verdict = judged(OPEN, type="ISSUE.DREAMT.SUCCESS")

    assert isinstance(verdict, Accepted)
    assert (verdict.schema_hash, verdict.envelope.schema_version) == (None, None)


@pytest.mark.parametrize("registry", [STRICT, OPEN], ids=["strict", "open"])
def test_a_wrong_version_is_unknown_in_either_mode(registry: Registry) -> None:
    assert refused(judged(registry, schemaVersion=2)) == (
        Reason.VERSION_UNKNOWN,
        "/schemaVersion",
    )


@pytest.mark.parametrize("version", [0, -1, "1", 1.5, True, None])
def test_a_version_that_is_no_counting_number_is_refused(version: object) -> None:
    assert refused(judged(schemaVersion=version)) == (Reason.ENVELOPE_INVALID, "/schemaVersion")


def test_a_wrong_hash_of_the_schema_is_refused() -> None:
    verdict = judged(schemaHash="0" * 64)

    assert refused(verdict) == (Reason.VERSION_UNKNOWN, "/schemaHash")
    assert isinstance(verdict, Rejected)
    assert schema_hash("ISSUE.ASSIGNED.SUCCESS") in verdict.detail


def test_a_right_hash_of_the_schema_is_a_claim_that_holds_and_is_not_content() -> None:
    event_id = uuid7()
    claimed = judged(id=event_id, schemaHash=schema_hash("ISSUE.ASSIGNED.SUCCESS"))
    plain = judged(id=event_id)

    assert isinstance(claimed, Accepted)
    assert isinstance(plain, Accepted)
    assert claimed == plain


def test_a_hash_claimed_of_a_type_that_has_no_schema_is_refused() -> None:
    verdict = judged(OPEN, type="ISSUE.DREAMT.SUCCESS", schemaHash="0" * 64)

    assert refused(verdict) == (Reason.VERSION_UNKNOWN, "/schemaHash")


@pytest.mark.parametrize("value", [None, 7, {}])
def test_a_hash_that_is_no_text_is_refused(value: object) -> None:
    assert refused(judged(schemaHash=value)) == (Reason.ENVELOPE_INVALID, "/schemaHash")


def test_a_payload_that_does_not_fit_is_refused_at_its_place() -> None:
    assert refused(judged(payload={"mode": "party"})) == (Reason.PAYLOAD_INVALID, "/payload/mode")


@pytest.mark.parametrize(
    "event_id", [UUID4, "42", "0197A3C2-5A00-7000-8000-000000000001", "0197a3c25a007000"]
)
def test_an_id_that_is_not_uuid_v7_where_it_must_be_is_refused(event_id: str) -> None:
    assert refused(judged(id=event_id)) == (Reason.ENVELOPE_INVALID, "/id")


def test_an_id_that_is_not_uuid_v7_is_welcome_where_it_may_be() -> None:
    payload = {"namespace": "n", "key": "k"}

    verdict = judged(id=UUID4, type="metastore.record.updated", payload=payload)

    assert isinstance(verdict, Accepted)


@pytest.mark.parametrize(
    "at", ["2026-03-01T10:30:00", "2026-03-01T10:30:00.000", "2026-03-01", "now", 1, None]
)
def test_a_timestamp_without_offset_is_refused(at: object) -> None:
    assert refused(judged(occurredAt=at)) == (Reason.ENVELOPE_INVALID, "/occurredAt")


@pytest.mark.parametrize("value", [42, 4.2, True, None, ["42"], {"id": "42"}])
def test_a_tag_that_is_not_a_string_is_refused_at_its_key(value: object) -> None:
    assert refused(judged(tags={"issueId": value})) == (Reason.ENVELOPE_INVALID, "/tags/issueId")


def test_every_fault_is_listed_not_only_the_first() -> None:
    verdict = judged(tags={"a": 1}, occurredAt="now", ttl=-1)

    assert isinstance(verdict, Rejected)
    assert sorted(fault.pointer for fault in verdict.faults) == ["/occurredAt", "/tags/a", "/ttl"]


def test_bad_input_is_kept_verbatim_with_what_it_says_of_itself() -> None:
    verdict = judged(id=UUID4)

    assert isinstance(verdict, Rejected)
    assert b"ISSUE.ASSIGNED.SUCCESS" in verdict.raw
    assert (verdict.event_type, verdict.source, verdict.event_id) == (
        "ISSUE.ASSIGNED.SUCCESS",
        "system",
        UUID4,
    )


@pytest.mark.parametrize("values", range(19_985, 20_001))
def test_what_the_door_lets_in_the_ingress_lets_in_also_at_the_limit_of_values(values: int) -> None:
    payload: JsonObject = {"namespace": "n", "key": "k", "x": [1] * (values - 7)}
    event: JsonObject = {
        "type": "metastore.record.updated",
        "source": "a.b",
        "payload": payload,
    }
    raw, arrival = encode(event), ARRIVAL._replace(fallback_id=uuid7(), tenant_id="acme")
    verdict = judge(raw, arrival, STRICT)
    assert isinstance(verdict, Accepted)

    queued = queued_form(verdict, raw, arrival)

    if isinstance(queued, Rejected):
        assert queued.reason == Reason.TOO_MANY_NODES
        assert values > 19_990
    else:
        assert isinstance(judge(queued, arrival, STRICT), Accepted)
