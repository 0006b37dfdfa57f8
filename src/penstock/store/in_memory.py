"""Keep events in a list: the specification of the store on PostgreSQL, read in a minute.

It answers everything but jsonPath, which is PostgreSQL's own language.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.base.errors import QueryInvalid
from penstock.envelope.envelope import Stored
from penstock.store.cursor import read_cursor, write_cursor
from penstock.store.onward.reach import Span, Stretch, stretch
from penstock.store.query import LIMIT_DEFAULT, EventQuery, Page, matches


class EventsInMemory:
    """The same questions as `on_postgres.EventReader`, over a list in the order of positions."""

    def __init__(self, events: Iterable[Stored] = (), *, cursor_key: bytes) -> None:
        self._events = sorted(events, key=lambda stored: stored.position)
        self._key = cursor_key

    def page(
        self, query: EventQuery, *, limit: int = LIMIT_DEFAULT, cursor: str | None = None
    ) -> Page:
        """The newest matching events, or those that follow a cursor of the same query."""
        _refuse_json_path(query)
        tenant, before = query.tenant_id, self.head() + 1
        if cursor is not None:
            before = read_cursor(cursor, tenant, query.digest, key=self._key)
        found = [e for e in reversed(self._events) if e.position < before and matches(query, e)]
        events, has_more = found[:limit], len(found) > limit
        following = None
        if has_more:
            following = write_cursor(tenant, events[-1].position, query.digest, key=self._key)
        return Page(events, following, has_more, limit)

    def by_id(self, tenant_id: str, event_id: str) -> Stored | None:
        """One event, or None when this tenant has none by that id."""
        for stored in self._events:
            if (stored.envelope.tenant_id, stored.envelope.id) == (tenant_id, event_id):
                return stored
        return None

    def after(self, position: int, limit: int, *, tenant_id: str | None = None) -> list[Stored]:
        """The first events after a position, oldest first; of all tenants when none is named."""
        return [
            stored
            for stored in self._events
            if stored.position > position and tenant_id in (None, stored.envelope.tenant_id)
        ][:limit]

    def matching(self, query: EventQuery, *, after: int, until: int, limit: int) -> Stretch:
        """The first matches after a position, oldest first, none after `until`."""
        _refuse_json_path(query)
        found = [e for e in self._events if after < e.position <= until and matches(query, e)]
        return stretch(found[:limit], Span(after, until), limit)

    def head(self) -> int:
        """The last position given out."""
        return self._events[-1].position if self._events else 0


def _refuse_json_path(query: EventQuery) -> None:
    if query.json_path is not None:
        raise QueryInvalid("expected no jsonPath, which needs PostgreSQL", parameter="jsonPath")
