"""Count what waits on the spool, from names and line ends alone."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.transport.files.port import Files
from penstock.transport.segment import OpenName, SegmentName

_LOOKS_MAX = 5


@dataclass(frozen=True, slots=True)
class Pending:
    """What lies on the spool at one moment. Some of it may be settled but not yet removed."""

    messages: int
    bytes: int
    segments: list[SegmentName]  # the sealed ones, oldest first
    oldest_ms: int | None
    writers: dict[str, int]  # for each writer, how many messages it has written in all
    open: dict[str, tuple[int, int]]  # writer -> start and whole lines of its open segment


def sealed_segments(files: Files) -> list[SegmentName]:
    """The sealed segments, oldest first."""
    return sorted(name for text in files.names() if (name := SegmentName.parse(text)))


def count_pending(files: Files) -> Pending:
    """Count the folder as it stood at one moment.

    Listing a folder is not atomic: a segment renamed meanwhile may be seen twice or not at all.
    So a count stands when the names are the same after it as before, and is made again otherwise.
    """
    for _ in range(_LOOKS_MAX):
        sizes = files.sizes()
        pending = _count(files, sizes)
        if sizes.keys() == set(files.names()):
            break
    return pending


def _count(files: Files, sizes: dict[str, int]) -> Pending:
    segments = sorted(name for text in sizes if (name := SegmentName.parse(text)))
    spans = [(name.ms, name.writer, name.start, name.lines) for name in segments]
    sealed = {(name.writer, name.start) for name in segments}
    opened: dict[str, tuple[int, int]] = {}
    for text in sizes:
        begun = OpenName.parse(text)
        if begun is not None and (begun.writer, begun.start) not in sealed:
            lines = files.whole_lines(text) or 0
            opened[begun.writer] = (begun.start, lines)
            spans.append((begun.ms, begun.writer, begun.start, lines))
    writers: dict[str, int] = {}
    for _, writer, start, lines in spans:
        writers[writer] = max(writers.get(writer, 0), start + lines)
    return Pending(
        messages=sum(lines for *_, lines in spans),
        bytes=sum(sizes.values()),
        segments=segments,
        oldest_ms=min((ms for ms, _, _, lines in spans if lines), default=None),
        writers=writers,
        open=opened,
    )
