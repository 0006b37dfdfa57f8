"""Name the few things the spool asks of a disk, so that a disk that fails can stand in for it.

`on_disk.DiskFiles` is the real one; `in_memory.MemoryFiles` forgets what was not synced. All
names are names in one folder. Every method raises OSError as the operating system does.
"""

from __future__ import annotations

import errno
from typing import Protocol

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Files(Protocol):
    """The files of one folder."""

    def names(self) -> list[str]:
        """Everything in the folder, in no order."""

    def sizes(self) -> dict[str, int]:
        """Everything in the folder, with its bytes."""

    def whole_lines(self, name: str) -> int | None:
        """How many line ends the file holds now; None if it is gone."""

    def create(self, name: str) -> int:
        """Make a new file, held by this process until closed, and return its handle."""

    def claim(self, name: str) -> int | None:
        """A handle on an existing file, held likewise; None if it is gone or somebody holds it."""

    def read(self, handle: int) -> bytes:
        """All of the file."""

    def append(self, handle: int, data: bytes) -> None:
        """Write at the end. After an error any part of `data` may be there."""

    def truncate(self, handle: int, size: int) -> None:
        """Cut the file to `size` bytes."""

    def sync(self, handle: int) -> None:
        """Return when the file's bytes survive a power cut."""

    def close(self, handle: int) -> None:
        """Let go of the file."""

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, replacing whatever had it."""

    def unlink(self, name: str) -> None:
        """Remove a name; it is no error if it is gone."""

    def sync_folder(self) -> None:
        """Return when the folder's names survive a power cut."""


def is_full(error: OSError) -> bool:
    """Whether the disk, or our share of it, is full: it may pass, and nothing is broken."""
    return error.errno in _FULL
