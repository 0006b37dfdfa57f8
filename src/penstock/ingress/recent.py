"""Remember which ids were accepted lately, so that a repeat is called a duplicate at once.

Bounded: the oldest are forgotten. `may_be_known` says when even the store need not be asked: an id
that carries its own time (UUIDv7), later than all that could have been forgotten, and not here, was
never accepted through this door. The ingress dedupes again whatever happens here.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from penstock.base.ids import is_uuid7

Key = tuple[str, str]  # tenant, id
_SLACK_MS = 1_000  # clocks of publishers run ahead a little


class RecentIds:
    """The content hashes of the last `most` accepted ids."""

    def __init__(self, *, most: int, started_ms: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._hashes: OrderedDict[Key, tuple[bytes, int]] = OrderedDict()
        self._forgotten_ms = started_ms

    def find(self, key: Key) -> bytes | None:
        """The content hash accepted under this id, if it is remembered."""
        with self._lock:
            found = self._hashes.get(key)
        return None if found is None else found[0]

    def add(self, key: Key, content_hash: bytes, *, now_ms: int) -> None:
        with self._lock:
            self._hashes[key] = (content_hash, now_ms)
            self._hashes.move_to_end(key)
            while len(self._hashes) > self._most:
                _, (_, at_ms) = self._hashes.popitem(last=False)
                self._forgotten_ms = max(self._forgotten_ms, at_ms)

    def may_be_known(self, event_id: str) -> bool:
        """Whether the store could know an id that is not remembered here."""
        if not is_uuid7(event_id):
            return True
        return int(event_id[:8] + event_id[9:13], 16) < self._forgotten_ms + _SLACK_MS
