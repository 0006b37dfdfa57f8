"""Make ids: UUIDv7 for events, and derived ones that come out the same every time.

A derived id has the shape of a UUIDv7 but is a function of its inputs, so reading the same line
of the same segment again, or repeating a request under the same Idempotency-Key, names the same
event and becomes a duplicate instead of a second row.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time

_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class _Sequence:
    """UUIDv7 that never goes back within a process, even when the clock does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def next(self, ms: int) -> int:
        """48 bits of time, then a 12-bit counter, packed so that they only grow."""
        with self._lock:
            self._last = max(self._last + 1, ms << 12)
            return self._last


_sequence = _Sequence()


def uuid7() -> str:
    """A new UUIDv7; ids made by one process sort in the order they were made."""
    ticks = _sequence.next(time.time_ns() // 1_000_000)
    return _shape(ticks >> 12, ticks & 0xFFF, int.from_bytes(os.urandom(8), "big"))


def derived_id(at_ms: int, *parts: str | bytes) -> str:
    """A UUIDv7-shaped id that is a function of an instant and of `parts`."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(4, "big") + data)
    bits = int.from_bytes(digest.digest()[:10], "big")
    return _shape(at_ms, bits >> 68, bits)


def is_uuid7(text: str) -> bool:
    """Whether `text` is a UUIDv7 in canonical lower-case form."""
    return _UUID7.fullmatch(text) is not None


def _shape(ms: int, high: int, low: int) -> str:
    value = (ms & 0xFFFF_FFFF_FFFF) << 80 | 7 << 76 | (high & 0xFFF) << 64
    value |= 0b10 << 62 | low & 0x3FFF_FFFF_FFFF_FFFF
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
