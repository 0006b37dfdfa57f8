"""What dead writers left open is sealed once, whole, and nothing of a living one is touched."""

from __future__ import annotations

import errno
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.transport.files.in_memory import MemoryFiles
from penstock.transport.files.on_disk import DiskFiles, started
from penstock.transport.on_disk import pending, recover, sealed
from penstock.transport.port import Message
from penstock.transport.recovery import seal_orphans
from penstock.transport.segment import OpenName, SegmentName, frame, parse

DEAD = (2**22 + 1, 1)  # beyond the largest process id
WRITER = "0123456789ab"


def lines(count: int) -> bytes:
    return b"".join(frame(Message(b"%d" % n, 1, "default", "http")) for n in range(count))


def leave(folder: Path, content: bytes, *, owner: tuple[int, int] = DEAD, start: int = 0) -> Path:
    name = OpenName(1_000, WRITER, start, *owner)
    path = folder / name.text
    path.write_bytes(content)
    return path


def test_an_orphan_is_sealed_under_the_name_its_writer_would_have_given_it(tmp_path: Path) -> None:
    leave(tmp_path, lines(3), start=40)

    count = recover(tmp_path)

    assert count == 1
    assert sealed(tmp_path) == [SegmentName(1_000, WRITER, 40, 3)]
    assert (tmp_path / sealed(tmp_path)[0].text).read_bytes() == lines(3)


@pytest.mark.parametrize("torn", range(1, len(lines(1))))
def test_a_torn_last_line_is_cut_wherever_it_was_torn(tmp_path: Path, torn: int) -> None:
    leave(tmp_path, lines(2) + lines(1)[:torn])

    recover(tmp_path)

    (name,) = sealed(tmp_path)
    assert name.lines == 2
    assert (tmp_path / name.text).read_bytes() == lines(2)


@pytest.mark.parametrize("content", [b"", b"torn", bytes(4_096), b"no frame\n"])
def test_an_orphan_without_a_whole_line_is_removed(tmp_path: Path, content: bytes) -> None:
    leave(tmp_path, content)

    count = recover(tmp_path)

    assert count == 0
    assert list(tmp_path.iterdir()) == []


def test_a_line_that_was_changed_before_the_crash_is_kept_for_the_ingress_to_see(
    tmp_path: Path,
) -> None:
    damaged = lines(1).replace(b"default", b"defauIt")
    leave(tmp_path, damaged + lines(2))

    recover(tmp_path)

    (name,) = sealed(tmp_path)
    content = (tmp_path / name.text).read_bytes()
    assert name.lines == len(list(parse(content))) == 3


def test_a_living_writers_segment_is_left_alone(tmp_path: Path) -> None:
    path = leave(tmp_path, lines(1), owner=(os.getpid(), started(os.getpid())))

    count = recover(tmp_path)

    assert count == 0
    assert path.exists()


def test_a_segment_that_is_locked_is_left_alone_even_if_its_owner_seems_dead(
    tmp_path: Path,
) -> None:
    # A writer in another container: its process id means nothing here, its lock does.
    path = leave(tmp_path, lines(1))
    files = DiskFiles(tmp_path)
    handle = files.claim(path.name)
    assert handle is not None
    while_held = recover(tmp_path)
    files.close(handle)

    assert while_held == 0
    assert recover(tmp_path) == 1


def test_foreign_files_are_left_alone(tmp_path: Path) -> None:
    for name in ("notes.txt", ".open-later.jsonl", "seg-x.jsonl"):
        (tmp_path / name).write_bytes(b"mine")

    assert recover(tmp_path) == 0
    assert len(list(tmp_path.iterdir())) == 3
    assert sealed(tmp_path) == []


def test_many_recoverers_at_once_seal_every_orphan_once(tmp_path: Path) -> None:
    for number in range(60):
        name = OpenName(1_000, f"{number:012x}", 0, *DEAD)
        (tmp_path / name.text).write_bytes(lines(number % 3 + 1) + b"torn")

    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda _: recover(tmp_path), range(8)))

    assert sum(counts) == 60
    assert [name.lines for name in sealed(tmp_path)] == [n % 3 + 1 for n in range(60)]
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {lines(n) for n in (1, 2, 3)}


@pytest.mark.parametrize("operation", ["claim", "truncate", "sync", "rename", "sync_folder"])
def test_an_orphan_that_cannot_be_sealed_now_is_reported_and_sealed_later(operation: str) -> None:
    failing = {operation}
    reported: list[str] = []

    def before(asked: str) -> None:
        if asked in failing:
            failing.clear()
            raise OSError(errno.EIO, asked)

    files = MemoryFiles(random.Random(0), before)
    handle = files.create(OpenName(1_000, WRITER, 0, *DEAD).text)
    files.append(handle, lines(2) + b"torn")
    files.close(handle)

    for _ in range(2):
        seal_orphans(
            files, lambda _pid, _start: False, failed=lambda name, _error: reported.append(name)
        )

    assert len(reported) == 1
    assert files.names() == [SegmentName(1_000, WRITER, 0, 2).text]


def test_pending_counts_sealed_and_open_segments_by_their_writers(tmp_path: Path) -> None:
    for name in (SegmentName(900, WRITER, 0, 3), SegmentName(950, "f" * 12, 7, 2)):
        (tmp_path / name.text).write_bytes(lines(name.lines))
    leave(tmp_path, lines(2) + b"torn", start=3)

    found = pending(tmp_path)

    assert found.messages == 7
    assert found.bytes == len(lines(3)) + 2 * len(lines(2)) + 4
    assert [name.writer for name in found.segments] == [WRITER, "f" * 12]
    assert found.oldest_ms == 900
    assert found.writers == {WRITER: 5, "f" * 12: 9}
    assert found.open == {WRITER: (3, 2)}


def test_a_segment_seen_under_both_its_names_counts_once(tmp_path: Path) -> None:
    path = leave(tmp_path, lines(2))
    (tmp_path / SegmentName(1_000, WRITER, 0, 2).text).hardlink_to(path)

    assert pending(tmp_path).messages == 2


def test_nothing_is_pending_in_a_new_spool(tmp_path: Path) -> None:
    found = pending(tmp_path / "new")

    assert (found.messages, found.bytes, found.segments, found.oldest_ms) == (0, 0, [], None)
