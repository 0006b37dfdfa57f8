"""Say whose history is meant: the events of one tenant that carry all of some tags.

    tags=issueId:42,mode:dev&type=ISSUE.** ── read_boundary ──▶ Boundary ── covers ──▶ yes or no

Tags must all be there; several types are alternatives. A correlation id may stand in for the tags.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.base.errors import QueryInvalid
from penstock.envelope.codec import canonical
from penstock.envelope.envelope import JsonObject, JsonValue, Stored
from penstock.store.query import EventQuery, matches, read_query

PARAMETERS = ("tags", "type", "correlationId")
_TAG = "tag."


@dataclass(frozen=True, slots=True)
class Boundary:
    """Which events make up one history; use `boundary` to build one in its normal form."""

    tenant_id: str
    tags: tuple[tuple[str, str], ...] = ()
    types: tuple[str, ...] = ()  # exact names or globs; none means all
    correlation_id: str | None = None
    event_id: str | None = None  # a single event that belongs to nothing larger

    @property
    def definition(self) -> JsonObject:
        """What it is made of, without its tenant; `from_definition` reads it back."""
        tags: list[JsonValue] = [[key, value] for key, value in self.tags]
        found: JsonObject = {"tags": tags, "types": [*self.types]}
        return found | {"correlationId": self.correlation_id, "eventId": self.event_id}

    @property
    def digest(self) -> str:
        """The same for boundaries that mean the same events."""
        return hashlib.sha256(canonical(self.definition)).hexdigest()

    def covers(self, stored: Stored) -> bool:
        """Whether an event belongs to it."""
        query = EventQuery(
            tenant_id=self.tenant_id,
            types=self.types,
            tags=self.tags,
            correlation_id=self.correlation_id,
        )
        return matches(query, stored) and self.event_id in (None, stored.envelope.id)


def boundary(
    tenant_id: str,
    tags: Iterable[tuple[str, str]] = (),
    types: Iterable[str] = (),
    correlation_id: str | None = None,
) -> Boundary:
    """A boundary in its normal form: the order and repetition of tags and types do not matter."""
    return Boundary(tenant_id, tuple(sorted(set(tags))), tuple(sorted(set(types))), correlation_id)


def from_definition(tenant_id: str, definition: JsonValue) -> Boundary | None:
    """The boundary of a definition that was kept; None when it is of another making."""
    match definition:
        case {
            "tags": list(tags),
            "types": list(types),
            "correlationId": None | str() as found,
            "eventId": None,
        }:
            pairs = [(str(p[0]), str(p[1])) for p in tags if isinstance(p, list) and len(p) == 2]
            return boundary(tenant_id, pairs, [str(name) for name in types], found)
    return None


def around(event: Stored) -> Boundary:
    """The history an event is part of: its correlation, else everything with all its tags."""
    envelope = event.envelope
    if envelope.correlation_id is not None:
        return boundary(envelope.tenant_id, correlation_id=envelope.correlation_id)
    if envelope.tags:
        return boundary(envelope.tenant_id, envelope.tags.items())
    return Boundary(envelope.tenant_id, event_id=envelope.id)


def read_boundary(params: Sequence[tuple[str, str]], *, tenant_id: str) -> Boundary:
    """The boundary that HTTP parameters name; QueryInvalid when they name none.

    `tags` holds key:value, several by comma or repetition. `tag.<key>=<value>` says the same for a
    value that has a comma in it.
    """
    filters: list[tuple[str, str]] = []
    for name, value in params:
        if name == "tags":
            filters += [(f"{_TAG}{key}", found) for key, found in _tags(value)]
        elif name in PARAMETERS or name.startswith(_TAG):
            filters.append((name, value))
    query = read_query(filters, tenant_id=tenant_id)[0]
    if not query.tags and query.correlation_id is None:
        raise QueryInvalid(
            "expected tags=key:value or a correlationId, found neither", parameter="tags"
        )
    return boundary(tenant_id, query.tags, query.types, query.correlation_id)


def _tags(text: str) -> Iterable[tuple[str, str]]:
    for part in text.split(","):
        key, colon, value = part.strip().partition(":")
        if not (key and colon and value):
            raise QueryInvalid(
                f"expected tags as key:value, by comma or repeated, found {part[:80]!r}",
                parameter="tags",
                remedy="Write tags=issueId:42; a value with a comma goes into tag.<key>=<value>.",
            )
        yield key, value
