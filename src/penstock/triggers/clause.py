"""Hold what a trigger asks of an event: one comparison, or several joined by all, any and not.

    {"path": "$.payload.tier", "operator": "equals", "value": "gold"}
    {"any": [{…}, {"not": {…}}]}

The shapes only; `predicate.compile_predicates` makes tests of them. What an operator needs beside
it is checked here, so that a clause which exists can be understood: `operator_fault`.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    Tag,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.envelope.fields import kind

PATH_CHARS_MAX: Final = 512
REGEX_CHARS_MAX: Final = 512
VALUES_MAX: Final = 100
LEAVES_MAX: Final = 25
DEPTH_MAX: Final = 5
FLAGS: Final = "gimsuy"


class Operator(StrEnum):
    """How a value is compared."""

    EXISTS = "exists"
    EQUALS = "equals"
    NOT_EQUALS = "notEquals"
    IN = "in"
    NOT_IN = "notIn"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    CONTAINS = "contains"
    REGEX = "regex"


NUMERIC: Final = frozenset({Operator.GT, Operator.GTE, Operator.LT, Operator.LTE})
LISTED: Final = frozenset({Operator.IN, Operator.NOT_IN})
NEGATIVE: Final = frozenset({Operator.NOT_EQUALS, Operator.NOT_IN})
_CASED: Final = frozenset(
    {Operator.EQUALS, Operator.NOT_EQUALS, Operator.CONTAINS, Operator.REGEX} | LISTED
)


class Edge(BaseModel):
    """What comes from a person: camelCase, nothing unknown, never changed."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )


class Leaf(Edge):
    """One comparison of what a path finds."""

    type: Literal["jsonPath"] = "jsonPath"
    path: Annotated[str, Field(min_length=1, max_length=PATH_CHARS_MAX)]
    operator: Operator
    value: Any = None  # null is a value: `model_fields_set` says whether it was given
    values: Annotated[tuple[Any, ...], Field(max_length=VALUES_MAX)] | None = None
    case_sensitive: StrictBool | None = None
    flags: Annotated[str, Field(max_length=20)] | None = None
    or_missing: StrictBool = False

    @model_validator(mode="after")
    def _fits(self) -> Leaf:
        checks = (
            (operator_fault, self._operand), (_case_fault, "caseSensitive"),
            (_missing_fault, "orMissing"), (_flags_fault, "flags"),
        )  # fmt: skip
        for check, field in checks:
            fault = check(self)
            if fault is not None:
                raise PydanticCustomError("clause", "{fault}", {"fault": fault, "field": field})
        return self

    @property
    def _operand(self) -> str:
        """The field that the operand was given in; empty when there is none."""
        return "value" if self.has_value else "values" if self.values is not None else ""

    @property
    def has_value(self) -> bool:
        """Whether a value was given, be it null."""
        return "value" in self.model_fields_set

    def wire(self) -> JsonObject:
        """The comparison as it could be written again."""
        said: JsonObject = {"type": self.type, "path": self.path, "operator": str(self.operator)}
        if self.has_value:
            said["value"] = self.value
        optional: JsonObject = {
            "values": None if self.values is None else list(self.values),
            "caseSensitive": self.case_sensitive,
            "flags": self.flags,
            "orMissing": self.or_missing or None,
        }
        return said | {name: value for name, value in optional.items() if value is not None}


class AllOf(Edge):
    """All of them hold."""

    all: Annotated[tuple[Clause, ...], Field(min_length=1, max_length=LEAVES_MAX)]

    def wire(self) -> JsonObject:
        """The group as it could be written again."""
        return {"all": [clause.wire() for clause in self.all]}


class AnyOf(Edge):
    """At least one of them holds."""

    any: Annotated[tuple[Clause, ...], Field(min_length=1, max_length=LEAVES_MAX)]

    def wire(self) -> JsonObject:
        """The group as it could be written again."""
        return {"any": [clause.wire() for clause in self.any]}


class Not(Edge):
    """It does not hold."""

    not_: Annotated[Clause, Field(alias="not")]

    def wire(self) -> JsonObject:
        """The negation as it could be written again."""
        return {"not": self.not_.wire()}


