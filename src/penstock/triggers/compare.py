"""Compare one JSON value with an operand: what each operator means for a single finding.

Values are equal when JSON says so: 1 and 1.0 are, 1 and true are not, the order of keys does not
matter. Texts are compared exactly unless `caseSensitive: false` relaxes it for texts themselves;
texts inside arrays and objects are always exact.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any, Final, TypeAlias

from penstock.triggers.clause import LISTED, NUMERIC, Leaf, Operator
from penstock.triggers.regexes import compile_regex

Match: TypeAlias = Callable[[Any], bool]

_NUMBERS: Final = frozenset({int, float, Decimal})
_NUMERAL: Final = re.compile(
    r"\s{0,8}(-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?)\s{0,8}"
)
_COMPARE: Final[dict[Operator, Callable[[Any, Any], bool]]] = {
    Operator.GT: operator.gt,
    Operator.GTE: operator.ge,
    Operator.LT: operator.lt,
    Operator.LTE: operator.le,
}


def matcher(leaf: Leaf) -> Match:
    """The test of one value; for a negative operator, of the value that it forbids."""
    op, folds = leaf.operator, leaf.case_sensitive is False
    if op is Operator.EXISTS:
        return _always
    if op in LISTED:
        return _one_of(leaf.values or (), folds=folds)
    if op in NUMERIC:
        return _numeric(_COMPARE[op], leaf.value)
    if op is Operator.CONTAINS:
        return _containing(leaf.value, folds=folds)
    if op is Operator.REGEX:
        return _regex(leaf)
    return equal_to(leaf.value, folds=folds)


def equal_to(operand: Any, *, folds: bool = False) -> Match:
    """The test whether a value is the operand."""
    if isinstance(operand, str):
        if folds:
            folded = operand.casefold()
            return lambda value: type(value) is str and value.casefold() == folded
        return partial(operator.eq, operand)
    if operand is None or isinstance(operand, bool):
        return partial(operator.is_, operand)
    if type(operand) in _NUMBERS:
        return lambda value: value == operand and type(value) in _NUMBERS
    return partial(is_equal, operand)


def is_equal(a: Any, b: Any) -> bool:
    """Whether two JSON values are the same; deep, and blind to the order of keys."""
    if isinstance(a, dict):
        return (
            isinstance(b, dict)
            and a.keys() == b.keys()
            and all(is_equal(value, b[key]) for key, value in a.items())
        )
    if isinstance(a, list | tuple):
        return (
            isinstance(b, list | tuple)
            and len(a) == len(b)
            and all(is_equal(x, y) for x, y in zip(a, b, strict=True))
        )
    if type(a) in _NUMBERS:
        return type(b) in _NUMBERS and bool(a == b)
    return type(a) is type(b) and bool(a == b)


def numbers_in(value: Any) -> Iterator[Any]:
    """The numbers of a value: itself, a text that spells one, or those of an array."""
    if type(value) in _NUMBERS:
        yield value
    elif type(value) is str:
        if (spelled := _NUMERAL.fullmatch(value)) is not None:
            yield Decimal(spelled[1])
    elif type(value) is list:
        for item in value:
            yield from numbers_in(item)


def _one_of(operands: tuple[Any, ...], *, folds: bool) -> Match:
    if all(isinstance(operand, str) for operand in operands):
        if folds:
            folded = frozenset(operand.casefold() for operand in operands)
            return lambda value: type(value) is str and value.casefold() in folded
        known = frozenset(operands)
        return lambda value: type(value) is str and value in known
    matches = [equal_to(operand, folds=folds) for operand in operands]
    return lambda value: any(match(value) for match in matches)


def _numeric(compare: Callable[[Any, Any], bool], operand: Any) -> Match:
    def match(value: Any) -> bool:
        if type(value) is int or type(value) is float:
            return compare(value, operand)
        return any(compare(number, operand) for number in numbers_in(value))

    return match


def _containing(operand: Any, *, folds: bool) -> Match:
    equal = equal_to(operand, folds=folds)
    part = operand.casefold() if folds and isinstance(operand, str) else operand

    def match(value: Any) -> bool:
        if type(value) is str:
            return isinstance(part, str) and part in (value.casefold() if folds else value)
        if type(value) is list:
            return any(equal(item) or match(item) for item in value)
        return False

    return match


def _regex(leaf: Leaf) -> Match:
    flags = (leaf.flags or "") + ("i" if leaf.case_sensitive is False else "")
    test = compile_regex(leaf.value, "".join(sorted(set(flags))))
    return lambda value: type(value) is str and test(value)


def _always(_: object) -> bool:
    return True
