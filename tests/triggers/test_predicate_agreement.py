"""The fast test, its working and JSONPath itself never disagree."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonpath import JSONPathEnvironment
from tests.triggers.definitions import document, predicates

from penstock.triggers.paths import compile_path

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.5, 1.0]),
    st.sampled_from("abAB1"),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
STEPS = st.lists(
    st.sampled_from(
        [".a", ".b", ".c", "[0]", "[-1]", "[1]", "[*]", "['a','b']", "[?@.a]", "[0:2]"]
    ),
    max_size=3,
)
PATHS = st.builds("".join, STEPS).map(lambda rest: f"$.payload{rest}")
FLAGGED = st.sampled_from([{}, {"orMissing": True}])
LEAVES = st.one_of(
    st.fixed_dictionaries({"path": PATHS, "operator": st.just("exists")}),
    st.builds(
        lambda path, op, value, more: {"path": path, "operator": op, "value": value, **more},
        PATHS,
        st.sampled_from(["equals", "notEquals", "contains"]),
        VALUES,
        st.sampled_from([{}, {"orMissing": True}, {"caseSensitive": False}]),
    ),
    st.builds(
        lambda path, op, values, more: {"path": path, "operator": op, "values": values, **more},
        PATHS,
        st.sampled_from(["in", "notIn"]),
        st.lists(SCALARS, min_size=1, max_size=3),
        FLAGGED,
    ),
    st.builds(
        lambda path, op, value, more: {"path": path, "operator": op, "value": value, **more},
        PATHS,
        st.sampled_from(["gt", "gte", "lt", "lte"]),
        st.integers(-2, 2),
        FLAGGED,
    ),
    st.builds(lambda path: {"path": path, "operator": "regex", "value": "^[aB]"}, PATHS),
)
CLAUSES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda all_: {"all": all_}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda any_: {"any": any_}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda not_: {"not": not_}, inner),
    ),
    max_leaves=4,
).filter(lambda clause: depth(clause) <= 5)


def depth(clause: Any) -> int:
    inner = clause.get("all") or clause.get("any") or ([clause["not"]] if "not" in clause else [])
    return 1 + max((depth(each) for each in inner), default=0)


@settings(max_examples=400, deadline=None)
@given(payload=VALUES, clauses=st.lists(CLAUSES, max_size=3))
def test_the_test_and_its_working_agree(payload: Any, clauses: list[Any]) -> None:
    asked, shown = predicates(*clauses), document(payload)

    assert asked.test(shown) is asked.trace(shown).outcome


@settings(max_examples=200, deadline=None)
@given(payload=VALUES, path=PATHS)
def test_a_direct_look_up_finds_what_jsonpath_finds(payload: Any, path: str) -> None:
    shown = document(payload)

    assert compile_path(path).find(shown) == JSONPathEnvironment(strict=True).findall(path, shown)


@settings(max_examples=100, deadline=None)
@given(payload=VALUES, clause=CLAUSES)
def test_not_turns_a_verdict_around(payload: Any, clause: Any) -> None:
    if depth(clause) < 5:
        shown = document(payload)

        assert predicates({"not": clause}).test(shown) is not predicates(clause).test(shown)
