"""Append groups of lines to one segment after another, each durable when `append_group` returns.

    create .open-…  ─▶ sync folder ─▶ append ─▶ sync ─▶ (acknowledge) ─▶ rename seg-… ─▶ sync folder
                                        ▲                    │  size or age reached
                                        └────────────────────┘

No thread and no clock of its own: on_disk.Spool drives it in production, and
tests/prove/test_spool_simulation.py through power cuts. `start` counts what was acknowledged, so a
group that failed leaves no gap.
"""

from __future__ import annotations

from penstock.base.errors import QueueUnavailable
from penstock.transport.files.port import Files, is_full
from penstock.transport.segment import OpenName, SegmentName


class SegmentWriter:
    """One writer's segments. After an OSError it must not be used again.

    A failed sync may have thrown the bytes away, and a second one would then succeed without
    them; only the file itself, read by a later process, can tell what is there.
    """

    def __init__(
        self, files: Files, *, writer: str, owner: tuple[int, int],
        segment_bytes: int, segment_age_ms: int, floor_ms: int = 0,
    ) -> None:  # fmt: skip
        self._files = files
        self._writer = writer
        self._owner = owner
        self._segment_bytes = segment_bytes
        self._segment_age_ms = segment_age_ms
        self._last_ms = floor_ms
        self._name = OpenName(0, writer, 0, *owner)
        self._handle: int | None = None
        self._size = self._lines = self._acknowledged = self._due_tick = 0

    @property
    def acknowledged(self) -> int:
        """How many messages this writer has made durable."""
        return self._acknowledged

    def append_group(self, data: bytes, lines: int, *, at_ms: int, tick_ms: int) -> None:
        """Make whole lines durable. QueueUnavailable: none of them is there, and the next may be.

        `at_ms` is the time of day and only names the segment; `tick_ms` never jumps.
        """
        handle = self._begin(at_ms) if self._handle is None else self._handle
        try:
            self._files.append(handle, data)
        except OSError as error:
            if not is_full(error):
                raise
            # A part of a line must not stay: the next group would be glued to it. Nor may it
            # come back with a power cut, into a segment that was sealed without it.
            self._files.truncate(handle, self._size)
            self._files.sync(handle)
            raise _full(error) from error
        self._files.sync(handle)
        if self._lines == 0:
            self._due_tick = tick_ms + self._segment_age_ms
        self._size += len(data)
        self._lines += lines
        self._acknowledged += lines

    def rotate_if_due(self, tick_ms: int) -> SegmentName | None:
        """Seal the segment if it is big or old enough; its name, if it was."""
        if self._lines == 0:
            return None
        if self._size < self._segment_bytes and tick_ms < self._due_tick:
            return None
        self._due_tick = tick_ms + self._segment_age_ms  # for the next try, should this one fail
        return self.seal()

    def due_in_ms(self, tick_ms: int) -> int | None:
        """How long until the segment is old enough to be sealed; None while there is nothing."""
        return max(0, self._due_tick - tick_ms) if self._lines else None

    def seal(self) -> SegmentName | None:
        """Give the segment its final name. An empty one is removed instead.

        None when nothing was sealed: also on a full disk, where the segment stays open and whole.
        """
        if self._handle is None:
            return None
        if self._lines == 0:
            self._files.unlink(self._name.text)
            self._release()
            return None
        sealed = self._name.seal(self._lines)
        try:
            self._files.rename(self._name.text, sealed.text)
        except OSError as error:
            if is_full(error):
                return None
            raise
        self._release()
        self._files.sync_folder()
        return sealed

    def _begin(self, at_ms: int) -> int:
        # Names of one writer sort in the order written, also when the clock goes back.
        self._last_ms = max(self._last_ms, at_ms)
        self._name = OpenName(self._last_ms, self._writer, self._acknowledged, *self._owner)
        try:
            handle = self._files.create(self._name.text)
        except OSError as error:
            if is_full(error):
                raise _full(error) from error
            raise
        # Without this the first power cut takes the name, and with it every synced byte.
        self._files.sync_folder()
        self._handle = handle
        return handle

    def _release(self) -> None:
        if self._handle is not None:
            self._files.close(self._handle)
        self._handle = None
        self._size = self._lines = 0


def _full(error: OSError) -> QueueUnavailable:
    return QueueUnavailable(f"expected room on the disk, found none: {error}", disk_full=True)
