"""Judge an event by what a trigger asks of it, fast; and show the working, when somebody asks.

    clauses ── compile_predicates ──▶ Predicates ── test ───▶ yes or no
                                                 └─ trace ──▶ the same, with every value looked at

`$` is the whole event as the API shows it: `document_of`. `test` stops at the first answer and
`trace` looks at everything; they never disagree: tests/triggers/test_predicate_agreement.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from penstock.base.clock import format_instant
from penstock.envelope.check import write
from penstock.envelope.envelope import JsonObject, Stored
from penstock.triggers.clause import NEGATIVE, AllOf, Clause, Leaf, Not, Operator
from penstock.triggers.compare import Match, matcher
from penstock.triggers.paths import Path, compile_path
from penstock.triggers.trace import Trace, leaf_trace

Test: TypeAlias = Callable[[JsonObject], bool]
_Tracer: TypeAlias = Callable[[JsonObject], Trace]

_ABSENT: Final = (KeyError, TypeError, IndexError)


class Predicates:
    """What a trigger asks of an event; all of it must hold."""

    __slots__ = ("_tracers", "test")

    def __init__(self, clauses: Sequence[Clause]) -> None:
        compiled = [_compile(clause) for clause in clauses]
        self.test: Test = _all([test for test, _ in compiled])
        self._tracers = [tracer for _, tracer in compiled]

    def trace(self, document: JsonObject) -> Trace:
        """The same verdict with its working."""
        inner = tuple(tracer(document) for tracer in self._tracers)
        return Trace("all", all(each.outcome for each in inner), inner=inner)


def compile_predicates(clauses: Sequence[Clause]) -> Predicates:
    """The test that clauses mean; PathInvalid or RegexInvalid when one cannot be compiled."""
    return Predicates(clauses)


def document_of(stored: Stored) -> JsonObject:
    """The event as predicates and templates see it: its wire form and what the store adds."""
    document = write(stored.envelope)
    document["position"] = str(stored.position)
    document["receivedAt"] = format_instant(stored.received_at)
    document["severity"] = stored.severity.value
    return document


def _compile(clause: Clause) -> tuple[Test, _Tracer]:
    if isinstance(clause, Leaf):
        return _compile_leaf(clause)
    if isinstance(clause, Not):
        return _compile_not(clause)
    is_all = isinstance(clause, AllOf)
    parts = [_compile(inner) for inner in (clause.all if isinstance(clause, AllOf) else clause.any)]
    tests, tracers = [test for test, _ in parts], [tracer for _, tracer in parts]
    decide: Callable[[Any], bool] = all if is_all else any
    word = "all" if is_all else "any"

    def trace(document: JsonObject) -> Trace:
        inner = tuple(tracer(document) for tracer in tracers)
        return Trace(word, decide(each.outcome for each in inner), inner=inner)

    return (_all(tests) if is_all else _any(tests)), trace


def _compile_not(clause: Not) -> tuple[Test, _Tracer]:
    test, tracer = _compile(clause.not_)

    def trace(document: JsonObject) -> Trace:
        inner = tracer(document)
        return Trace("not", not inner.outcome, inner=(inner,))

    return (lambda document: not test(document)), trace


def _compile_leaf(leaf: Leaf) -> tuple[Test, _Tracer]:
    path, match = compile_path(leaf.path), matcher(leaf)
    verdict = _verdict(leaf, match)

    def trace(document: JsonObject) -> Trace:
        found = path.find(document)
        return leaf_trace(leaf, found, outcome=verdict(found))

    return _direct(leaf, path, match) or (lambda document: verdict(path.find(document))), trace


def _verdict(leaf: Leaf, match: Match) -> Callable[[list[Any]], bool]:
    """What several findings, or none, come to."""
    missing, negative = leaf.or_missing, leaf.operator in NEGATIVE

    def verdict(found: list[Any]) -> bool:
        if not found:
            return missing
        return any(map(match, found)) is not negative

    return verdict


def _direct(leaf: Leaf, path: Path, match: Match) -> Test | None:
    """The test without a list in between, for paths of names: nearly all there are."""
    steps, missing = path.steps, leaf.or_missing
    if leaf.operator in NEGATIVE or steps is None or not steps:
        return None
    if not all(isinstance(step, str) for step in steps):
        return None
    if leaf.operator is Operator.EXISTS:
        match = _yes
    if len(steps) == 1:
        return _one(match, steps[0], missing=missing)
    if len(steps) == 2:
        return _two(match, *steps, missing=missing)
    return _deep(match, steps[0], steps[1], steps[2:], missing=missing)


# A name on anything but an object raises, and so is absent like a name that an object lacks.
def _one(match: Match, a: Any, *, missing: bool) -> Test:
    def test(document: Any) -> bool:
        try:
            value = document[a]
        except _ABSENT:
            return missing
        return match(value)

    return test


def _two(match: Match, a: Any, b: Any, *, missing: bool) -> Test:
    def test(document: Any) -> bool:
        try:
            value = document[a][b]
        except _ABSENT:
            return missing
        return match(value)

    return test


def _deep(match: Match, a: Any, b: Any, rest: Any, *, missing: bool) -> Test:
    def test(document: Any) -> bool:
        try:
            value = document[a][b]
            for step in rest:
                value = value[step]
        except _ABSENT:
            return missing
        return match(value)

    return test


def _yes(_: object) -> bool:
    return True


def _all(tests: Sequence[Test]) -> Test:
    if not tests:
        return _yes
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        a, b = tests
        return lambda document: a(document) and b(document)

    def test(document: JsonObject) -> bool:
        for each in tests:  # noqa: SIM110 (all() with a generator takes twice as long)
            if not each(document):
                return False
        return True

    return test


def _any(tests: Sequence[Test]) -> Test:
    def test(document: JsonObject) -> bool:
        for each in tests:  # noqa: SIM110 (as above)
            if each(document):
                return True
        return False

    return test
