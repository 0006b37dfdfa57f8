"""Choose which index to walk for a query, from a few counts that stop early.

    EventQuery ── candidates ──▶ [correlation, tag, type, …] ── choose(counts) ──▶ Walk

A page is the newest matching events in the order of the log. Left alone, a planner that expects
matches everywhere walks the log from its end, and reads all of it when they are old or rare. So
each walk is fixed by its SQL (queries/store.sql) and chosen here: the rarest filter wins; where
nothing is rare, the first of a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from penstock.envelope.codec import encode
from penstock.envelope.envelope import Severity
from penstock.envelope.names import glob_regex
from penstock.store.jsonpath import read_path
from penstock.store.query import EventQuery

Index: TypeAlias = Literal["correlation", "tag", "type", "source", "severity", "window", "log"]
Wanted: TypeAlias = Literal["few", "many", "all"]  # a page, a sample, every match
Parameter: TypeAlias = "str | int | datetime | list[str] | list[str | None] | list[int] | None"

COUNT_MAX = 2_000  # where counting stops: this many is "not rare"
VALUES_MAX = 500  # more types or sources than this are not walked one by one
STRETCH = 1_000  # how much of the newest log is looked at to see how much is this tenant's
_DENSE = 10  # of that stretch
_KEPT_BY: Mapping[Index, str] = {
    "correlation": "correlation_id", "type": "types", "source": "sources", "severity": "severities",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Walk:
    """An index, and the values in it to walk."""

    index: Index
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Newest:
    """What the newest stretch of the log holds of one tenant."""

    events: int
    occurred_at: datetime | None

    @property
    def is_dense(self) -> bool:
        return self.events >= _DENSE


def candidates(query: EventQuery, types: Sequence[str] | None) -> list[Walk]:
    """Every walk that reaches all matches, the usually shorter ones first.

    `types` are the names that the query's types stand for, or None when there are too many.
    """
    found: list[Walk] = []
    if query.correlation_id is not None:
        found.append(Walk("correlation", (query.correlation_id,)))
    found += [Walk("tag", (f"{key}:{value}",)) for key, value in query.tags]
    if query.types and types is not None:
        found.append(Walk("type", tuple(types)))
    if query.sources:
        found.append(Walk("source", query.sources))
    if query.severities and Severity.INFO not in query.severities:
        found.append(Walk("severity", tuple(query.severities)))
    return found


def has_window(query: EventQuery) -> bool:
    """Whether the query asks for a stretch of time."""
    return query.occurred_from is not None or query.occurred_to is not None


def choose(
    walks: Sequence[Walk], counts: Mapping[int, int], in_window: int | None, wanted: Wanted = "few"
) -> Walk | None:
    """The walk with the fewest events to look at; None when the log itself is better.

    `counts` has the count of each walk by its number, none when there was nothing to compare;
    `in_window` counts the stretch of time, None when the query has none.
    """
    if in_window is not None and in_window < min([COUNT_MAX, *counts.values()]):
        return Walk("window")
    if not walks:
        return None
    best = min(range(len(walks)), key=lambda n: (min(counts.get(n, 0), COUNT_MAX), n))
    is_rare = counts.get(best, 0) < COUNT_MAX
    # Several values are walked as far as is wanted of each, so for many events the log is shorter;
    # for all events an index of half the log is a detour.
    is_worth_it = {"few": True, "many": is_rare or len(walks[best].values) == 1, "all": is_rare}
    return walks[best] if is_worth_it[wanted] else None


def choose_log(query: EventQuery, newest: Newest, sources: Sequence[str]) -> Walk:
    """How to walk the log itself, when no filter has an index worth walking.

    A crowded stretch of time that lies in the past is gathered whole, since from the newest end
    everything after it would be read for nothing. A small tenant is walked source by source; one
    without any source has no events.
    """
    if query.occurred_to is not None and (
        newest.occurred_at is None or query.occurred_to < newest.occurred_at
    ):
        return Walk("window")
    if newest.is_dense or len(sources) > VALUES_MAX:
        return Walk("log")
    return Walk("source", tuple(sources))


def literal_range(pattern: str) -> tuple[str, str]:
    """Bounds, the second exclusive, between which every type that a glob matches lies."""
    # `a.b.**` may match `a.b` itself, so the dot before a wildcard is no part of the bound.
    prefix = pattern.partition("*")[0].rstrip(".")
    if not prefix:
        return "", chr(0x10FFFF)
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)


def walk_parameters(
    query: EventQuery, types: Sequence[str] | None, walk: Walk
) -> dict[str, Parameter]:
    """The parameters of a walk and of the filters on its way.

    What the walk itself guarantees is not asked of each row again: PostgreSQL would try to use
    it in the index as well, and walk worse.
    """
    # A value walked twice would give its events twice.
    parameters = filter_parameters(query, types) | {"walked": list(dict.fromkeys(walk.values))}
    kept_by_walk = _KEPT_BY.get(walk.index)
    if kept_by_walk is not None:
        parameters[kept_by_walk] = None
    return parameters


def filter_parameters(query: EventQuery, types: Sequence[str] | None) -> dict[str, Parameter]:
    """The parameters of `filters`: None for whatever the query does not ask."""
    by_regex = bool(query.types) and types is None
    path = None if query.json_path is None else read_path(query.json_path)
    found = path if path is not None and not path.is_predicate else None
    true = path if path is not None and path.is_predicate else None
    return {
        "tenant": query.tenant_id,
        "types": list(types) if query.types and types is not None else None,
        "type_regex": "|".join(f"(?:{glob_regex(p)})" for p in query.types) if by_regex else None,
        "sources": list(query.sources) or None,
        "correlation_id": query.correlation_id,
        "severities": [str(severity) for severity in query.severities] or None,
        "occurred_from": query.occurred_from,
        "occurred_to": query.occurred_to,
        "tags": [encode({key: value}).decode() for key, value in query.tags] or None,
        "as_of_position": query.as_of_position,
        "as_of_instant": query.as_of_instant,
        "found_path": None if found is None else found.path,
        "found_inner": None if found is None else found.inner,
        "true_path": None if true is None else true.path,
        "true_inner": None if true is None else true.inner,
    }
