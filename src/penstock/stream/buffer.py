"""Keep what a live subscriber has not taken yet, up to a number of events and of bytes.

What does not fit is not forced in: `push` says no, and the subscriber goes back to reading the log.
"""

from __future__ import annotations

from collections import deque

from penstock.stream.frames import Entry

EVENTS_MAX = 256
BYTES_MAX = 1024 * 1024


class Buffer:
    """A bounded queue of entries; bytes held elsewhere for the same subscriber count too."""

    def __init__(self, events_max: int = EVENTS_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._entries: deque[Entry] = deque()
        self._events_max = events_max
        self._bytes_max = bytes_max
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, entry: Entry, *, reserved: int = 0) -> bool:
        """Keep one more; False, and nothing kept, when it does not fit."""
        size = entry.size
        if len(self._entries) >= self._events_max:
            return False
        # One event alone always fits, or a big one could never be sent.
        if (self._entries or reserved) and self.bytes + reserved + size > self._bytes_max:
            return False
        self._entries.append(entry)
        self.bytes += size
        return True

    def pop(self) -> Entry:
        """The oldest entry; IndexError when there is none."""
        entry = self._entries.popleft()
        self.bytes -= entry.size
        return entry

    def drop(self) -> int:
        """Forget everything; how many entries that were."""
        dropped = len(self._entries)
        self._entries.clear()
        self.bytes = 0
        return dropped
