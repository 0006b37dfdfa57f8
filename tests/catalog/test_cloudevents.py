"""Hold the CloudEvents dialect to its table, to valid output, and to losing nothing on the way."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base.clock import parse_instant
from penstock.base.errors import NotInProfile
from penstock.catalog.cloudevents import from_headers, from_stored, recognises, to_native
from penstock.envelope.check import read, write
from penstock.envelope.codec import decode, encode
from penstock.envelope.envelope import Envelope, JsonObject, Severity, Stored

NOW = datetime(2026, 1, 31, 10, 30, tzinfo=UTC)
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
LEAST: JsonObject = {
    "specversion": "1.0",
    "id": "A234-1234-1234",
    "source": "https://github.com/cloudevents/spec/pull",
    "type": "github.pull.created",
}


def native(event: Any) -> JsonObject:
    found = to_native(event)
    assert isinstance(found, dict), found
    return found


def pointers(event: Any) -> list[str]:
    found = to_native(event)
    assert isinstance(found, tuple), found
    assert all("expected" in fault.detail for fault in found)
    return [fault.pointer for fault in found]


def stored(**fields: Any) -> Stored:
    least = {"id": "e-1", "type": "a.b", "source": "a.b", "occurred_at": NOW, "payload": {}}
    envelope = Envelope(**{**least, **fields})
    return Stored(42, envelope, NOW, Severity.WARNING, "declared", "hash", b"\0" * 32)


def test_a_cloudevent_is_recognised_by_its_version_of_the_specification() -> None:
    assert recognises(LEAST)
    assert not recognises({"type": "a.b", "source": "a.b"})


def test_the_least_cloudevent_is_an_event() -> None:
    assert native(LEAST) == {
        "id": "A234-1234-1234",
        "source": "https://github.com/cloudevents/spec/pull",
        "type": "github.pull.created",
    }


def test_every_attribute_of_the_table_finds_its_field() -> None:
    event = LEAST | {
        "time": "2026-01-31T10:30:00Z",
        "data": {"n": 1},
        "datacontenttype": "application/json",
        "dataschema": "https://schemas.example/github.pull.created/3",
        "correlationid": "req-1",
        "causationid": "evt-0",
        "traceparent": TRACE,
        "tracestate": "a=b",
        "expirytime": "2026-01-31T10:31:00Z",
        "tenantid": "acme",
        "subject": "123",
        "partitionkey": "p",
        "sampledrate": 10,
        "tags": '{"userId":"u"}',
        "metadata": '{"region":"eu"}',
    }

    assert native(event) == {
        "id": "A234-1234-1234",
        "source": "https://github.com/cloudevents/spec/pull",
        "type": "github.pull.created",
        "occurredAt": "2026-01-31T10:30:00Z",
        "payload": {"n": 1},
        "correlationId": "req-1",
        "causationId": "evt-0",
        "traceparent": TRACE,
        "ttl": 60_000,
        "schemaVersion": 3,
        "tenantId": "acme",
        "tags": {"userId": "u"},
        "metadata": {
            "region": "eu",
            "ext": {
                "subject": "123",
                "partitionkey": "p",
                "sampledrate": 10,
                "tracestate": "a=b",
                "dataschema": "https://schemas.example/github.pull.created/3",
            },
        },
    }


@pytest.mark.parametrize("data", [None, 0, "text", [], {"a": 1}])
def test_data_of_any_kind_is_the_payload(data: object) -> None:
    assert native(LEAST | {"data": data})["payload"] == data


def test_an_attribute_that_is_null_is_not_there() -> None:
    assert native(LEAST | {"subject": None, "time": None, "tags": None}) == native(LEAST)


def test_tags_and_metadata_may_come_as_objects_too() -> None:
    event = native(LEAST | {"tags": {"a": "b"}, "metadata": {"c": 1}})

    assert (event["tags"], event["metadata"]) == ({"a": "b"}, {"c": 1})


def test_an_extension_that_happens_to_be_called_tags_is_kept_as_one() -> None:
    event = native(LEAST | {"tags": "red,green"})

    assert event["metadata"] == {"ext": {"tags": "red,green"}}
    assert "tags" not in event


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("specversion", "0.3"),
        ("specversion", 1),
        ("data_base64", "AAEC"),
        ("dataclassification", "restricted"),
        ("dataregulation", "GDPR"),
        ("datacategory", "sensitive"),
        ("datacontenttype", "text/xml"),
        ("datacontenttype", "application/octet-stream"),
        ("datacontenttype", "application/jsonlines"),
        ("datacontenttype", 7),
        ("expirytime", "2026-01-31T10:30:00Z"),
        ("subject", {"a": 1}),
        ("custom", [1]),
        ("ratio", 1.5),
        ("tags", 7),
        ("tags", '{"a":'),
        ("tags", '{"a":1,"a":2}'),
        ("metadata", [1]),
        ("metadata", '{"a":1e400}'),
        ("metadata", '{"a":' + "[" * 31 + "]" * 31 + "}"),
    ],
)
def test_an_attribute_that_cannot_be_honoured_is_refused_by_name(
    attribute: str, value: object
) -> None:
    assert pointers(LEAST | {attribute: value}) == [f"/{attribute}"]


@pytest.mark.parametrize("kind", ["application/json", "text/json", "application/vnd.x.y+json"])
@pytest.mark.parametrize("parameters", ["", "; charset=utf-8", ";charset=UTF-8"])
def test_every_kind_of_json_is_json(kind: str, parameters: str) -> None:
    native(LEAST | {"datacontenttype": kind + parameters})


@pytest.mark.parametrize("name", ["occurredAt", "correlation_id", "X", "é", ""])
def test_an_attribute_name_has_lower_case_letters_and_digits(name: str) -> None:
    assert pointers(LEAST | {name: "x"}) == [""]


def test_a_missing_version_of_the_specification_is_named() -> None:
    assert pointers({"id": "1", "source": "a", "type": "a.b"}) == ["/specversion"]


@pytest.mark.parametrize(
    ("time", "expiry", "ttl"),
    [
        ("2026-01-31T10:30:00Z", "2026-01-31T10:30:00.001Z", 1),
        ("2026-01-31T10:30:00Z", "2026-01-31T12:30:01+02:00", 1000),
        ("2026-01-31T10:30:00.0000Z", "2026-01-31T10:30:00.0001Z", 1),
    ],
)
def test_the_time_left_until_expiry_is_the_ttl(time: str, expiry: str, ttl: int) -> None:
    assert native(LEAST | {"time": time, "expirytime": expiry})["ttl"] == ttl


@pytest.mark.parametrize("expiry", ["2026-01-31T10:30:00Z", "2026-01-31T10:29:59Z", "soon", 7])
def test_an_expiry_that_is_not_after_the_time_is_refused(expiry: object) -> None:
    event = LEAST | {"time": "2026-01-31T10:30:00Z", "expirytime": expiry}

    assert pointers(event) == ["/expirytime"]


def test_a_schema_address_without_a_version_is_kept_as_it_is() -> None:
    event = native(LEAST | {"dataschema": "https://schemas.example/x/v3"})

    assert "schemaVersion" not in event
    assert event["metadata"] == {"ext": {"dataschema": "https://schemas.example/x/v3"}}


def test_metadata_as_text_counts_in_full_against_the_profile() -> None:
    rows = ",".join(["0"] * 11_000)
    event = LEAST | {"data": [0] * 11_000, "metadata": f'{{"rows":[{rows}]}}'}

    assert pointers(event) == [""]


def test_binary_mode_takes_attributes_from_headers_and_data_from_the_body() -> None:
    headers = {
        "Host": "localhost",
        "Content-Type": "application/json; charset=utf-8",
        "ce-specversion": "1.0",
        "CE-Id": "1",
        "ce-source": "/my/context",
        "ce-type": "a.b",
        "ce-subject": "Euro%20%E2%82%AC%20%F0%9F%98%80",
        "ce-quoted": '"a \\"b\\""',
    }

    assert from_headers(headers, b'{"n": 1.10}') == {
        "datacontenttype": "application/json; charset=utf-8",
        "specversion": "1.0",
        "id": "1",
        "source": "/my/context",
        "type": "a.b",
        "subject": "Euro € 😀",
        "quoted": 'a "b"',
        "data": {"n": 1.1},
    }


def test_binary_mode_without_a_body_has_no_data() -> None:
    headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "a", "ce-type": "a.b"}

    assert from_headers(headers, b"") == {
        "specversion": "1.0", "id": "1", "source": "a", "type": "a.b",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "pointer"),
    [
        ({"content-type": "text/plain"}, "/datacontenttype"),
        ({"ce-id": "%00"}, "/id"),
        ({"ce-id": "%ff"}, "/id"),
        ({"ce-id": "%ED%A0%80"}, "/id"),
        ({"ce-id": "a%0Ab"}, "/id"),
        ({"ce-id": "1", "CE-ID": "2"}, "/id"),
        ({"ce-data": "x"}, "/data"),
    ],
)
def test_a_header_that_cannot_be_read_is_named(headers: dict[str, str], pointer: str) -> None:
    faults = from_headers(headers, b"{}")

    assert isinstance(faults, tuple)
    assert [fault.pointer for fault in faults] == [pointer]


@pytest.mark.parametrize(
    ("body", "reason", "pointer"),
    [
        (b'{"a":1,"a":2}', "duplicate_key", "/data/a"),
        (b"{", "malformed_json", "/data"),
        (b"[" * 32 + b"]" * 32, "too_deep", "/data"),
        (b"[" + b"0," * 19_998 + b"0]", "too_many_nodes", "/data"),
    ],
)
def test_a_body_outside_the_profile_is_refused_with_its_reason(
    body: bytes, reason: str, pointer: str
) -> None:
    with pytest.raises(NotInProfile) as caught:
        from_headers({"ce-id": "1"}, body)

    assert (caught.value.reason, caught.value.pointer) == (reason, pointer)


def test_what_binary_mode_gives_is_within_the_profile_as_a_whole() -> None:
    headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "a", "ce-type": "a.b"}

    for body in (b"[" * 31 + b"]" * 31, b"[" + b"0," * 19_992 + b"0]"):
        tree = from_headers(headers, body)
        assert isinstance(tree, dict)
        assert decode(encode(tree)) == tree


def test_a_stored_event_is_written_with_what_the_store_knows() -> None:
    written = from_stored(
        stored(
            payload={"n": 1},
            tags={"userId": "u"},
            correlation_id="c",
            ttl_ms=1500,
            schema_version=3,
            metadata={"region": "eu", "ext": {"subject": "s", "partitionkey": "p"}},
            tenant_id="acme",
        )
    )

    assert written == {
        "specversion": "1.0",
        "id": "e-1",
        "type": "a.b",
        "source": "a.b",
        "time": "2026-01-31T10:30:00.000Z",
        "expirytime": "2026-01-31T10:30:01.500Z",
        "data": {"n": 1},
        "datacontenttype": "application/json",
        "dataschema": "penstock:/schemas/a.b/3",
        "schemaversion": 3,
        "correlationid": "c",
        "tenantid": "acme",
        "subject": "s",
        "partitionkey": "p",
        "tags": '{"userId":"u"}',
        "metadata": '{"region":"eu","ext":{"subject":"s","partitionkey":"p"}}',
        "sequence": "0000000000000000042",
        "recordedtime": "2026-01-31T10:30:00.000Z",
        "recordedby": "penstock",
        "severitytext": "WARNING",
        "severitynumber": 13,
    }


def test_sequences_sort_as_text_in_the_order_of_positions() -> None:
    positions = [1, 9, 10, 99, 2**40, 2**63 - 1]
    sequences = [
        str(
            from_stored(Stored(n, stored().envelope, NOW, Severity.INFO, "", None, b""))["sequence"]
        )
        for n in positions
    ]

    assert sequences == sorted(sequences)


def test_a_publishers_own_record_attributes_come_out_as_they_went_in() -> None:
    own: JsonObject = {
        "sequence": "7",
        "recordedtime": "2020-01-01T00:00:00Z",
        "severitytext": "FATAL",
        "dataschema": "https://schemas.example/x",
        "datacontenttype": "application/vnd.x+json",
        "subject": "s",
    }
    event = read(native(LEAST | own), accepted_at=NOW, fallback_id="", tenant_id=None)
    assert isinstance(event, Envelope)

    written = from_stored(Stored(1, event, NOW, Severity.INFO, "", None, b""))

    assert {name: written[name] for name in own} == own
    assert native(written) == write(event)


def test_an_extension_never_speaks_in_the_place_of_a_field() -> None:
    ext = {"id": "x", "correlationid": "x", "tags": "{}", "expirytime": "x", "recordedby": "x"}
    odd = {"datacontenttype": "text/xml", "data_base64": "AA", "ttl": "1", "subject": 7, "": "x"}
    event = stored(metadata={"ext": {**ext, **odd, "Upper": "x", "deep": {"a": 1}, "big": 2**40}})

    written = from_stored(event)

    assert written["id"] == "e-1"
    assert not {"correlationid", "tags", "expirytime", "ttl", "subject", "Upper"} & written.keys()
    assert native(written) == write(event.envelope)


def test_a_time_to_live_beyond_the_calendar_survives() -> None:
    event = stored(ttl_ms=2**63 - 1)

    assert native(from_stored(event)) == write(event.envelope)


texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12)
plain_texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
names = st.sampled_from(
    (
        *("subject", "partitionkey", "sequence", "dataschema", "datacontenttype", "recordedtime"),
        *("tags", "severitynumber", "recordedby", "ttl", "schemaversion", "data", "id", "x1"),
        *("Odd_name", "ext"),
    )
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
metadata = st.dictionaries(texts, json_values, max_size=3) | st.fixed_dictionaries(
    {"ext": st.dictionaries(names, json_values, max_size=5) | json_values}
)
stored_events = st.builds(
    Stored,
    position=st.integers(1, 2**63 - 1),
    envelope=st.builds(
        Envelope,
        id=st.from_regex(r"[A-Za-z0-9._:-]{1,20}", fullmatch=True),
        type=st.sampled_from(["a.b", "CODE.MERGED.SUCCESS"]),
        source=st.sampled_from(["metastore.api", "https://example.com/x?y=1"]),
        occurred_at=st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31)).map(  # noqa: DTZ001
            lambda at: at.replace(tzinfo=UTC)
        ),
        payload=json_values,
        tags=st.dictionaries(st.from_regex(r"[A-Za-z0-9._-]{1,9}", fullmatch=True), texts),
        correlation_id=st.none() | plain_texts,
        causation_id=st.none() | plain_texts,
        traceparent=st.none() | st.just(TRACE),
        ttl_ms=st.none() | st.integers(1, 10**9) | st.integers(1, 2**63 - 1),
        metadata=metadata,
        schema_version=st.none() | st.integers(1, 2**31 - 1),
        tenant_id=st.sampled_from(["default", "acme"]),
    ),
    received_at=st.just(NOW),
    severity=st.sampled_from(Severity),
    severity_rule=st.just("default"),
    schema_hash=st.none(),
    content_hash=st.just(b""),
)


@settings(deadline=None)
@given(stored_events)
def test_a_stored_event_written_and_read_is_its_own_wire_form(event: Stored) -> None:
    assert native(from_stored(event)) == write(event.envelope)


@settings(deadline=None)
@given(stored_events)
def test_a_stored_event_survives_binary_mode(event: Stored) -> None:
    written = from_stored(event)
    data = encode(written.pop("data"))
    headers = {
        f"ce-{name}": quote(value if isinstance(value, str) else encode(value).decode())
        for name, value in written.items()
    }

    tree = from_headers(headers, data)

    assert isinstance(tree, dict)
    assert native(tree) == write(event.envelope)


@settings(deadline=None)
@given(stored_events)
def test_what_is_written_is_a_valid_cloudevent(event: Stored) -> None:
    written = from_stored(event)

    assert {"specversion", "id", "source", "type"} <= written.keys()
    for name, value in written.items():
        assert re.fullmatch(r"[a-z0-9]+", name)
        if name == "data":
            continue
        assert isinstance(value, str | bool | int)
        if isinstance(value, str):
            assert value
            assert not re.search(r"[\x00-\x1f\x7f-\x9f]", value)
        else:
            assert -(2**31) <= value < 2**31
    assert parse_instant(str(written["time"]))
    assert decode(encode(written)) == written


attributes = st.sampled_from((*LEAST, "time", "expirytime", "metadata")) | names
attribute_values = json_values | st.sampled_from(
    ("1.0", "penstock", "{}", "{", '{"ext":1}', "2026-01-31T10:30:00Z", "application/json")
)


@settings(deadline=None)
@given(st.dictionaries(attributes, attribute_values))
def test_any_object_is_read_or_refused(tree: dict[str, Any]) -> None:
    for event in (tree, tree | {"specversion": "1.0"}, {**LEAST, **tree, "specversion": "1.0"}):
        found = to_native(event)
        assert isinstance(found, dict) or all(fault.detail for fault in found)
