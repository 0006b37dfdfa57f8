"""Remember which ids were accepted lately, so that a repeat is called a duplicate at once.

Bounded: the oldest are forgotten. `may_be_known` says when even the store need not be asked: an id
that carries its own time (UUIDv7), later than all that could have been forgotten, and not here, was
never accepted through this door. The ingress dedupes again whatever happens here.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

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

    def find(self, keys: Iterable[Key]) -> dict[Key, bytes]:
        """The content hashes accepted under these ids, as far as they are remembered."""
        with self._lock:
            known = self._hashes
            return {key: known[key][0] for key in keys if key in known}

    def add(self, accepted: Iterable[tuple[Key, bytes]], *, now_ms: int) -> None:
        """Remember ids and the content that was accepted under them."""
        with self._lock:
            known = self._hashes
            for key, content_hash in accepted:
                known[key] = (content_hash, now_ms)
                known.move_to_end(key)
            while len(known) > self._most:
                _, (_, at_ms) = known.popitem(last=False)
                self._forgotten_ms = max(self._forgotten_ms, at_ms)

    def may_be_known(self, event_id: str) -> bool:
        """Whether the store could know an id that is not remembered here."""
        if not is_uuid7(event_id):
            return True
        return int(event_id[:8] + event_id[9:13], 16) < self._forgotten_ms + _SLACK_MS