def _which(said: object) -> str:
    if isinstance(said, Leaf | AllOf | AnyOf | Not):
        return {Leaf: "leaf", AllOf: "all", AnyOf: "any", Not: "not"}[type(said)]
    if isinstance(said, dict):
        return next((word for word in ("all", "any", "not") if word in said), "leaf")
    return "leaf"


Clause: TypeAlias = Annotated[
    Annotated[Leaf, Tag("leaf")]
    | Annotated[AllOf, Tag("all")]
    | Annotated[AnyOf, Tag("any")]
    | Annotated[Not, Tag("not")],
    Discriminator(_which),
]
for _model in (AllOf, AnyOf, Not):
    _model.model_rebuild()


def leaves(clause: Clause, depth: int = 1) -> Iterator[tuple[Leaf, int]]:
    """Every comparison below a clause, with how deep it stands."""
    if isinstance(clause, Leaf):
        yield clause, depth
    elif isinstance(clause, Not):
        yield from leaves(clause.not_, depth + 1)
    else:
        for inner in clause.all if isinstance(clause, AllOf) else clause.any:
            yield from leaves(inner, depth + 1)


def placed(clause: Clause, pointer: str) -> Iterator[tuple[Leaf, str]]:
    """Every comparison below a clause, with the pointer to it."""
    if isinstance(clause, Leaf):
        yield clause, pointer
    elif isinstance(clause, Not):
        yield from placed(clause.not_, f"{pointer}/not")
    else:
        word = "all" if isinstance(clause, AllOf) else "any"
        for n, inner in enumerate(clause.all if isinstance(clause, AllOf) else clause.any):
            yield from placed(inner, f"{pointer}/{word}/{n}")


def is_number(value: object) -> bool:
    """Whether JSON calls the value a number, and it is finite."""
    return type(value) in (int, float, Decimal) and abs(value) < float("inf")  # type: ignore[arg-type]


def operator_fault(leaf: Leaf) -> str | None:
    """Why the operand does not fit the operator, or None."""
    op, value = leaf.operator, leaf.value
    if op is Operator.EXISTS:
        given = leaf.has_value or leaf.values is not None
        return "expected no value beside exists, found one" if given else None
    if op in LISTED:
        if leaf.has_value:
            return f"expected `values` beside {op}, found `value`"
        return None if leaf.values else f"expected 1 to {VALUES_MAX} `values` beside {op}"
    if leaf.values is not None or not leaf.has_value:
        found = "`values`" if leaf.values is not None else "nothing"
        return f"expected `value` beside {op}, found {found}"
    if op in NUMERIC and not is_number(value):
        return f"expected a finite number beside {op}, found {kind(value)}"
    if op is Operator.REGEX:
        return _pattern_fault(value)
    return None


def _pattern_fault(value: JsonValue) -> str | None:
    if not isinstance(value, str) or not value:
        return f"expected a regular expression as a string, found {kind(value)}"
    if len(value) > REGEX_CHARS_MAX:
        return f"expected at most {REGEX_CHARS_MAX} characters, found {len(value)}"
    return None


def _case_fault(leaf: Leaf) -> str | None:
    if leaf.case_sensitive is not None and leaf.operator not in _CASED:
        return f"expected no caseSensitive beside {leaf.operator}, found one"
    return None


def _missing_fault(leaf: Leaf) -> str | None:
    if leaf.or_missing and leaf.operator is Operator.EXISTS:
        return "expected no orMissing beside exists, found one"
    return None


def _flags_fault(leaf: Leaf) -> str | None:
    if leaf.flags is None:
        return None
    if leaf.operator is not Operator.REGEX:
        return f"expected no flags beside {leaf.operator}, found {leaf.flags!r}"
    unknown = sorted(set(leaf.flags) - set(FLAGS))
    if unknown:
        return f"expected flags of {' '.join(FLAGS)}, found {''.join(unknown)!r}"
    if leaf.case_sensitive and "i" in leaf.flags:
        return "expected no flag i beside caseSensitive: true, found both"
    return None
