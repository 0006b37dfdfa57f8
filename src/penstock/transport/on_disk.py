"""Keep the durable queue in a folder: many senders, one writer thread, one sync for all who wait.

    send ─▶ waiting ─▶ ┌ writer thread ─────────────────────────────┐
    send ─▶ waiting ─▶ │ take all ─▶ append ─▶ fdatasync ─▶ resolve │ ─▶ seg-….jsonl ─▶ ingress
    send ─▶ waiting ─▶ └────────────────────────────────────────────┘

Whoever sends while a sync runs shares the next one. What order the disk is asked in is decided in
writer.py; here are the thread and the system calls. A full disk is refused and passes; any other
error of the disk breaks the spool for good: `fault` says why, and the process should exit.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from penstock.base.errors import QueueUnavailable
from penstock.transport.backlog import Pending, count_pending, sealed_segments
from penstock.transport.files.on_disk import DiskFiles, is_alive, started
from penstock.transport.files.port import Files
from penstock.transport.port import Message
from penstock.transport.quota import Quota
from penstock.transport.recovery import seal_orphans
from penstock.transport.segment import SegmentName, frame
from penstock.transport.writer import SegmentWriter

__all__ = ["Pending", "Spool", "pending", "recover", "sealed"]

_RECOVER_EVERY_MS = 5_000
_WAITING_BYTES_MAX = 64_000_000
_CLOSE_S = 10

_log = structlog.get_logger(__name__)


def sealed(folder: Path) -> list[SegmentName]:
    """The sealed segments, oldest first."""
    return sealed_segments(DiskFiles(folder))


def recover(folder: Path) -> int:
    """Seal what dead writers left open; how many segments that was."""
    return seal_orphans(DiskFiles(folder), is_alive, failed=_note_unsealed)


def pending(folder: Path) -> Pending:
    """Count what lies on the spool."""
    return count_pending(DiskFiles(folder))


@dataclass(slots=True)
class _Waiting:
    """One call of send, until its bytes are durable."""

    data: bytes
    lines: int
    durable: Future[None] = field(default_factory=Future)

    def refuse(self, detail: str, *, disk_full: bool = False) -> None:
        self.durable.set_exception(QueueUnavailable(detail, disk_full=disk_full))


class Spool:
    """The Transport that keeps messages in a folder until the ingress has settled them."""

    def __init__(
        self, folder: Path, *, segment_bytes: int, segment_age_ms: int, bytes_max: int,
        files: Files | None = None,
    ) -> None:  # fmt: skip
        self._files = files if files is not None else DiskFiles(folder)
        self._pid = os.getpid()
        self._group_bytes_max = segment_bytes
        self._quota = Quota(self._files, bytes_max)
        self._recover()
        self._writer = SegmentWriter(
            self._files, writer=secrets.token_hex(6), owner=(self._pid, started(self._pid)),
            segment_bytes=segment_bytes, segment_age_ms=segment_age_ms,
            # Later than everything already there, whatever the clock says.
            floor_ms=max((name.ms + 1 for name in sealed_segments(self._files)), default=0),
        )  # fmt: skip
        self._bell = threading.Condition()
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._group: list[_Waiting] = []
        self._closing = False
        self._fault: str | None = None
        self._thread = threading.Thread(target=self._run, name="penstock-spool", daemon=True)
        self._thread.start()

    @property
    def fault(self) -> str | None:
        """Why the spool is broken for good, if it is."""
        return self._fault

    @property
    def acknowledged(self) -> int:
        """How many messages this spool has made durable."""
        return self._writer.acknowledged

    def send(self, messages: Sequence[Message]) -> Future[None]:
        """Queue all of them; the future resolves when all are durable, or fails for all of them.

        ValueError, at once, for a message that cannot be framed.
        """
        waiting = _Waiting(b"".join(map(frame, messages)), len(messages))
        if not messages:
            waiting.durable.set_result(None)
        elif os.getpid() != self._pid:  # its thread, and perhaps its lock, stayed behind
            waiting.refuse("the spool was opened before this process was forked")
        else:
            self._enqueue(waiting)
        return waiting.durable

    def close(self) -> None:
        """Make durable what was sent, seal the segment, and stop; at most ten seconds."""
        with self._bell:
            self._closing = True
            self._bell.notify()
        self._thread.join(_CLOSE_S)

    def _enqueue(self, waiting: _Waiting) -> None:
        with self._bell:
            if self._fault is not None:
                waiting.refuse(f"the spool is broken: {self._fault}")
            elif self._closing:
                waiting.refuse("the spool is closed")
            elif self._waiting_bytes > _WAITING_BYTES_MAX:
                waiting.refuse(f"{self._waiting_bytes} bytes are waiting for the disk already")
            else:
                self._waiting.append(waiting)
                self._waiting_bytes += len(waiting.data)
                self._bell.notify()

    def _run(self) -> None:
        next_recovery = _tick_ms() + _RECOVER_EVERY_MS
        fault: str | None = "its thread ended"
        try:
            while self._take(next_recovery):
                if self._group:
                    self._commit(self._group)
                tick = _tick_ms()
                self._writer.rotate_if_due(tick)
                if tick >= next_recovery:
                    next_recovery = tick + _RECOVER_EVERY_MS
                    self._recover()
            self._writer.seal()
            fault = None
        except OSError as error:
            fault = str(error)
            _log.error("spool_broken", detail=fault)
        finally:
            self._give_up(fault)

    def _take(self, next_recovery: int) -> bool:
        """Wait for something to do and take what waits, up to a segment of it; False: closed."""
        with self._bell:
            if not self._waiting and not self._closing:
                tick = _tick_ms()
                due = self._writer.due_in_ms(tick)
                recovery = max(0, next_recovery - tick)
                self._bell.wait((recovery if due is None else min(due, recovery)) / 1000)
            size = 0
            while self._waiting and size < self._group_bytes_max:
                waiting = self._waiting.popleft()
                size += len(waiting.data)
                # From here on it cannot be cancelled; one cancelled before is not written.
                if waiting.durable.set_running_or_notify_cancel():
                    self._group.append(waiting)
            self._waiting_bytes -= size
            return bool(self._group or self._waiting or not self._closing)

    def _commit(self, group: list[_Waiting]) -> None:
        tick = _tick_ms()
        room = self._quota.room(tick)
        admitted: list[_Waiting] = []
        for waiting in group:
            if len(waiting.data) <= room:
                room -= len(waiting.data)
                admitted.append(waiting)
            else:
                waiting.refuse("the spool holds as much as it may", disk_full=True)
        if admitted:
            self._write(admitted, tick)
        group.clear()

    def _write(self, admitted: list[_Waiting], tick: int) -> None:
        data = b"".join(waiting.data for waiting in admitted)
        lines = sum(waiting.lines for waiting in admitted)
        try:
            self._writer.append_group(data, lines, at_ms=_now_ms(), tick_ms=tick)
        except QueueUnavailable as full:
            for waiting in admitted:
                waiting.refuse(full.detail, disk_full=True)
            return
        self._quota.spend(len(data))
        for waiting in admitted:
            waiting.durable.set_result(None)

    def _give_up(self, fault: str | None) -> None:
        with self._bell:
            self._fault, self._closing = fault, True
            left = [waiting for waiting in self._group if not waiting.durable.done()]
            left += [each for each in self._waiting if each.durable.set_running_or_notify_cancel()]
            self._group.clear()
            self._waiting.clear()
        for waiting in left:
            waiting.refuse(f"the spool is broken: {fault}")

    def _recover(self) -> None:
        seal_orphans(self._files, is_alive, failed=_note_unsealed)


def _note_unsealed(name: str, error: OSError) -> None:
    _log.warning("segment_not_sealed", segment=name, detail=str(error))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _tick_ms() -> int:
    return time.monotonic_ns() // 1_000_000
