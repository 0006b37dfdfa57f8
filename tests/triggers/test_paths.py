"""Paths that can be followed, and those that are refused before they cost anything."""

from __future__ import annotations

import time
from typing import Any

import pytest

from penstock.triggers.paths import PathInvalid, compile_path


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("$", ()),
        ("$.a.b", ("a", "b")),
        ("$['a b'][0]", ("a b", 0)),
        ("$.a[-1]", ("a", -1)),
        ("$.a[*]", None),
        ("$..a", None),
        ("$['a','b']", None),
    ],
)
def test_names_and_indices_are_followed_directly(path: str, steps: Any) -> None:
    assert compile_path(path).steps == steps


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("payload.x", "begins with $"),
        ("$.a[", "unexpected end"),
        ("$.a b", "RFC 9535"),
        ("$ | $.b", "RFC 9535"),
        ("$.a[99999999999999999999]", "out of range"),
        ("$..a..b", "`..` once"),
        ("$[*,*]", "alone in its brackets"),
        ("$" + "['a','b','c']" * 5, "100 choices"),
        ("$.a[?@..b]", "inside a filter"),
        ("$.a[?$..b]", "inside a filter"),
        ("$.a[?$.b[*]]", "names and indices only"),
        ("$.a[?@.b[?@.c]]", "no filter inside"),
        ("$.a[?search(@.b, @.c)]", "literal pattern"),
        ("$.a[?match(@.b, '(?=x)')]", "linear time"),
        ("$.a[?nosuch(@.b)]", "RFC 9535"),
        ("$.a[?" + "(" * 40 + "@.b" + ")" * 40 + "]", "parentheses"),
    ],
)
def test_a_path_that_cannot_be_followed_cheaply_is_refused(path: str, sentence: str) -> None:
    with pytest.raises(PathInvalid, match=sentence.replace("$", r"\$").replace("..", r"\.\.")):
        compile_path(path)


def test_functions_of_filters_run_on_re2() -> None:
    shown: Any = {"items": [{"s": "a" * 40}, {"s": "b"}, {"s": 3}]}

    assert compile_path("$.items[?search(@.s, '(a+)+$')]").find(shown) == [{"s": "a" * 40}]
    assert compile_path("$.items[?match(@.s, 'b|c')]").find(shown) == [{"s": "b"}]
    assert compile_path("$.items[?length(@.s) > 1]").find(shown) == [{"s": "a" * 40}]


def test_the_largest_event_is_walked_over_once() -> None:
    shown: Any = {"items": [{"n": n, "tags": ["x"]} for n in range(6_000)]}
    path = compile_path("$..items[?@.n > 5998].tags[*]")
    begun = time.thread_time()

    assert path.find(shown) == ["x"]
    assert time.thread_time() - begun < 2


@pytest.mark.parametrize(
    ("path", "reads"),
    [
        ("$.payload.a", [("payload", "a")]),
        ("$.payload.a[0].b", [("payload", "a", "*", "b")]),
        ("$..a", [("**", "a")]),
        ("$.a[?@.b > $.c.d]", [("a", "*", "b"), ("c", "d"), ("a", "*")]),
    ],
)
def test_a_path_says_which_places_it_looks_at(path: str, reads: Any) -> None:
    assert list(compile_path(path).reads) == reads
