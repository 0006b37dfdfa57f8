"""A boundary says whose history is meant, and bad tags are refused with what is wrong."""

from __future__ import annotations

import pytest
from tests.store.support import stored

from penstock.base.errors import QueryInvalid
from penstock.store.timetravel.boundary import (
    Boundary,
    around,
    boundary,
    from_definition,
    read_boundary,
)


def read(*params: tuple[str, str]) -> Boundary:
    return read_boundary(params, tenant_id="acme")


def test_tags_by_comma_and_by_repetition_mean_the_same() -> None:
    once = read(("tags", "issueId:42,mode:dev"))

    assert once == read(("tags", "mode:dev"), ("tags", "issueId:42"), ("tags", "mode:dev"))
    assert once == read(("tag.issueId", "42"), ("tag.mode", "dev"))
    assert once.tags == (("issueId", "42"), ("mode", "dev"))


def test_only_the_first_colon_splits_a_tag() -> None:
    assert read(("tags", "url:http://x:80/")).tags == (("url", "http://x:80/"),)


def test_a_value_with_a_comma_has_a_form_of_its_own() -> None:
    assert read(("tag.list", "a,b")).tags == (("list", "a,b"),)


@pytest.mark.parametrize(
    "text", ["", "issueId", ":42", "issueId:", "issueId:42,", ",", "a:1,,b:2", " : ", "a b"]
)
def test_bad_tags_are_refused_by_name(text: str) -> None:
    with pytest.raises(QueryInvalid) as refused:
        read(("tags", text))

    assert refused.value.parameter == "tags"
    assert "key:value" in refused.value.detail


@pytest.mark.parametrize("text", ["a b:1", "x" * 65 + ":1", "a:\0", "a:\ud800", "a:" + "x" * 2000])
def test_a_tag_that_could_not_be_stored_is_refused(text: str) -> None:
    with pytest.raises(QueryInvalid):
        read(("tags", text))


def test_no_tag_and_no_correlation_is_refused() -> None:
    with pytest.raises(QueryInvalid, match="found neither"):
        read(("type", "a.b"))


@pytest.mark.parametrize("glob", ["a b", "x" * 300, "*a*b*c*d.x"])
def test_a_bad_type_is_refused(glob: str) -> None:
    with pytest.raises(QueryInvalid) as refused:
        read(("tags", "a:1"), ("type", glob))
    assert refused.value.parameter == "type"


def test_the_same_boundary_has_the_same_digest_whatever_the_order() -> None:
    one = boundary("t", [("a", "1"), ("b", "2")], ["x.y", "x.*"])
    other = boundary("t", [("b", "2"), ("a", "1"), ("a", "1")], ["x.*", "x.y"])

    assert one == other
    assert one.digest == other.digest


def test_boundaries_that_mean_other_events_have_other_digests() -> None:
    all_of_them = [
        boundary("t", [("a", "1")]),
        boundary("t", [("a", "1"), ("b", "2")]),
        boundary("t", [("a", "1,b:2")]),
        boundary("t", [("a", "1")], ["x.y"]),
        boundary("t", [("a", "1")], correlation_id="x.y"),
        boundary("t", correlation_id="a:1"),
        Boundary("t", event_id="a:1"),
    ]

    assert len({each.digest for each in all_of_them}) == len(all_of_them)


def test_a_definition_reads_back() -> None:
    for each in (
        boundary("t", [("a", "1"), ("ü", "x:y")], ["x.*"]),
        boundary("t", correlation_id="req"),
    ):
        assert from_definition("t", each.definition) == each


@pytest.mark.parametrize("definition", [None, {}, [], {"tags": []}, {"tags": 1, "types": []}])
def test_a_definition_of_another_making_is_none(definition: object) -> None:
    assert from_definition("t", definition) is None  # type: ignore[arg-type]


def test_an_event_stands_in_the_history_of_its_correlation_else_of_its_tags_else_alone() -> None:
    tagged = stored(1, tags={"b": "2", "a": "1"})
    related = stored(2, tags={"a": "1"}, correlation_id="req-1")

    assert around(related) == boundary("default", correlation_id="req-1")
    assert around(tagged) == boundary("default", [("a", "1"), ("b", "2")])
    assert around(stored(3)).covers(stored(3))
    assert not around(stored(3)).covers(stored(4))


def test_a_boundary_covers_events_with_all_its_tags_and_one_of_its_types() -> None:
    where = boundary("default", [("a", "1"), ("b", "2")], ["metastore.**", "x.y"])

    assert where.covers(stored(1, tags={"a": "1", "b": "2", "c": "3"}))
    assert not where.covers(stored(1, tags={"a": "1"}))
    assert not where.covers(stored(1, tags={"a": "1", "b": "2"}, type="asset.produced"))
    assert not where.covers(stored(1, tags={"a": "1", "b": "2"}, tenant_id="other"))
