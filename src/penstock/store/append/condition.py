"""Say what an append depends on: criteria, and from where on nothing may match them.

    Criterion   one of the types, and all of the tags
    Condition   none of `criteria` after `after`, and none of `fail_if_exists` anywhere

Criteria are alternatives. They name exact types: a glob would cover types that nobody has thought
of yet. This is the specification of `positions_matching` in the database; tests/store/append holds
the two together over random conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from penstock.base.errors import ConditionInvalid
from penstock.envelope.envelope import DEFAULT_TENANT, Envelope
from penstock.envelope.names import is_glob
from penstock.store.query import EventQuery, Query


@dataclass(frozen=True, slots=True)
class Criterion:
    """Events of one of the types that carry all of the tags; what is left empty asks nothing."""

    types: tuple[str, ...] = ()
    tags: tuple[tuple[str, str], ...] = ()

    def matches(self, event: Envelope) -> bool:
        """Whether an event is one of those that are meant."""
        return (not self.types or event.type in self.types) and all(
            event.tags.get(key) == value for key, value in self.tags
        )


Criteria: TypeAlias = tuple[Criterion, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """What must not be in the log for an append to be made."""

    criteria: Criteria = ()
    after: int | None = None  # None: nothing like this may exist at all
    fail_if_exists: Criteria = ()  # nothing like this either, whatever `after` says

    def clauses(self) -> Iterator[tuple[Criterion, int, bool]]:
        """Every criterion with the position after which it counts, and whether that is anywhere."""
        for criterion in self.criteria:
            yield criterion, self.after or 0, False
        for criterion in self.fail_if_exists:
            yield criterion, 0, True


def match_any(criteria: Criteria, event: Envelope) -> bool:
    """Whether an event is meant by any of them."""
    return any(criterion.matches(event) for criterion in criteria)


def criteria_of(queries: Query | Iterable[Query | Criterion]) -> Criteria:
    """The criteria that queries mean, one each; ConditionInvalid for more than types and tags."""
    if isinstance(queries, Query):
        return (_criterion(queries, "/items/0"),)
    return tuple(
        said if isinstance(said, Criterion) else _criterion(said, f"/items/{n}")
        for n, said in enumerate(queries)
    )


def _criterion(query: Query, pointer: str) -> Criterion:
    asked = query.asked
    if replace(asked, types=(), tags=()) != EventQuery(DEFAULT_TENANT):
        raise ConditionInvalid(
            "expected types and tags only, found another filter",
            pointer=pointer,
            remedy="Build it with Query().type(…).tag(…); read by anything else before deciding.",
        )
    if not asked.types and not asked.tags:
        raise ConditionInvalid("expected a type or a tag, found neither", pointer=pointer)
    for name in asked.types:
        if is_glob(name):
            raise glob_refused(name, f"{pointer}/types")
    return Criterion(asked.types, asked.tags)


def glob_refused(name: str, pointer: str) -> ConditionInvalid:
    """The answer to a glob where only types count."""
    return ConditionInvalid(
        f"expected an exact type, found the glob {name[:80]!r}",
        pointer=pointer,
        remedy="Name every type that the decision depends on; globs are for reading.",
    )
