"""A diff is exactly what it takes to get from one state to another, and back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.timetravel.support import said

from penstock.envelope.codec import canonical
from penstock.envelope.envelope import JsonObject
from penstock.store.timetravel.diff import (
    Causes,
    Change,
    apply,
    caused,
    changes_between,
    read_pointer,
    same,
    undo,
)

leaves = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.0, 1.0, "", "x", "1"]),
    st.sampled_from([Decimal("0.12345678901234567890"), Decimal("0.1234567890123456789")]),
)  # fmt: skip
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "", "a/b", "~", "~1", "ü"]), inner, max_size=4)
    ),
    max_leaves=12,
)
states = st.dictionaries(st.sampled_from(["a", "b", "c", "/", "~0"]), values, max_size=4)


@given(states, states)
def test_applying_a_diff_to_one_state_gives_the_other(before: Any, after: Any) -> None:
    changes = changes_between(before, after)

    assert same(apply(before, changes), after)
    assert same(undo(after, changes), before)
    assert canonical(apply(before, changes)) == canonical(after)


@given(states, states)
def test_a_diff_is_empty_only_between_equal_states(before: Any, after: Any) -> None:
    assert (changes_between(before, after) == []) == same(before, after)


@given(states)
def test_a_state_does_not_differ_from_itself(state: Any) -> None:
    assert changes_between(state, state) == []


@given(states, states)
def test_no_change_lies_within_another(before: Any, after: Any) -> None:
    paths = [change.path for change in changes_between(before, after)]

    assert paths == sorted(set(paths))
    assert not any(p != q and p == q[: len(p)] for p in paths for q in paths)


@given(states, states)
def test_a_pointer_reads_back_as_its_path(before: Any, after: Any) -> None:
    for change in changes_between(before, after):
        assert read_pointer(change.pointer) == change.path


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (0, False), (1, 1.0), ("1", 1), (None, False), ([], {}), (None, 0), ([1], [True])],
)
def test_values_that_python_takes_for_equal_but_json_does_not_differ(one: Any, other: Any) -> None:
    assert not same(one, other)
    assert len(changes_between({"v": one}, {"v": other})) == 1


def test_what_came_or_went_whole_is_one_change_and_an_array_is_one_value() -> None:
    before: JsonObject = {"gone": {"x": {"y": 1}}, "kept": {"n": 1, "m": 1}, "list": [1, 2]}
    after: JsonObject = {"kept": {"n": 2, "m": 1}, "list": [1], "new": {"z": {}}}

    assert [change.to_json() for change in changes_between(before, after)] == [
        {"pointer": "/gone", "kind": "removed", "before": {"x": {"y": 1}}, "after": None},
        {"pointer": "/kept/n", "kind": "changed", "before": 1, "after": 2},
        {"pointer": "/list", "kind": "changed", "before": [1, 2], "after": [1]},
        {"pointer": "/new", "kind": "added", "before": None, "after": {"z": {}}},
    ]


def test_null_and_nothing_are_told_apart_by_kind() -> None:
    assert changes_between({}, {"a": None})[0].kind == "added"
    assert changes_between({"a": None}, {})[0].kind == "removed"
    assert changes_between({"a": 1}, {"a": None})[0].kind == "changed"


def test_a_change_has_the_event_after_which_the_value_became_what_it_is() -> None:
    causes = Causes()
    first, second, third = said(1, {}), said(2, {}), said(3, {})
    causes.saw(first, [Change(("a",), "added", after={"x": 1}), Change(("b",), "added", after=1)])
    causes.saw(second, [Change(("a", "x"), "changed", 1, 2)])
    causes.saw(third, [Change(("c", "d", "e"), "added", after=0)])

    found = {
        c.change.pointer: c.event.position
        for c in caused({}, {"a": {"x": 2}, "b": 1, "c": {"d": {"e": 0}}}, causes)
    }

    assert found == {"/a": 2, "/b": 1, "/c": 3}


def test_a_value_inside_something_that_came_anew_has_that_event() -> None:
    causes = Causes()
    causes.saw(said(1, {}), [Change(("a", "x"), "changed", 1, 2)])
    causes.saw(said(2, {}), [Change(("a",), "removed", {"x": 2})])
    causes.saw(said(3, {}), [Change(("a",), "added", after={"x": 3})])

    (only,) = caused({"a": {"x": 1}}, {"a": {"x": 3}}, causes)

    assert only.event.position == 3
    assert only.to_json()["event"] == {
        "id": "evt-3", "type": "metastore.record.updated", "position": "3",
        "occurredAt": "2026-03-01T12:00:03.000Z",
    }  # fmt: skip
