"""Do to real files what the spool asks, and tell a living owner from a dead one.

A file that is open here is also locked here. The lock dies with the process, works across
containers that cannot see each other's process ids, and keeps two recoverers off one file.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_READ_BYTES = 1 << 20
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class DiskFiles:
    """The files of one real folder, made with all its parents if it is missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        _make(self._folder)

    def names(self) -> list[str]:
        return [path.name for path in self._folder.iterdir()]

    def sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # renamed or removed since it was listed
                    sizes[entry.name] = entry.stat(follow_symlinks=False).st_size
        return sizes

    def whole_lines(self, name: str) -> int | None:
        try:
            handle = os.open(self._folder / name, os.O_RDONLY)
        except FileNotFoundError:
            return None
        with _closing(handle):
            return sum(chunk.count(b"\n") for chunk in _chunks(handle))

    def create(self, name: str) -> int:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND
        handle = os.open(self._folder / name, flags, 0o600)
        if not self._lock(handle, name):
            os.close(handle)
            raise BlockingIOError(f"expected to own {name}, found another owner")
        return handle

    def claim(self, name: str) -> int | None:
        try:
            handle = os.open(self._folder / name, os.O_RDWR | os.O_APPEND)
        except FileNotFoundError:
            return None
        if self._lock(handle, name):
            return handle
        os.close(handle)
        return None

    def read(self, handle: int) -> bytes:
        return b"".join(_chunks(handle))

    def append(self, handle: int, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(handle, left) :]

    def truncate(self, handle: int, size: int) -> None:
        os.ftruncate(handle, size)

    def sync(self, handle: int) -> None:
        os.fdatasync(handle)

    def close(self, handle: int) -> None:
        os.close(handle)

    def rename(self, old: str, new: str) -> None:
        (self._folder / old).rename(self._folder / new)

    def unlink(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)

    def sync_folder(self) -> None:
        _sync_folder(self._folder)

    def _lock(self, handle: int, name: str) -> bool:
        """Lock the file and see that it still has its name: the last holder may have renamed it."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            named = (self._folder / name).stat()
        except (BlockingIOError, FileNotFoundError):
            return False
        return os.path.samestat(named, os.fstat(handle))


def started(pid: int) -> int:
    """A number that no other process under this id has, on this boot or another; 0: none lives."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
        boot = _BOOT_ID.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    # The command stands in parentheses and may hold anything, so we count from the last one.
    state, *fields = stat[stat.rindex(")") + 2 :].split()
    if state in "ZX":  # killed, and its files closed; only its parent has not looked yet
        return 0
    return int(fields[18]) << 32 | zlib.crc32(boot)


def is_alive(pid: int, pid_start: int) -> bool:
    """Whether the very process that `started` gave this number still runs."""
    return pid_start != 0 and started(pid) == pid_start


def _make(folder: Path) -> None:
    if folder.is_dir():
        return
    _make(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    # A folder that a power cut takes away takes its files along.
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    with _closing(handle):
        os.fsync(handle)


def _chunks(handle: int) -> Iterator[bytes]:
    """The file from its start, up to the size it has now."""
    at, size = 0, os.fstat(handle).st_size
    while at < size and (chunk := os.pread(handle, min(_READ_BYTES, size - at), at)):
        yield chunk
        at += len(chunk)


@contextmanager
def _closing(handle: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(handle)
