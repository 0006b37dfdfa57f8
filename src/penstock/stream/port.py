"""Name what the live stream needs from others: a log to read, and somebody to wake it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from penstock.envelope.envelope import Stored
from penstock.store.onward.reach import Stretch
from penstock.store.query import EventQuery
from penstock.stream.notices.notice import Notice


class LogReader(Protocol):
    """Reads the log in commit order. Blocking: the hub calls it on threads of its own."""

    def after(self, position: int, limit: int) -> list[Stored]:
        """The next events after `position`, of all tenants."""
        ...

    def matching(self, query: EventQuery, *, after: int, until: int, limit: int) -> Stretch:
        """The next matches after a position, up to `until`, and the position they reach through.

        Others may be among them, but nothing that matches is missing up to there: `until` is a
        position that was read before, so whatever is at or before it is committed and visible.
        """
        ...

    def head(self) -> int:
        """The last position given out."""
        ...


class Waker(Protocol):
    """Says when something was committed. A hint only: the hub also looks by itself."""

    async def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever there may be news, until cancelled."""
        ...


class Announcer(Protocol):
    """Tells of what is no event but clients want to see, such as retries that operators touched."""

    async def listen(self, tell: Callable[[Notice], None]) -> None:
        """Call `tell` for every notice, until cancelled."""
        ...


# Whether the token of that id may still be used. Blocking, and cheap to ask every few seconds.
StillValid: TypeAlias = Callable[[str], bool]
