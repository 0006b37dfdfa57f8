"""Parameters become a query that means what they say, or are refused by name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.store.support import NOON, stored

from penstock.base.errors import QueryInvalid
from penstock.envelope.envelope import Severity
from penstock.store.query import EventQuery, matches, read_query


def read(*params: tuple[str, str]) -> EventQuery:
    return read_query(params, tenant_id="acme")[0]


def test_no_parameters_ask_for_everything_of_the_tenant() -> None:
    query, limit, cursor = read_query([], tenant_id="acme")

    assert query == EventQuery("acme")
    assert (limit, cursor) == (100, None)


def test_the_example_of_the_seed_is_understood() -> None:
    query, limit, cursor = read_query(
        [
            ("type", "metastore.record.updated"),
            ("source", "metastore.api"),
            ("correlationId", "req-41ac2fd3"),
            ("from", "2024-12-01T00:00:00Z"),
            ("limit", "50"),
        ],
        tenant_id="acme",
    )

    assert query == EventQuery(
        "acme",
        types=("metastore.record.updated",),
        sources=("metastore.api",),
        correlation_id="req-41ac2fd3",
        occurred_from=datetime(2024, 12, 1, tzinfo=UTC),
    )
    assert (limit, cursor) == (50, None)


def test_types_and_severities_may_be_repeated_or_separated_by_commas() -> None:
    query = read(
        ("type", "a.b,c.*"), ("type", "d.**"), ("severity", "error, critical"), ("severity", "info")
    )

    assert query.types == ("a.b", "c.*", "d.**")
    assert query.severities == (Severity.ERROR, Severity.CRITICAL, Severity.INFO)


def test_a_source_with_a_comma_is_one_source() -> None:
    query = read(("source", "/sensors/a,b"), ("source", "metastore.api"))

    assert query.sources == ("/sensors/a,b", "metastore.api")


def test_tags_are_a_list_of_conditions() -> None:
    query = read(("tag.userId", "u1"), ("tag.mode", "a,b"), ("tag.userId", "u2"))

    assert query.tags == (("userId", "u1"), ("mode", "a,b"), ("userId", "u2"))


@pytest.mark.parametrize(
    ("said", "meant"), [("1", 1), ("200", 200), ("201", 200), ("0", 1), ("-5", 1), ("9" * 18, 200)]
)
def test_a_limit_is_brought_into_its_range(said: str, meant: int) -> None:
    assert read_query([("limit", said)], tenant_id="acme")[1] == meant


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("limit", "ten", "expected a whole number, found 'ten'"),
        ("limit", "1.5", "expected a whole number"),
        ("limit", "9" * 30, "expected a whole number"),
        ("limit", "", "limit: expected a value"),
        ("from", "yesterday", "expected RFC 3339"),
        ("from", "2024-12-01", "expected RFC 3339"),
        ("to", "2024-12-01T00:00:00", "expected RFC 3339"),
        ("to", "2024-13-01T00:00:00Z", "expected a time that exists"),
        ("severity", "loud", "expected one of critical, error, warning, info, debug"),
        ("severity", ",", "only commas"),
        ("type", "", "type: expected a value"),
        ("type", "a.b c", "expected a type or a glob"),
        ("type", "a.b'; DROP TABLE head; --", "expected a type or a glob"),
        ("type", "*a*a*a*.b", "wildcards beside other characters"),
        ("type", ".".join("abcdefghijklmnop"), "at most 12 segments"),
        ("correlationId", "", "expected a value"),
        ("correlationId", "a\0b", "without NUL"),
        ("source", "\ud800", "lone surrogates"),
        ("correlationId", "x" * 1001, "at most 1000 characters"),
        ("jsonPath", "$." + "x" * 500, "at most 500 characters"),
        ("jsonPath", "x", "starts at \\$"),
        ("tag.", "x", "expected tag.<key>"),
        ("tag.a:b", "x", "expected tag.<key>"),
        ("tag." + "k" * 65, "x", "expected tag.<key>"),
        ("tag.a\0", "x", "expected tag.<key>"),
        ("tag.a", "", "expected a value"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_by_name(name: str, value: str, says: str) -> None:
    with pytest.raises(QueryInvalid, match=says) as refusal:
        read((name, value))

    assert refusal.value.parameter == name
    assert refusal.value.faults[0].pointer == name


@pytest.mark.parametrize(
    ("said", "near"),
    [
        ("types", "type"),
        ("correlationid", "correlationId"),
        ("jsonpath", "jsonPath"),
        ("severities", "severity"),
        ("cursors", "cursor"),
        ("tag", "tag.<key>"),
    ],
)
def test_an_unknown_parameter_is_refused_with_the_nearest_name(said: str, near: str) -> None:
    with pytest.raises(QueryInvalid, match=f"did you mean {near}") as refusal:
        read((said, "x"))

    assert refusal.value.parameter == said


def test_a_name_that_the_caller_reads_itself_is_let_through() -> None:
    query, _, _ = read_query([("buckets", "7")], tenant_id="acme", also=("buckets",))

    assert query == EventQuery("acme")


@pytest.mark.parametrize("name", ["limit", "cursor", "from", "to", "correlationId", "jsonPath"])
def test_what_can_be_said_once_is_refused_twice(name: str) -> None:
    value = {"limit": "5", "jsonPath": "$.a"}.get(name, "2026-01-01T00:00:00Z")

    with pytest.raises(QueryInvalid, match="once, found it 2 times"):
        read((name, value), (name, value))


def test_more_values_than_anybody_needs_are_refused() -> None:
    with pytest.raises(QueryInvalid, match="at most 50 values of type"):
        read(("type", ",".join(f"a.b{n}" for n in range(51))))
    with pytest.raises(QueryInvalid, match="at most 50 values of source"):
        read(*[("source", f"s{n}") for n in range(51)])
    with pytest.raises(QueryInvalid, match="at most 50 tags"):
        read(*[(f"tag.k{n}", "v") for n in range(51)])


def test_a_range_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(QueryInvalid, match="no later than"):
        read(("from", "2026-01-02T00:00:00Z"), ("to", "2026-01-01T00:00:00Z"))


def test_both_ends_of_a_range_hold_the_whole_millisecond_that_is_shown() -> None:
    event = stored(1, occurred_at=NOON + timedelta(microseconds=123_456), tenant_id="acme")
    shown = "2026-03-01T12:00:00.123Z"

    assert matches(read(("from", shown), ("to", shown)), event)
    assert not matches(read(("to", "2026-03-01T12:00:00.122Z")), event)
    assert not matches(read(("from", "2026-03-01T12:00:00.124Z")), event)


def test_the_digest_ignores_the_order_of_values_and_nothing_else() -> None:
    base: dict[str, Any] = {"types": ("a.b", "c.d"), "tags": (("k", "v"), ("l", "w"))}
    other: dict[str, Any] = {"types": ("c.d", "a.b"), "tags": (("l", "w"), ("k", "v"))}

    assert EventQuery("acme", **base).digest == EventQuery("acme", **other).digest
    digests = {
        EventQuery("acme", **changed).digest
        for changed in (
            base,
            base | {"types": ("a.b",)},
            base | {"sources": ("a.b",)},
            base | {"correlation_id": "a.b"},
            base | {"json_path": "$.a"},
            base | {"severities": (Severity.INFO,)},
            base | {"occurred_from": NOON},
            base | {"occurred_to": NOON},
            base | {"tags": (("k", "w"), ("l", "v"))},
        )
    }
    assert len(digests) == 9


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, True),
        ({"types": ("metastore.record.updated",)}, True),
        ({"types": ("metastore.record.*",)}, True),
        ({"types": ("metastore.**",)}, True),
        ({"types": ("metastore.rec*.updated",)}, True),
        ({"types": ("metastore.*",)}, False),
        ({"types": ("x.y", "metastore.record.updated")}, True),
        ({"types": ("metastore.record",)}, False),
        ({"sources": ("other", "metastore.api")}, True),
        ({"sources": ("metastore",)}, False),
        ({"correlation_id": "req-1"}, True),
        ({"correlation_id": "REQ-1"}, False),
        ({"tags": (("userId", "u1"),)}, True),
        ({"tags": (("userId", "u1"), ("mode", "auto"))}, True),
        ({"tags": (("userId", "u1"), ("mode", "manual"))}, False),
        ({"tags": (("missing", "u1"),)}, False),
        ({"severities": (Severity.ERROR, Severity.WARNING)}, True),
        ({"severities": (Severity.INFO,)}, False),
        ({"occurred_from": NOON + timedelta(seconds=1)}, True),
        ({"occurred_from": NOON + timedelta(seconds=1, microseconds=1)}, False),
        ({"occurred_to": NOON + timedelta(seconds=1)}, True),
        ({"occurred_to": NOON}, False),
    ],
)
def test_an_event_matches_when_every_filter_does(asked: dict[str, Any], expected: bool) -> None:
    event = stored(
        1,
        correlation_id="req-1",
        tags={"userId": "u1", "mode": "auto"},
        severity=Severity.ERROR,
        tenant_id="acme",
    )

    assert matches(EventQuery("acme", **asked), event) is expected
    assert not matches(EventQuery("other", **asked), event)
