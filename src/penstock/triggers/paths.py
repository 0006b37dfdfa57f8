"""Read JSONPath (RFC 9535), and find what a path points to at a cost that is known beforehand.

    $.payload.order.items[0].sku    names and indices: a direct look-up, no JSONPath at all
    $..items[?@.price > 10]         everything else: python-jsonpath, compiled once

An event is as large as its publisher likes, so a path may walk over it once, never once for each of
its values: one descendant segment at most, one wildcard, slice or filter in a segment, and inside a
filter only paths that stay below the value they test. The functions match and search take a literal
pattern and run on RE2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

from jsonpath import JSONPath, JSONPathEnvironment, JSONPathError
from jsonpath.filter import FilterQuery, FunctionExtension, RootFilterQuery, StringLiteral, walk
from jsonpath.function_extensions import ExpressionType, FilterFunction
from jsonpath.segments import JSONPathRecursiveDescentSegment, JSONPathSegment
from jsonpath.selectors import Filter, IndexSelector, NameSelector

from penstock.envelope.envelope import JsonValue
from penstock.triggers.regexes import RegexInvalid, compile_regex

CHOICES_MAX: Final = 100  # names and indices side by side, multiplied over the segments
_BRACKETS_MAX: Final = 20  # of filters and parentheses inside each other
_OBJECT: Final[frozenset[type]] = frozenset({dict})
_ARRAY: Final[frozenset[type]] = frozenset({list})
_PATTERNED: Final = frozenset({"match", "search"})

Step: TypeAlias = "str | int"
Trail: TypeAlias = "tuple[str, ...]"  # names; `*` any one step, `**` any number of them


class PathInvalid(ValueError):
    """A path that is not RFC 9535, or that could cost more than one walk over the event."""


@dataclass(frozen=True, slots=True)
class Path:
    """A path that can be followed."""

    text: str
    steps: tuple[Step, ...] | None  # when it is nothing but names and indices
    reads: tuple[Trail, ...]  # every place it looks at, in filters too
    find: Callable[[JsonValue], list[Any]]  # everything it points to, in document order


class _Regex(FilterFunction):
    arg_types = [ExpressionType.VALUE, ExpressionType.VALUE]  # noqa: RUF012 (the base's own form)
    return_type = ExpressionType.LOGICAL

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole

    def __call__(self, value: object, pattern: object) -> bool:
        if not isinstance(value, str) or not isinstance(pattern, str):
            return False
        return compile_regex(pattern, whole=self._whole)(value)


class _Environment(JSONPathEnvironment):
    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        self.function_extensions["match"] = _Regex(whole=True)
        self.function_extensions["search"] = _Regex(whole=False)


_ENVIRONMENT: Final = _Environment(strict=True)


@lru_cache(2048)
def compile_path(text: str) -> Path:
    """The path that a text says; PathInvalid when it cannot be followed."""
    if not text.startswith("$"):
        raise PathInvalid(f"expected a path that begins with $, found {text[:80]!r}")
    if max(text.count("("), text.count("[?")) > _BRACKETS_MAX:
        raise PathInvalid(f"expected at most {_BRACKETS_MAX} parentheses or filters, found more")
    try:
        compiled = _ENVIRONMENT.compile(text)
    except (JSONPathError, ValueError, RecursionError) as error:
        raise PathInvalid(f"expected a JSONPath (RFC 9535): {_first_line(error)}") from None
    if not isinstance(compiled, JSONPath):
        raise PathInvalid("expected one path, found several joined")
    _check_cost(compiled.segments)
    steps = _steps(compiled.segments)
    reads = tuple(_trails(compiled.segments))
    if steps is not None:
        return Path(text, steps, reads, _follow(steps))
    return Path(text, None, reads, lambda document: list(compiled.findall(cast("Any", document))))


def _steps(segments: tuple[JSONPathSegment, ...]) -> tuple[Step, ...] | None:
    steps: list[Step] = []
    for segment in segments:
        if isinstance(segment, JSONPathRecursiveDescentSegment) or len(segment.selectors) != 1:
            return None
        (selector,) = segment.selectors
        if isinstance(selector, NameSelector):
            steps.append(selector.name)
        elif isinstance(selector, IndexSelector):
            steps.append(selector.index)
        else:
            return None
    return tuple(steps)


def _follow(steps: tuple[Step, ...]) -> Callable[[JsonValue], list[Any]]:
    def find(document: JsonValue) -> list[Any]:
        value: Any = document
        for step in steps:
            # An index is for arrays and a name for objects; a text has no parts.
            if type(value) not in (_OBJECT if isinstance(step, str) else _ARRAY):
                return []
            try:
                value = value[step]
            except (KeyError, IndexError):
                return []
        return [value]

    return find


def _check_cost(segments: tuple[JSONPathSegment, ...]) -> None:
    if sum(isinstance(s, JSONPathRecursiveDescentSegment) for s in segments) > 1:
        raise PathInvalid("expected `..` once at most, found it again")
    choices = math.prod(len(segment.selectors) for segment in segments)
    if choices > CHOICES_MAX:
        raise PathInvalid(f"expected at most {CHOICES_MAX} choices in brackets, found {choices}")
    for segment in segments:
        for selector in segment.selectors:
            plain = isinstance(selector, NameSelector | IndexSelector)
            if not plain and len(segment.selectors) > 1:
                raise PathInvalid(
                    "expected a wildcard, slice or filter alone in its brackets, found more"
                )
            if isinstance(selector, Filter):
                _check_filter(selector)


def _check_filter(selector: Filter) -> None:
    for part in walk(selector.expression):
        if isinstance(part, FunctionExtension) and part.name in _PATTERNED:
            _check_pattern(part)
        elif isinstance(part, FilterQuery):
            _check_query(part)


def _check_pattern(call: FunctionExtension) -> None:
    pattern = call.args[1]
    if not isinstance(pattern, StringLiteral):
        raise PathInvalid(f"expected a literal pattern in {call.name}(), found another expression")
    try:
        compile_regex(pattern.value, whole=call.name == "match")
    except RegexInvalid as error:
        raise PathInvalid(f"{call.name}(): {error}") from None


def _check_query(query: FilterQuery) -> None:
    segments = query.path.segments
    for segment in segments:
        if isinstance(segment, JSONPathRecursiveDescentSegment) or len(segment.selectors) > 1:
            raise PathInvalid("expected a path without `..` and choices inside a filter")
    if any(isinstance(s, Filter) for s in _selectors(segments)):
        raise PathInvalid("expected no filter inside a filter")
    if isinstance(query, RootFilterQuery) and _steps(segments) is None:
        raise PathInvalid("expected names and indices only after $ inside a filter")


def _trails(segments: tuple[JSONPathSegment, ...], start: Trail = ()) -> Iterator[Trail]:
    trail = start
    for segment in segments:
        deep = ("**",) if isinstance(segment, JSONPathRecursiveDescentSegment) else ()
        (first, *more) = segment.selectors
        name = first.name if isinstance(first, NameSelector) and not more else "*"
        trail = (*trail, *deep, name)
        for selector in segment.selectors:
            if isinstance(selector, Filter):
                yield from _filter_trails(selector, trail)
    yield trail


def _filter_trails(selector: Filter, trail: Trail) -> Iterator[Trail]:
    for part in walk(selector.expression):
        if isinstance(part, FilterQuery):
            start = () if isinstance(part, RootFilterQuery) else trail
            yield from _trails(part.path.segments, start)


def _selectors(segments: tuple[JSONPathSegment, ...]) -> Iterator[object]:
    return (selector for segment in segments for selector in segment.selectors)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]
