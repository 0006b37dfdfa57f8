"""Read the log with the keys of what is personal in it at hand, for those who may see it.

    rows ── one look-up of keys per page ──▶ rows that can be opened ──▶ frames.Parcel

Keys are looked up on the thread that reads, so that nobody waits for PostgreSQL while frames are
written, and nothing is decrypted before somebody who may see it wants it. When keys cannot be used
at all, events go out masked to everybody: the stream does not stand still for that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import structlog

from penstock.base.errors import SetupIncomplete
from penstock.envelope.envelope import Stored
from penstock.registry.registry import Registry
from penstock.store.onward.reach import Stretch
from penstock.store.privacy.show import with_keys
from penstock.store.privacy.vault import Vault
from penstock.store.query import EventQuery
from penstock.stream.port import LogReader

log = structlog.get_logger(__name__)


class OpenableLog:
    """The log of another reader; what is hidden in its events can be opened."""

    def __init__(
        self, reader: LogReader, *, registry: Callable[[], Registry], vault: Vault
    ) -> None:
        self._reader = reader
        self._registry = registry
        self._vault = vault

    def after(self, position: int, limit: int) -> list[Stored]:
        """The next events after `position`, of all tenants."""
        return self._openable(self._reader.after(position, limit))

    def matching(self, query: EventQuery, *, after: int, until: int, limit: int) -> Stretch:
        """The next matches after a position, up to `until`, and the position they reach through."""
        found = self._reader.matching(query, after=after, until=until, limit=limit)
        return replace(found, events=self._openable(found.events))

    def head(self) -> int:
        """The last position given out."""
        return self._reader.head()

    def _openable(self, events: list[Stored]) -> list[Stored]:
        try:
            return with_keys(events, self._registry(), self._vault)
        except SetupIncomplete as error:
            log.error("the live stream cannot show personal data", detail=error.detail)
            return events
