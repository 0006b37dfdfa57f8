"""Hold one subscriber: what it wants, whom to call, and the letters that wait for it.

Every subscriber has a mailbox of its own and at most one reader at a time. That keeps the order of
publishing per subscriber, whoever publishes: a letter that arrives while one is being read waits
for the same reader. The lock is the bus's and is never held while a handler runs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from typing import TypeAlias

from penstock.envelope.envelope import Envelope
from penstock.envelope.names import is_glob, matches_glob, type_fault
from penstock.registry.declare import EventType

Handler: TypeAlias = Callable[[Envelope], object]
EVERYTHING = "*"


@dataclass(frozen=True, slots=True)
class Letter:
    """One event for one subscriber, and the context it was published in."""

    event: Envelope
    context: Context


class Subscription:
    """One handler's interest in some events; `cancel()` ends it."""

    def __init__(
        self,
        what: str | EventType,
        handler: Handler,
        *,
        once: bool,
        lock: threading.RLock,
        forget: Callable[[Subscription], None],
    ) -> None:
        self.pattern = _pattern(what)
        self.handler = handler
        self.once = once
        self.handled = 0
        self.errors = 0
        self._model = what.payload if isinstance(what, EventType) else None
        self._lock = lock
        self._forget = forget
        self._letters: deque[Letter] = deque()
        self._is_open = True
        self._reader: object | None = None

    @property
    def active(self) -> bool:
        """Whether another event may still be handed over."""
        return self._is_open

    def cancel(self) -> None:
        """End it: from now on no call begins, not even for what is waiting already."""
        with self._lock:
            self._is_open = False
            self._letters.clear()
            self._forget(self)

    def post(self, letter: Letter) -> bool:
        """Put a wanted letter into the mailbox."""
        with self._lock:
            if not (self._is_open and self._wants(letter.event.type)):
                return False
            self._letters.append(letter)
            self._is_open = not self.once
            return True

    def claim(self) -> object | None:
        """Become the one reader, unless there is one or nothing to read: a key to read with."""
        with self._lock:
            if self._reader is not None or not self._letters:
                return None
            self._reader = object()
            return self._reader

    def take(self, key: object) -> Letter | None:
        """The next letter; with None the holder of `key` is not the reader any more."""
        with self._lock:
            if self._reader is not key:
                return None
            if self._letters:
                return self._letters.popleft()
            self.release(key)
            return None

    def release(self, key: object) -> None:
        """Stop being the reader, whatever is still waiting; harmless for who is not."""
        with self._lock:
            if self._reader is key:
                self._reader = None
            if not self._is_open:
                self._forget(self)

    def call(self, letter: Letter) -> object:
        """Call the handler, with a payload that fits when it subscribed by EventType."""
        if self._model is not None:
            self._model.model_validate(letter.event.payload)
        return letter.context.run(self.handler, letter.event)

    def _wants(self, event_type: str) -> bool:
        return self.pattern in (EVERYTHING, event_type) or (
            is_glob(self.pattern) and matches_glob(self.pattern, event_type)
        )


def _pattern(what: str | EventType) -> str:
    """The name or glob to match; a name that no event can have is the caller's mistake."""
    pattern = what.name if isinstance(what, EventType) else what
    fault = None if pattern == EVERYTHING or is_glob(pattern) else type_fault(pattern)
    if fault is not None:
        raise ValueError(f"expected an event type or a glob, found {pattern!r}: {fault}")
    return pattern
