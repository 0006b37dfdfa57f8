"""Say which events a reader wants: a value, how to build it, and the test of one event.

    Query().type("ISSUE.*").tag("issueId", "42") ──────┐
    type=ISSUE.*&tag.issueId=42 ── read_query ──▶ EventQuery ── matches ──▶ yes or no

Different filters must all hold; several values of `type`, `source` or `severity` are alternatives.
`matches` is the specification of the SQL in queries/store.sql, jsonPath apart, which PostgreSQL
alone evaluates. tests/store/test_twins_agree.py holds the two together, and
tests/store/test_query_builder.py the builder, the parameters and the live stream; for triggers
there is `triggers.listening`.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from penstock.base.clock import format_instant, parse_instant
from penstock.base.errors import QueryInvalid
from penstock.envelope.codec import canonical
from penstock.envelope.envelope import DEFAULT_TENANT, JsonValue, Severity, Stored
from penstock.envelope.names import is_glob, matches_glob
from penstock.store.jsonpath import read_path
from penstock.store.values import (
    bounds,
    is_tag_key,
    read,
    read_integer,
    read_place,
    read_severity,
    read_text,
    read_type,
    several,
)

__all__ = ["EventQuery", "Page", "Query", "matches", "read_integer", "read_query"]

LIMIT_MAX = 200
LIMIT_DEFAULT = 100
VALUES_MAX = 50  # of one filter

_PARAMETERS = (
    "type", "source", "correlationId", "from", "to", "severity", "jsonPath", "asOf", "limit",
    "cursor",
)  # fmt: skip
_TAG = "tag."

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class EventQuery:
    """Which events of one tenant; an empty filter lets everything through."""

    tenant_id: str
    types: tuple[str, ...] = ()  # exact names or globs
    sources: tuple[str, ...] = ()
    correlation_id: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    severities: tuple[Severity, ...] = ()
    occurred_from: datetime | None = None
    occurred_to: datetime | None = None
    json_path: str | None = None
    as_of_position: int | None = None  # the log as it was when it ended here
    as_of_instant: datetime | None = None  # or when this was the time

    @property
    def digest(self) -> str:
        """The same for queries that ask the same, whatever the order of their values."""
        said: JsonValue = [
            [*sorted(self.types)],
            [*sorted(self.sources)],
            self.correlation_id,
            [[key, value] for key, value in sorted(self.tags)],
            [*sorted(self.severities)],
            *(None if at is None else at.isoformat() for at in self._instants()),
            self.json_path,
            self.as_of_position,
        ]
        return hashlib.sha256(canonical(said)).hexdigest()

    def _instants(self) -> tuple[datetime | None, ...]:
        return self.occurred_from, self.occurred_to, self.as_of_instant


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of matching events, newest first."""

    events: list[Stored]
    next_cursor: str | None
    has_more: bool
    limit: int


def matches(query: EventQuery, stored: Stored) -> bool:
    """Whether an event is wanted, jsonPath left aside."""
    event = stored.envelope
    return (
        event.tenant_id == query.tenant_id
        and _has_type(query.types, event.type)
        and (not query.sources or event.source in query.sources)
        and (query.correlation_id is None or event.correlation_id == query.correlation_id)
        and all(event.tags.get(key) == value for key, value in query.tags)
        and (not query.severities or stored.severity in query.severities)
        and (query.occurred_from is None or event.occurred_at >= query.occurred_from)
        and (query.occurred_to is None or event.occurred_at <= query.occurred_to)
        and (query.as_of_position is None or stored.position <= query.as_of_position)
        and (query.as_of_instant is None or stored.received_at <= query.as_of_instant)
    )


def _has_type(wanted: tuple[str, ...], event_type: str) -> bool:
    return not wanted or any(
        matches_glob(pattern, event_type) if is_glob(pattern) else pattern == event_type
        for pattern in wanted
    )


@dataclass(frozen=True, slots=True)
class Query:
    """Build a query word by word; each word gives a new one, and all of them must hold.

        Query().type("ISSUE.*").tag("issueId", "42").between(monday, friday).jsonpath("$.n > 1")

    QueryInvalid, as over HTTP, for a value that cannot be meant.
    """

    asked: EventQuery = EventQuery(DEFAULT_TENANT)

    def type(self, *names: str) -> Query:
        """Events of one of these types; globs are understood. Said twice, they add up."""
        return self._with("type", types=several("type", self.asked.types, names, read_type))

    def source(self, *names: str) -> Query:
        """Events of one of these sources."""
        return self._with("source", sources=several("source", self.asked.sources, names, read_text))

    def severity(self, *names: str) -> Query:
        """Events of one of these severities."""
        wanted = several("severity", self.asked.severities, names, read_severity)
        return self._with("severity", severities=wanted)

    def tag(self, key: str, value: str) -> Query:
        """Events that carry this tag, beside those asked for already."""
        name = f"{_TAG}{key}"
        _check_name(name, ())
        tags = (*self.asked.tags, (key, read(name, value, read_text)))
        return self._with("tag", tags=tags)

    def correlation(self, correlation_id: str) -> Query:
        """Events of one correlation."""
        wanted = read("correlationId", correlation_id, read_text)
        return self._with("correlationId", correlation_id=wanted)

    def between(self, first: datetime | str | None, last: datetime | str | None) -> Query:
        """Events that occurred from `first` to `last`, both included; None leaves an end open."""
        occurred_from, occurred_to = bounds(_instant("from", first), _instant("to", last))
        return self._with("from", occurred_from=occurred_from, occurred_to=occurred_to)

    def jsonpath(self, path: str) -> Query:
        """Events of whose payload the path is true, or in which it finds something."""
        read_path(read("jsonPath", path, read_text))
        return self._with("jsonPath", json_path=path)

    def as_of(self, place: int | datetime | str) -> Query:
        """What was there when the log ended at a position, or at an instant."""
        at = _instant("asOf", place) if isinstance(place, datetime) else None
        return self._with("asOf", **_as_of(read("asOf", _shown(at) or str(place), read_place)))

    def of(self, tenant_id: str) -> EventQuery:
        """The query for one tenant: what readers take."""
        return replace(self.asked, tenant_id=tenant_id)

    def parameters(self) -> list[tuple[str, str]]:
        """The same query as parameters of GET /admin/events."""
        q = self.asked
        said = [
            *(("type", name) for name in q.types),
            *(("source", name) for name in q.sources),
            *((f"{_TAG}{key}", value) for key, value in q.tags),
            *(("severity", name) for name in q.severities),
            ("correlationId", q.correlation_id),
            ("from", _shown(q.occurred_from)),
            ("to", _shown(q.occurred_to)),
            ("jsonPath", q.json_path),
            ("asOf", _shown(q.as_of_instant)),
            ("asOf", None if q.as_of_position is None else str(q.as_of_position)),
        ]
        return [(name, value) for name, value in said if value is not None]

    def _with(self, name: str, **words: Any) -> Query:
        if any(isinstance(said, tuple) and len(said) > VALUES_MAX for said in words.values()):
            raise QueryInvalid(f"expected at most {VALUES_MAX} values of {name}", parameter=name)
        return Query(replace(self.asked, **words))


