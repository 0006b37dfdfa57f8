"""Keep what a handler prints beside its step: the first 64 kB, and how much more there was.

Every call has a capture of its own in a ContextVar, so handlers that print at the same time do not
mix; what nobody captures goes where it always went.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TextIO

LOG_BYTES_MAX: Final = 64 * 1024

_current: ContextVar[Log | None] = ContextVar("penstock_prints", default=None)


class Log:
    """The beginning of a stream of bytes, and how many came after it."""

    def __init__(self, bytes_max: int = LOG_BYTES_MAX) -> None:
        self._kept = bytearray()
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self.dropped = 0

    def add(self, data: bytes) -> None:
        """Keep what fits, count the rest."""
        with self._lock:
            room = self._bytes_max - len(self._kept)
            self._kept += data[:room]
            self.dropped += max(0, len(data) - room)

    @property
    def kept(self) -> bytes:
        """The beginning."""
        with self._lock:
            return bytes(self._kept)

    def text(self) -> str | None:
        """What was kept, with a last line that says what was not; None when nothing came."""
        # PostgreSQL's text has no NUL.
        text = self.kept.decode(errors="replace").replace("\0", "\ufffd")
        if self.dropped:
            text += f"\n… {self.dropped} more bytes were printed and dropped\n"
        return text or None


class _RoutedBytes(io.RawIOBase):
    """The bytes below such a stream."""

    def __init__(self, inner: TextIO) -> None:
        self.inner = inner

    def write(self, data: Any) -> int:
        log = _current.get()
        if log is None:
            return self.inner.buffer.write(data)
        log.add(bytes(data))
        return len(data)

    def flush(self) -> None:
        if _current.get() is None:
            self.inner.flush()

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Stay open: the stream below belongs to the process."""


class _Routed(io.TextIOBase):
    """A standard stream that gives a captured call's text to its log."""

    def __init__(self, inner: TextIO) -> None:
        self.inner = inner
        self.buffer = _RoutedBytes(inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def close(self) -> None:
        """Stay open: the stream below belongs to the process."""

    def write(self, text: str) -> int:
        log = _current.get()
        if log is None:
            return self.inner.write(text)
        log.add(text.encode(errors="replace"))
        return len(text)

    def flush(self) -> None:
        if _current.get() is None:
            self.inner.flush()

    def isatty(self) -> bool:
        return _current.get() is None and self.inner.isatty()

    def fileno(self) -> int:
        return self.inner.fileno()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"


@contextmanager
def captured(log: Log) -> Iterator[Log]:
    """What this context prints goes to `log`."""
    _install()
    token = _current.set(log)
    try:
        yield log
    finally:
        _current.reset(token)


def _install() -> None:
    """Stand in front of the standard streams, once; again when somebody replaced them."""
    if not isinstance(sys.stdout, _Routed):
        sys.stdout = _Routed(sys.stdout)
    if not isinstance(sys.stderr, _Routed):
        sys.stderr = _Routed(sys.stderr)
