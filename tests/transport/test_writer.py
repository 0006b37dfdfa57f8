"""The writer's protocol, on a disk that remembers what it was asked and can refuse."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

import pytest

from penstock.base.errors import QueueUnavailable
from penstock.transport.files.in_memory import MemoryFiles
from penstock.transport.port import Message
from penstock.transport.segment import OpenName, SegmentName, frame, parse
from penstock.transport.writer import SegmentWriter

WRITER = "0123456789ab"


class Disk:
    """A memory disk with a diary, and a list of operations that fail next."""

    def __init__(self) -> None:
        self.diary: list[str] = []
        self.failures: dict[str, int] = {}
        self.files = MemoryFiles(random.Random(1), self._before)

    def _before(self, operation: str) -> None:
        self.diary.append(operation)
        if operation in self.failures:
            raise OSError(self.failures.pop(operation), operation)

    def lines(self, name: str) -> list[int]:
        handle = self.files.claim(name)
        assert handle is not None
        content = self.files.read(handle)
        self.files.close(handle)
        return [int(line.json) for line in parse(content) if isinstance(line, Message)]


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def writer(disk: Disk) -> SegmentWriter:
    return SegmentWriter(
        disk.files, writer=WRITER, owner=(7, 8), segment_bytes=200, segment_age_ms=50
    )


def append(writer: SegmentWriter, *numbers: int, at_ms: int = 1_000, tick_ms: int = 0) -> None:
    data = b"".join(frame(Message(b"%d" % n, 1, "default", "http")) for n in numbers)
    writer.append_group(data, len(numbers), at_ms=at_ms, tick_ms=tick_ms)


def test_the_disk_is_asked_in_the_order_of_the_protocol(disk: Disk, writer: SegmentWriter) -> None:
    append(writer, 1)
    append(writer, 2)
    writer.seal()

    assert disk.diary == [
        "create", "sync_folder", "append", "sync", "append", "sync", "rename", "sync_folder",
    ]  # fmt: skip


def test_a_segment_is_hidden_until_it_is_sealed(disk: Disk, writer: SegmentWriter) -> None:
    append(writer, 1, 2, 3)
    before = disk.files.names()
    sealed = writer.seal()

    assert before == [OpenName(1_000, WRITER, 0, 7, 8).text]
    assert sealed == SegmentName(1_000, WRITER, 0, 3)
    assert disk.files.names() == [sealed.text]
    assert disk.lines(sealed.text) == [1, 2, 3]


def test_the_next_segment_starts_where_the_last_one_ended(
    disk: Disk, writer: SegmentWriter
) -> None:
    append(writer, 1, 2, 3)
    first = writer.seal()
    append(writer, 4, at_ms=2_000)
    second = writer.seal()

    assert first is not None
    assert second == SegmentName(2_000, WRITER, first.end, 1)
    assert writer.acknowledged == 4


def test_a_segment_is_sealed_at_its_size(writer: SegmentWriter) -> None:
    append(writer, *range(3))
    early = writer.rotate_if_due(0)
    append(writer, *range(3, 10))

    assert early is None
    assert writer.rotate_if_due(0) == SegmentName(1_000, WRITER, 0, 10)


def test_age_counts_from_the_first_message_of_the_segment(writer: SegmentWriter) -> None:
    append(writer, 1, tick_ms=100)
    append(writer, 2, tick_ms=149)

    assert writer.due_in_ms(149) == 1
    assert writer.rotate_if_due(149) is None
    assert writer.rotate_if_due(150) == SegmentName(1_000, WRITER, 0, 2)
    assert writer.due_in_ms(150) is None


def test_nothing_is_made_before_the_first_message_and_nothing_is_due(
    disk: Disk, writer: SegmentWriter
) -> None:
    assert writer.rotate_if_due(10**9) is None
    assert writer.seal() is None
    assert writer.due_in_ms(0) is None
    assert disk.diary == []


def test_a_clock_that_goes_back_ten_years_does_not_reorder_a_writer(
    disk: Disk, writer: SegmentWriter
) -> None:
    append(writer, 1, at_ms=1_700_000_000_000)
    first = writer.seal()
    append(writer, 2, at_ms=1_400_000_000_000)
    second = writer.seal()

    assert first is not None
    assert second is not None
    assert first < second
    assert first.text < second.text


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("operation", ["append", "create"])
def test_a_full_disk_refuses_the_group_leaves_no_trace_of_it_and_passes(
    disk: Disk, writer: SegmentWriter, operation: str, number: int
) -> None:
    if operation == "append":
        append(writer, 1)
    disk.failures[operation] = number

    with pytest.raises(QueueUnavailable) as refused:
        append(writer, 2, 3, 4)
    append(writer, 5)
    sealed = writer.seal()

    assert refused.value.disk_full
    assert sealed is not None
    assert disk.lines(sealed.text) == ([1, 5] if operation == "append" else [5])
    assert sealed.lines == writer.acknowledged


def test_what_a_full_disk_cut_off_does_not_come_back_with_a_power_cut(
    disk: Disk, writer: SegmentWriter
) -> None:
    append(writer, 1)
    disk.failures["append"] = errno.ENOSPC
    with pytest.raises(QueueUnavailable):
        append(writer, *range(2, 9))
    sealed = writer.seal()
    disk.files.cut_power()

    assert sealed is not None
    assert disk.files.sizes() == {sealed.text: len(frame(Message(b"1", 1, "default", "http")))}


def test_an_empty_segment_is_removed_and_never_sealed(disk: Disk, writer: SegmentWriter) -> None:
    disk.failures["append"] = errno.ENOSPC
    with pytest.raises(QueueUnavailable):
        append(writer, 1)

    assert writer.rotate_if_due(10**9) is None
    assert writer.seal() is None
    assert disk.files.names() == []


def test_a_full_disk_at_sealing_only_puts_it_off(disk: Disk, writer: SegmentWriter) -> None:
    append(writer, 1)
    disk.failures["rename"] = errno.ENOSPC
    first_try = writer.rotate_if_due(60)
    append(writer, 2)

    assert first_try is None
    assert writer.due_in_ms(60) == 50
    assert writer.rotate_if_due(110) == SegmentName(1_000, WRITER, 0, 2)


@pytest.mark.parametrize("operation", ["create", "sync_folder", "append", "sync"])
def test_any_other_error_of_the_disk_goes_to_the_caller_unhandled(
    disk: Disk, writer: SegmentWriter, operation: str
) -> None:
    disk.failures[operation] = errno.EIO

    with pytest.raises(OSError, match=operation):
        append(writer, 1)
    assert writer.acknowledged == 0
    assert disk.diary[-1] == operation


@pytest.mark.parametrize("operation", ["rename", "sync_folder"])
def test_an_error_at_sealing_goes_to_the_caller_unhandled(
    disk: Disk, writer: SegmentWriter, operation: str
) -> None:
    append(writer, 1)
    disk.failures[operation] = errno.EIO

    with pytest.raises(OSError, match=operation):
        writer.seal()


@pytest.mark.parametrize("seed", range(40))
def test_what_append_group_returned_for_survives_a_power_cut(seed: int) -> None:
    files = MemoryFiles(random.Random(seed))
    writer = SegmentWriter(files, writer=WRITER, owner=(7, 8), segment_bytes=90, segment_age_ms=50)
    steps: list[Callable[[], object]] = [lambda: append(writer, 1), lambda: append(writer, 2)]
    for step in steps:
        step()
        writer.rotate_if_due(0)
    files.cut_power()

    content = bytearray()
    for name in files.names():
        handle = files.claim(name)
        assert handle is not None
        content += files.read(handle)
    assert [int(line.json) for line in parse(bytes(content)) if isinstance(line, Message)] == [1, 2]