def read_query(
    params: Sequence[tuple[str, str]], *, tenant_id: str, also: Collection[str] = ()
) -> tuple[EventQuery, int, str | None]:
    """The query, the page size and the cursor that HTTP parameters ask for.

    `also` names parameters that the caller reads itself; any other unknown name is refused, since
    a filter that is ignored shows events nobody asked for.
    """
    given = _gather(params, also)
    occurred_from, occurred_to = bounds(
        _one(given, "from", parse_instant), _one(given, "to", parse_instant)
    )
    json_path = _one(given, "jsonPath", str)
    if json_path is not None:
        read_path(json_path)
    query = EventQuery(
        tenant_id=tenant_id,
        types=_comma_separated(given, "type", read_type),
        # A source may hold commas, so several sources are several parameters.
        sources=tuple(dict.fromkeys(given.get("source", ()))),
        correlation_id=_one(given, "correlationId", str),
        tags=tuple((name.removeprefix(_TAG), v) for name, v in params if name.startswith(_TAG)),
        severities=_comma_separated(given, "severity", read_severity),
        occurred_from=occurred_from,
        occurred_to=occurred_to,
        json_path=json_path,
        **_as_of(_one(given, "asOf", read_place)),
    )
    limit = _one(given, "limit", read_integer)
    clamped = LIMIT_DEFAULT if limit is None else max(1, min(LIMIT_MAX, limit))
    return query, clamped, _one(given, "cursor", str)


def _gather(params: Iterable[tuple[str, str]], also: Collection[str]) -> dict[str, list[str]]:
    given: dict[str, list[str]] = {}
    for name, value in params:
        _check_name(name, also)
        given.setdefault(name, []).append(read(name, value, read_text))
        if len(given[name]) > VALUES_MAX:
            raise QueryInvalid(f"expected at most {VALUES_MAX} values of {name}", parameter=name)
    if sum(len(values) for name, values in given.items() if name.startswith(_TAG)) > VALUES_MAX:
        raise QueryInvalid(f"expected at most {VALUES_MAX} tags", parameter="tag")
    return given


def _check_name(name: str, also: Collection[str]) -> None:
    if name.startswith(_TAG):
        if not is_tag_key(name.removeprefix(_TAG)):
            raise QueryInvalid(
                f"expected tag.<key> with a key of 1 to 64 characters, found {name[:80]!r}",
                parameter=name[:80],
            )
    elif name not in _PARAMETERS and name not in also:
        known = [*_PARAMETERS, "tag.<key>", *also]
        near = difflib.get_close_matches(name[:80], known, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise QueryInvalid(
            f"expected one of {', '.join(known)}, found {name[:80]!r}{hint}", parameter=name[:80]
        )


def _one(given: dict[str, list[str]], name: str, reader: Callable[[str], _Value]) -> _Value | None:
    values = given.get(name, [])
    if len(values) > 1:
        raise QueryInvalid(f"expected {name} once, found it {len(values)} times", parameter=name)
    return read(name, values[0], reader) if values else None


def _comma_separated(
    given: dict[str, list[str]], name: str, reader: Callable[[str], _Value]
) -> tuple[_Value, ...]:
    texts = [part.strip() for value in given.get(name, []) for part in value.split(",")]
    texts = [text for text in texts if text]
    if given.get(name) and not texts:
        raise QueryInvalid(f"expected a value for {name}, found only commas", parameter=name)
    if len(texts) > VALUES_MAX:
        raise QueryInvalid(f"expected at most {VALUES_MAX} values of {name}", parameter=name)
    return several(name, (), texts, reader)


def _instant(name: str, said: datetime | str | None) -> datetime | None:
    if said is None or isinstance(said, str):
        return None if said is None else read(name, said, parse_instant)
    if said.tzinfo is None:
        raise QueryInvalid(f"{name}: expected a time with an offset, found none", parameter=name)
    return said.astimezone(UTC)


def _shown(at: datetime | None) -> str | None:
    return None if at is None else format_instant(at)


def _as_of(place: int | datetime | None) -> dict[str, Any]:
    return {"as_of_instant" if isinstance(place, datetime) else "as_of_position": place}
