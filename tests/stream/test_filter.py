"""A live filter has the names of GET /admin/events, and refuses what cannot be done live."""

from __future__ import annotations

import pytest

from penstock.base.errors import QueryInvalid
from penstock.envelope.envelope import Severity
from penstock.store.query import EventQuery
from penstock.stream.filter import pairs_of, read_after, read_filter


def test_no_parameters_let_everything_of_the_tenant_through() -> None:
    assert read_filter([], "acme") == EventQuery(tenant_id="acme")


def test_every_parameter_is_understood() -> None:
    query = read_filter(
        [
            ("type", "asset.produced,metastore.record.*"),
            ("source", "metastore.api"),
            ("severity", "error"),
            ("severity", "critical"),
            ("correlationId", "req-1"),
            ("tag.issueId", "42"),
        ],
        "acme",
    )

    assert query.types == ("asset.produced", "metastore.record.*")
    assert query.sources == ("metastore.api",)
    assert query.severities == (Severity.ERROR, Severity.CRITICAL)
    assert query.correlation_id == "req-1"
    assert query.tags == (("issueId", "42"),)
    assert query.json_path is None


def test_json_path_is_refused_with_a_remedy() -> None:
    with pytest.raises(QueryInvalid, match="without jsonPath") as caught:
        read_filter([("jsonPath", "$.a")], "acme")

    assert caught.value.parameter == "jsonPath"
    assert "GET /admin/events" in caught.value.remedy


@pytest.mark.parametrize("name", ["limit", "cursor", "colour", "tag.", "after"])
def test_a_parameter_that_makes_no_sense_live_is_refused(name: str) -> None:
    with pytest.raises(QueryInvalid) as caught:
        read_filter([(name, "1")], "acme")

    assert caught.value.parameter == name


@pytest.mark.parametrize(("text", "position"), [(None, None), ("", None), ("0", 0), ("42", 42)])
def test_a_position_is_decimal_digits(text: str | None, position: int | None) -> None:
    assert read_after(text) == position


@pytest.mark.parametrize("text", ["-1", "1.5", "abc", "٣", "9" * 19, " 1", "0x10"])
def test_anything_else_is_no_position(text: str) -> None:
    with pytest.raises(QueryInvalid) as caught:
        read_after(text)

    assert caught.value.parameter == "after"


def test_the_data_of_a_filter_frame_reads_like_parameters() -> None:
    data = {"type": ["a.b", "c.d"], "source": "s", "tags": {"issueId": "42"}, "tag.userId": "u"}

    assert pairs_of(data) == [  # type: ignore[arg-type]
        ("type", "a.b"),
        ("type", "c.d"),
        ("source", "s"),
        ("tag.issueId", "42"),
        ("tag.userId", "u"),
    ]


@pytest.mark.parametrize(
    "data", [None, [], "a.b", {"type": 1}, {"type": [None]}, {"tags": {"a": 1}}]
)
def test_filter_data_of_another_shape_is_refused(data: object) -> None:
    with pytest.raises(QueryInvalid):
        pairs_of(data)  # type: ignore[arg-type]
