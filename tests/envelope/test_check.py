"""Hold every field of the envelope to its rule, and reading to writing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import Fault
from penstock.envelope.check import content_hash, is_tenant, payload_bytes_fault, read, write
from penstock.envelope.envelope import Envelope

NOW = datetime(2026, 1, 31, 10, 30, tzinfo=UTC)
LEAST: dict[str, Any] = {"type": "metastore.record.updated", "source": "metastore.api"}
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
CONTEXT = {
    "workflowDefinitionId": "d",
    "workflowRunId": "r",
    "workflowRunStepId": "s",
    "jobRunId": "j",
    "jobSlug": "slug",
}


def said(tree: Any, tenant_id: str | None = None) -> Envelope | tuple[Fault, ...]:
    return read(tree, accepted_at=NOW, fallback_id="fallback", tenant_id=tenant_id)


def good(tree: Any, tenant_id: str | None = None) -> Envelope:
    envelope = said(tree, tenant_id)
    assert isinstance(envelope, Envelope), envelope
    return envelope


def faults(tree: Any, tenant_id: str | None = None) -> dict[str, str]:
    found = said(tree, tenant_id)
    assert not isinstance(found, Envelope), found
    return {fault.pointer: fault.detail for fault in found}


def test_an_event_that_says_little_gets_every_default() -> None:
    assert good(LEAST) == Envelope(
        id="fallback",
        type="metastore.record.updated",
        source="metastore.api",
        occurred_at=NOW,
        payload={},
        tags={},
        metadata={},
        tenant_id="default",
    )


def test_an_event_that_says_everything_is_read_as_it_says() -> None:
    envelope = good(
        LEAST
        | {
            "id": "evt-001",
            "occurredAt": "2026-01-31T12:30:00.123456+02:00",
            "payload": [1, "x", None],
            "tags": {"userId": "u", "custom.key-1": ""},
            "correlationId": "req-41ac2fd3",
            "causationId": "evt:000",
            "traceparent": TRACE,
            "ttl": 60_000,
            "metadata": {"__apphubWorkflow": CONTEXT, "x": {"y": 1}},
            "schemaVersion": 3,
            "tenantId": "acme",
        }
    )

    assert envelope == Envelope(
        id="evt-001",
        type="metastore.record.updated",
        source="metastore.api",
        occurred_at=datetime(2026, 1, 31, 10, 30, 0, 123456, tzinfo=UTC),
        payload=[1, "x", None],
        tags={"userId": "u", "custom.key-1": ""},
        correlation_id="req-41ac2fd3",
        causation_id="evt:000",
        traceparent=TRACE,
        ttl_ms=60_000,
        metadata={"__apphubWorkflow": CONTEXT, "x": {"y": 1}},
        schema_version=3,
        tenant_id="acme",
    )


@pytest.mark.parametrize("payload", [None, 0, False, "", [], {}, "text", 1.5])
def test_a_payload_may_be_any_json_value(payload: object) -> None:
    assert good(LEAST | {"payload": payload}).payload == payload


BAD_FIELDS: list[tuple[str, Any]] = [
    ("id", ""),
    ("id", "a b"),
    ("id", "x" * 129),
    ("id", "a/b"),
    ("id", "é"),
    ("id", "a\n"),
    ("id", 7),
    ("id", None),
    ("type", None),
    ("type", 1),
    ("type", "one"),
    ("type", "a.b.c.d.e.f.g"),
    ("type", "Mixed.case"),
    ("source", None),
    ("source", ""),
    ("source", "a b"),
    ("source", "x" * 201),
    ("source", ["a"]),
    ("occurredAt", None),
    ("occurredAt", 1700000000),
    ("occurredAt", ""),
    ("occurredAt", "2026-01-31"),
    ("occurredAt", "2026-01-31T10:30:00"),
    ("occurredAt", "2026-02-30T10:30:00Z"),
    ("occurredAt", "1969-12-31T23:59:59Z"),
    ("occurredAt", "2026-01-31T10:30:00.000z0"),
    ("tags", None),
    ("tags", []),
    ("tags", "a:b"),
    ("tags", {str(n): "" for n in range(65)}),
    ("correlationId", ""),
    ("correlationId", "x" * 257),
    ("correlationId", "a\nb"),
    ("correlationId", "a\x85b"),
    ("correlationId", None),
    ("causationId", ""),
    ("causationId", 1),
    ("traceparent", ""),
    ("traceparent", "00-" + "0" * 32 + "-00f067aa0ba902b7-01"),
    ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-" + "0" * 16 + "-01"),
    ("traceparent", TRACE.upper()),
    ("traceparent", TRACE.replace("00-", "01-", 1)),
    ("traceparent", TRACE + "-x"),
    ("ttl", 0),
    ("ttl", -1),
    ("ttl", 1.5),
    ("ttl", 1.0),
    ("ttl", True),
    ("ttl", "60"),
    ("ttl", None),
    ("metadata", None),
    ("metadata", []),
    ("metadata", "x"),
    ("schemaVersion", 0),
    ("schemaVersion", True),
    ("schemaVersion", "1"),
    ("schemaVersion", 2**31),
    ("tenantId", ""),
    ("tenantId", "a/b"),
    ("tenantId", "x" * 65),
    ("tenantId", None),
]


@pytest.mark.parametrize(("field", "value"), BAD_FIELDS)
def test_a_field_that_breaks_its_rule_is_named(field: str, value: object) -> None:
    found = faults(LEAST | {field: value})

    assert list(found) == [f"/{field}"]
    assert found[f"/{field}"].startswith("expected")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "x" * 128),
        ("id", "A.b_c:d-9"),
        ("occurredAt", "2026-01-31t10:30:00z"),
        ("occurredAt", "9999-12-31T23:59:59.999Z"),
        ("tags", {str(n): "" for n in range(64)}),
        ("tags", {"x" * 64: "y" * 256}),
        ("correlationId", "é" * 256),
        ("correlationId", "any thing/at:all"),
        ("ttl", 2**63 - 1),
        ("schemaVersion", 2**31 - 1),
        ("tenantId", "A.b_c-9"),
    ],
)
def test_a_field_at_the_edge_of_its_rule_is_taken(field: str, value: object) -> None:
    good(LEAST | {field: value})


def test_every_fault_is_found_at_once() -> None:
    found = faults({"id": "", "type": "x", "tags": {"a:b": "", "ok": 1, "long": "x" * 257}})

    assert list(found) == ["/id", "/type", "/tags/a:b", "/tags/ok", "/tags/long", "/source"]


def test_what_is_missing_is_named() -> None:
    assert faults({}) == {
        "/type": "expected a string, found nothing",
        "/source": "expected a string, found nothing",
    }


@pytest.mark.parametrize("tree", [None, [], "x", 1, True])
def test_an_event_is_an_object(tree: object) -> None:
    assert list(faults(tree)) == [""]


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("corelationId", "correlationId"),
        ("correlation_id", "correlationId"),
        ("occuredAt", "occurredAt"),
        ("timestamp", "occurredAt"),
        ("data", "payload"),
        ("ttlMs", "ttl"),
        ("meta_data", "metadata"),
        ("Type", "type"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(key: str, near: str) -> None:
    assert faults(LEAST | {key: "x"})[f"/{key}"].endswith(f"did you mean {near}?")


@pytest.mark.parametrize("key", ["severity", "position", "receivedAt", "links", "", "a/b~c"])
def test_what_only_the_store_says_is_refused_from_a_publisher(key: str) -> None:
    assert list(faults(LEAST | {key: "x"})) == ["/" + key.replace("~", "~0").replace("/", "~1")]


def test_a_thousand_unknown_keys_give_twenty_faults() -> None:
    assert len(faults({f"unknown{n}": 1 for n in range(1000)})) == 20


def test_a_bound_caller_needs_no_tenant_and_may_name_only_its_own() -> None:
    assert good(LEAST, "acme").tenant_id == "acme"
    assert good(LEAST | {"tenantId": "acme"}, "acme").tenant_id == "acme"
    mismatch = faults(LEAST | {"tenantId": "other"}, "acme")
    assert list(mismatch) == ["/tenantId"]
    assert "tenant" in mismatch["/tenantId"]
    assert "token" in mismatch["/tenantId"]


def test_a_wrong_tenant_is_told_beside_other_faults() -> None:
    assert list(faults({"type": "a.b", "tenantId": "other"}, "acme")) == ["/source", "/tenantId"]


def test_the_context_in_metadata_must_have_its_exact_shape() -> None:
    broken = {**CONTEXT, "jobSlug": " ", "extra": 1}
    del broken["jobRunId"]

    found = faults(LEAST | {"metadata": {"__apphubWorkflow": broken}})

    at = "/metadata/__apphubWorkflow"
    assert set(found) == {f"{at}/jobSlug", f"{at}/extra", f"{at}/jobRunId"}
    assert set(faults(LEAST | {"metadata": {"__apphubWorkflow": "text"}})) == {at}
    good(LEAST | {"metadata": {"__apphubWorkflow": {**CONTEXT, "workflowRunKey": "k"}}})


def test_writing_leaves_out_what_the_event_does_not_have() -> None:
    assert write(good(LEAST)) == {
        "id": "fallback",
        "type": "metastore.record.updated",
        "source": "metastore.api",
        "occurredAt": "2026-01-31T10:30:00.000Z",
        "payload": {},
        "tags": {},
        "metadata": {},
    }


texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
envelopes = st.builds(
    Envelope,
    id=st.from_regex(r"[A-Za-z0-9._:-]{1,128}", fullmatch=True),
    type=st.sampled_from(["a.b", "metastore.record.updated", "CODE.MERGED.SUCCESS"]),
    source=st.sampled_from(["a", "metastore.api", "https://example.com/x?y=1"]),
    occurred_at=st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31)).map(  # noqa: DTZ001
        lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000, tzinfo=UTC)
    ),
    payload=st.none() | st.integers() | st.dictionaries(texts, texts),
    tags=st.dictionaries(st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True), texts),
    correlation_id=st.none() | texts,
    causation_id=st.none() | texts,
    traceparent=st.none() | st.just(TRACE),
    ttl_ms=st.none() | st.integers(1, 2**63 - 1),
    metadata=st.dictionaries(texts, texts),
    schema_version=st.none() | st.integers(1, 2**31 - 1),
    tenant_id=st.sampled_from(["default", "acme"]),
)


@given(envelopes)
def test_what_was_written_is_read_as_the_same_event(envelope: Envelope) -> None:
    assert said(write(envelope)) == envelope


def test_times_are_written_in_utc_with_milliseconds() -> None:
    at = NOW + timedelta(microseconds=123_999)

    assert write(good(LEAST)._replace(occurred_at=at))["occurredAt"] == "2026-01-31T10:30:00.123Z"


def test_the_same_claim_has_the_same_hash_whatever_its_id_tenant_and_order() -> None:
    one = content_hash({"id": "1", "type": "a.b", "payload": {"x": 1, "y": 2}})
    two = content_hash({"payload": {"y": 2, "x": 1}, "type": "a.b", "id": "2", "tenantId": "t"})

    assert one == two
    assert len(one) == 32


def test_another_claim_has_another_hash() -> None:
    claims: list[Any] = [
        {"type": "a.b"},
        {"type": "a.b", "payload": {"id": "1"}},
        {"type": "a.b", "payload": {"id": "2"}},
        {"type": "a.b", "payload": {"tenantId": "2"}},
        {"type": "a.c"},
    ]

    assert len({content_hash(claim) for claim in claims}) == len(claims)


def test_a_payload_may_have_256_kilobytes_and_not_one_byte_more() -> None:
    assert payload_bytes_fault(262_144) is None
    assert payload_bytes_fault(262_145) == (
        "expected a payload of at most 262144 bytes, found 262145"
    )


@pytest.mark.parametrize(
    ("text", "fits"), [("a", True), ("", False), ("a b", False), ("a\n", False)]
)
def test_a_tenant_has_a_plain_name(text: str, fits: bool) -> None:
    assert is_tenant(text) is fits
