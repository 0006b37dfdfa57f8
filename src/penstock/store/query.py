"""Say which events a reader wants: a value, the test of one event, and its form as parameters.

    type=a.b&tag.userId=u1&limit=50 ── read_query ──▶ EventQuery ── matches ──▶ yes or no

Different filters must all hold; several values of `type`, `source` or `severity` are alternatives.
`matches` is the specification of the SQL in queries/store.sql, jsonPath apart, which PostgreSQL
alone evaluates; tests/store/test_twins_agree.py holds the two together.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from penstock.base.clock import parse_instant
from penstock.base.errors import QueryInvalid
from penstock.envelope.codec import canonical
from penstock.envelope.envelope import JsonValue, Severity, Stored
from penstock.envelope.names import is_glob, matches_glob
from penstock.store.jsonpath import read_path

LIMIT_MAX = 200
LIMIT_DEFAULT = 100
VALUES_MAX = 50  # of one filter

_PARAMETERS = (
    "type", "source", "correlationId", "from", "to", "severity", "jsonPath", "limit", "cursor",
)  # fmt: skip
_TAG = "tag."
_VALUE_MAX = 1_000
_SEGMENTS_MAX = 12
_PARTIAL_MAX = 3  # wildcards beside other characters of a segment: each multiplies the work
_TYPE = re.compile(r"[A-Za-z0-9_.*-]{1,200}")
_TAG_KEY = re.compile(r"[^:\s]{1,64}")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")

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

    @property
    def digest(self) -> str:
        """The same for queries that ask the same, whatever the order of their values."""
        first, last = self.occurred_from, self.occurred_to
        said: JsonValue = [
            [*sorted(self.types)],
            [*sorted(self.sources)],
            self.correlation_id,
            [[key, value] for key, value in sorted(self.tags)],
            [*sorted(self.severities)],
            None if first is None else first.isoformat(),
            None if last is None else last.isoformat(),
            self.json_path,
        ]
        return hashlib.sha256(canonical(said)).hexdigest()


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
    )


def _has_type(wanted: tuple[str, ...], event_type: str) -> bool:
    return not wanted or any(
        matches_glob(pattern, event_type) if is_glob(pattern) else pattern == event_type
        for pattern in wanted
    )


def read_query(
    params: Sequence[tuple[str, str]], *, tenant_id: str, also: Collection[str] = ()
) -> tuple[EventQuery, int, str | None]:
    """The query, the page size and the cursor that HTTP parameters ask for.

    `also` names parameters that the caller reads itself; any other unknown name is refused, since
    a filter that is ignored shows events nobody asked for.
    """
    given = _gather(params, also)
    occurred_from, occurred_to = _bounds(given)
    json_path = _one(given, "jsonPath", str)
    if json_path is not None:
        read_path(json_path)
    query = EventQuery(
        tenant_id=tenant_id,
        types=_several(given, "type", _type),
        # A source may hold commas, so several sources are several parameters.
        sources=tuple(dict.fromkeys(given.get("source", ()))),
        correlation_id=_one(given, "correlationId", str),
        tags=tuple((name.removeprefix(_TAG), v) for name, v in params if name.startswith(_TAG)),
        severities=_several(given, "severity", _severity),
        occurred_from=occurred_from,
        occurred_to=occurred_to,
        json_path=json_path,
    )
    limit = _one(given, "limit", read_integer)
    clamped = LIMIT_DEFAULT if limit is None else max(1, min(LIMIT_MAX, limit))
    return query, clamped, _one(given, "cursor", str)


def read_integer(text: str) -> int:
    """A whole number in decimal digits; else ValueError."""
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(f"expected a whole number, found {text[:40]!r}")
    return int(text)


def _gather(params: Iterable[tuple[str, str]], also: Collection[str]) -> dict[str, list[str]]:
    given: dict[str, list[str]] = {}
    for name, value in params:
        _check_name(name, also)
        _check_value(name, value)
        given.setdefault(name, []).append(value)
        if len(given[name]) > VALUES_MAX:
            raise QueryInvalid(f"expected at most {VALUES_MAX} values of {name}", parameter=name)
    if sum(len(values) for name, values in given.items() if name.startswith(_TAG)) > VALUES_MAX:
        raise QueryInvalid(f"expected at most {VALUES_MAX} tags", parameter="tag")
    return given


def _check_name(name: str, also: Collection[str]) -> None:
    if name.startswith(_TAG):
        key = name.removeprefix(_TAG)
        if _TAG_KEY.fullmatch(key) is None or not _storable(key):
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


def _check_value(name: str, value: str) -> None:
    if not value:
        raise QueryInvalid(f"expected a value for {name}, found nothing", parameter=name)
    if len(value) > _VALUE_MAX:
        raise QueryInvalid(
            f"expected at most {_VALUE_MAX} characters for {name}, found {len(value)}",
            parameter=name,
        )
    if not _storable(value):
        raise QueryInvalid(
            f"expected text without NUL and lone surrogates for {name}, found {value[:40]!r}",
            parameter=name,
        )


def _storable(text: str) -> bool:
    """Whether PostgreSQL could hold the text at all; what it cannot hold matches nothing."""
    return not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text)


def _one(given: dict[str, list[str]], name: str, read: Callable[[str], _Value]) -> _Value | None:
    values = given.get(name, [])
    if len(values) > 1:
        raise QueryInvalid(f"expected {name} once, found it {len(values)} times", parameter=name)
    return _read(name, values[0], read) if values else None


def _several(
    given: dict[str, list[str]], name: str, read: Callable[[str], _Value]
) -> tuple[_Value, ...]:
    texts = [part.strip() for value in given.get(name, []) for part in value.split(",")]
    texts = [text for text in texts if text]
    if given.get(name) and not texts:
        raise QueryInvalid(f"expected a value for {name}, found only commas", parameter=name)
    if len(texts) > VALUES_MAX:
        raise QueryInvalid(f"expected at most {VALUES_MAX} values of {name}", parameter=name)
    return tuple(dict.fromkeys(_read(name, text, read) for text in texts))


def _read(name: str, text: str, read: Callable[[str], _Value]) -> _Value:
    try:
        return read(text)
    except ValueError as error:
        raise QueryInvalid(str(error), parameter=name) from None


def _type(text: str) -> str:
    if _TYPE.fullmatch(text) is None:
        raise ValueError(f"expected a type or a glob like metastore.record.*, found {text[:80]!r}")
    segments = text.split(".")
    partial = sum(len(re.findall(r"\*+", s)) for s in segments if s not in ("*", "**"))
    if len(segments) > _SEGMENTS_MAX or partial > _PARTIAL_MAX:
        raise ValueError(
            f"expected at most {_SEGMENTS_MAX} segments and {_PARTIAL_MAX} wildcards beside other"
            f" characters, found {text[:80]!r}"
        )
    return text


def _severity(text: str) -> Severity:
    if text not in set(Severity):
        raise ValueError(f"expected one of {', '.join(Severity)}, found {text[:40]!r}")
    return Severity(text)


def _bounds(given: dict[str, list[str]]) -> tuple[datetime | None, datetime | None]:
    """Both ends belong to the range, to the millisecond, since that is how instants are shown."""
    first, last = _one(given, "from", parse_instant), _one(given, "to", parse_instant)
    if first is not None:
        first = first.replace(microsecond=first.microsecond // 1000 * 1000)
    if last is not None:
        last = last.replace(microsecond=last.microsecond // 1000 * 1000 + 999)
    if first is not None and last is not None and first > last:
        raise QueryInvalid("expected from to be no later than to", parameter="from")
    return first, last
