"""A reducer folds what it is meant for; the built-in ones follow RFC 7386 to the letter."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.timetravel.support import said

from penstock.envelope.envelope import JsonObject, Stored
from penstock.store.timetravel.boundary import boundary
from penstock.store.timetravel.diff import same
from penstock.store.timetravel.reducer import LAST_WRITE_WINS, PER_TYPE, Reducer, merge, reducer

RFC_7386 = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(("target", "patch", "result"), RFC_7386)
def test_merging_gives_every_result_of_the_appendix_of_rfc_7386(
    target: Any, patch: Any, result: Any
) -> None:
    assert same(merge(target, patch), result)


@given(json_values, json_values)
def test_merging_changes_neither_of_its_arguments(target: Any, patch: Any) -> None:
    kept = copy.deepcopy((target, patch))

    merge(target, patch)

    assert same([*kept], [target, patch])


@given(json_values, json_values)
def test_merging_the_same_patch_twice_is_merging_it_once(target: Any, patch: Any) -> None:
    once = merge(target, patch)

    assert same(merge(once, patch), once)


def test_what_a_patch_does_not_mention_is_shared_and_not_copied() -> None:
    before: JsonObject = {"a": {"deep": [1]}, "b": {"x": 1}}

    after = merge(before, {"b": {"x": 2}})

    assert isinstance(after, dict)
    assert after["a"] is before["a"]


def test_the_last_write_to_a_field_wins_and_null_deletes_it() -> None:
    state: JsonObject = {}
    for payload in ({"title": "a", "open": True}, {"title": "b"}, {"open": None}):
        state = LAST_WRITE_WINS.reduce(state, said(1, payload))  # type: ignore[arg-type]

    assert state == {"title": "b"}


@pytest.mark.parametrize("payload", ["text", 5, 1.5, True, [1, 2]])
def test_a_payload_that_is_no_object_is_kept_as_value(payload: Any) -> None:
    state = LAST_WRITE_WINS.reduce({"title": "a"}, said(1, payload))

    assert state == {"title": "a", "value": payload}


def test_a_payload_of_null_deletes_the_value() -> None:
    assert LAST_WRITE_WINS.reduce({"value": 5, "a": 1}, said(1, None)) == {"a": 1}


def test_per_type_keeps_each_type_apart_under_its_name() -> None:
    state = PER_TYPE.reduce({}, said(1, {"key": "a", "n": 1}, type="metastore.record.created"))
    state = PER_TYPE.reduce(state, said(2, {"key": "b"}, type="asset.produced"))
    state = PER_TYPE.reduce(state, said(3, {"n": None}, type="metastore.record.created"))

    assert state == {"metastore.record.created": {"key": "a"}, "asset.produced": {"key": "b"}}


def test_a_function_becomes_a_reducer_with_a_name_a_version_and_what_it_is_for() -> None:
    @reducer("issue-count", version=3, tags=["issueId"], types=["ISSUE.**"])
    def count(state: JsonObject, event: Stored) -> JsonObject:
        return {"n": 1, "last": event.envelope.id}

    assert count.reference == "issue-count@3"
    assert count.fits(boundary("default", [("issueId", "42"), ("mode", "dev")]))
    assert not count.fits(boundary("default", [("mode", "dev")]))
    assert count.wants("ISSUE.COMMENT.ADDED")
    assert not count.wants("CODE.MERGED.SUCCESS")


def test_a_reducer_that_names_nothing_is_for_everything() -> None:
    assert LAST_WRITE_WINS.fits(boundary("default", correlation_id="req-1"))
    assert LAST_WRITE_WINS.wants("any.thing")


@pytest.mark.parametrize("name", ["", "Upper", "1st", "a b", "a@2", "x" * 65])
def test_a_reducer_needs_a_name_that_fits_into_a_url_and_a_key(name: str) -> None:
    with pytest.raises(ValueError, match="expected a name"):
        Reducer(name, lambda state, event: state)


def test_a_version_counts_from_one() -> None:
    with pytest.raises(ValueError, match="from 1 on"):
        Reducer("issue", lambda state, event: state, version=0)
