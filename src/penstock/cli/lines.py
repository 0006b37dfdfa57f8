"""Cut a file of any size into batches of lines, holding one batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from penstock.base.errors import NotInProfile

BATCH_LINES = 2_000
BATCH_BYTES = 500_000
LINE_BYTES_MAX = 8_000_000  # what the HTTP door reads at most; a longer line is no message


@dataclass(frozen=True, slots=True)
class Batch:
    """Some lines, without their ends, and where they were."""

    first_line: int
    last_line: int
    lines: tuple[bytes, ...]
    size: int  # bytes of the file, line ends and skipped lines included


def batches(
    file: BinaryIO,
    *,
    from_line: int = 1,
    lines_max: int = BATCH_LINES,
    bytes_max: int = BATCH_BYTES,
    line_bytes_max: int = LINE_BYTES_MAX,
) -> Iterator[Batch]:
    """Every line from `from_line` on, verbatim; an empty line is no message and is left out."""
    number, first, size, kept = 0, 1, 0, list[bytes]()
    while raw := file.readline(line_bytes_max + 1):
        number += 1
        if len(raw) > line_bytes_max and not raw.endswith(b"\n"):
            if size:
                yield Batch(first, number - 1, tuple(kept), size)
            raise NotInProfile(
                "too_large", f"line {number}: expected at most {line_bytes_max} bytes, found more"
            )
        size += len(raw)
        line = raw.removesuffix(b"\n")
        if line.strip(b"\r \t") and number >= from_line:
            kept.append(line)
        if len(kept) >= lines_max or size >= bytes_max:
            yield Batch(first, number, tuple(kept), size)
            first, size, kept = number + 1, 0, []
    if size:
        yield Batch(first, number, tuple(kept), size)
