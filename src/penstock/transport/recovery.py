"""Seal the segments that dead writers left open, keeping every whole line.

A torn last line was never acknowledged and is cut. A whole one may not have been either, but is
kept: before the acknowledgement at least once is what we promise, after it exactly once. Any
number of processes may do this at the same time; `Files.claim` lets one of them do each segment.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.transport.files.port import Files
from penstock.transport.segment import OpenName, valid_prefix


def seal_orphans(
    files: Files,
    is_alive: Callable[[int, int], bool],
    *,
    failed: Callable[[str, OSError], None],
) -> int:
    """Seal every open segment whose owner (pid, start) is dead; how many were.

    One that cannot be sealed now is reported and left for the next time.
    """
    sealed = touched = 0
    for text in files.names():
        name = OpenName.parse(text)
        if name is None or is_alive(name.pid, name.pid_start):
            continue
        try:
            lines = _seal(files, name)
        except OSError as error:
            failed(text, error)
            continue
        if lines is not None:
            touched += 1
            sealed += lines > 0
    if touched:
        try:
            files.sync_folder()
        except OSError as error:
            failed("the folder", error)  # at worst the old names come back, and we with them
    return sealed


def _seal(files: Files, name: OpenName) -> int | None:
    """How many lines were sealed; None if another process has the segment."""
    handle = files.claim(name.text)
    if handle is None:
        return None
    try:
        content = files.read(handle)
        whole = valid_prefix(content)
        lines = content.count(b"\n", 0, whole)
        if lines == 0:
            files.unlink(name.text)
            return 0
        if whole < len(content):
            files.truncate(handle, whole)
        # Lines that nobody synced are promised by the name from now on, so they are synced first.
        files.sync(handle)
        files.rename(name.text, name.seal(lines).text)
        return lines
    finally:
        files.close(handle)
