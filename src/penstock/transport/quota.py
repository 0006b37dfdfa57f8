"""Keep the spool within its share of the disk, without counting the folder on every write."""

from __future__ import annotations

from penstock.transport.files.port import Files

_COUNT_EVERY_MS = 1_000


class Quota:
    """How many bytes may still be written. Other writers are noticed within a second."""

    def __init__(self, files: Files, bytes_max: int) -> None:
        self._files = files
        self._bytes_max = bytes_max
        self._used = 0
        self._counted_tick: int | None = None

    def room(self, tick_ms: int) -> int:
        """Bytes left now."""
        if self._counted_tick is None or tick_ms - self._counted_tick >= _COUNT_EVERY_MS:
            self._used = sum(self._files.sizes().values())
            self._counted_tick = tick_ms
        return self._bytes_max - self._used

    def spend(self, size: int) -> None:
        """Note what was written since the folder was counted."""
        self._used += size
