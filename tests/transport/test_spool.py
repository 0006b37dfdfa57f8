"""The spool's thread: durable before resolved, one sync for all who wait, and honest refusals."""

from __future__ import annotations

import errno
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from penstock.base.errors import QueueUnavailable
from penstock.transport import on_disk
from penstock.transport.files.in_memory import MemoryFiles
from penstock.transport.files.on_disk import DiskFiles
from penstock.transport.files.port import Files
from penstock.transport.on_disk import Spool, pending, sealed
from penstock.transport.port import Message
from penstock.transport.segment import OpenName, SegmentName, frame, parse

WAIT_S = 20


class Gate:
    """A memory disk whose operations can be held up, failed and counted."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.failures: dict[str, int] = {}
        self.open = threading.Event()
        self.open.set()
        self.reached = threading.Event()
        self.files = MemoryFiles(random.Random(1), self._before)

    def _before(self, operation: str) -> None:
        self.counts[operation] = self.counts.get(operation, 0) + 1
        if operation == "sync":
            self.reached.set()
            assert self.open.wait(WAIT_S)
        if operation in self.failures:
            raise OSError(self.failures[operation], operation)


class CountingFiles(DiskFiles):
    """A real folder that counts its syncs."""

    syncs = 0

    def sync(self, handle: int) -> None:
        self.syncs += 1
        super().sync(handle)


def message(number: int, *, size: int = 0) -> Message:
    return Message(b"%d%b" % (number, b" " * size), 1_000, "default", "sdk")


def open_spool(
    folder: Path, *, files: Files | None = None, segment_bytes: int = 1_000_000,
    segment_age_ms: int = 600_000, bytes_max: int = 10**9,
) -> Spool:  # fmt: skip
    return Spool(
        folder, segment_bytes=segment_bytes, segment_age_ms=segment_age_ms, bytes_max=bytes_max,
        files=files,
    )  # fmt: skip


def numbers(folder: Path) -> list[int]:
    found = []
    for name in sealed(folder):
        lines = list(parse((folder / name.text).read_bytes()))
        assert len(lines) == name.lines
        found += [int(line.json) for line in lines if isinstance(line, Message)]
    return found


def eventually(claim: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + WAIT_S
    while not claim() and time.monotonic() < deadline:
        threading.Event().wait(0.002)
    return claim()


def refusal(future: Future[None]) -> QueueUnavailable:
    with pytest.raises(QueueUnavailable) as refused:
        future.result(WAIT_S)
    return refused.value


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def spool(gate: Gate, tmp_path: Path) -> Iterator[Spool]:
    opened = open_spool(tmp_path, files=gate.files)
    yield opened
    gate.open.set()
    opened.close()


def test_what_was_sent_is_in_a_sealed_segment_after_close(tmp_path: Path) -> None:
    with closing(open_spool(tmp_path)) as spool:
        spool.send([message(1), message(2)]).result(WAIT_S)
        spool.send([message(3)])

    assert numbers(tmp_path) == [1, 2, 3]
    assert pending(tmp_path).messages == 3


def test_what_was_acknowledged_is_on_disk_before_the_segment_is_sealed(tmp_path: Path) -> None:
    with closing(open_spool(tmp_path)) as spool:
        spool.send([message(1), message(2)]).result(WAIT_S)
        found = pending(tmp_path)

    assert found.messages == 2
    assert list(found.open.values()) == [(0, 2)]
    assert found.segments == []


def test_thirty_two_threads_share_syncs_and_every_message_is_kept_once(tmp_path: Path) -> None:
    files = CountingFiles(tmp_path)
    spool = open_spool(tmp_path, files=files, segment_bytes=20_000)

    def work(thread: int) -> None:
        for n in range(200):
            spool.send([message(thread * 200 + n)]).result(WAIT_S)

    with closing(spool), ThreadPoolExecutor(32) as pool:
        list(pool.map(work, range(32)))

    assert sorted(numbers(tmp_path)) == list(range(6_400))
    assert files.syncs < 6_400 / 3
    ends = [name.end for name in sealed(tmp_path)]
    assert [name.start for name in sealed(tmp_path)] == [0, *ends[:-1]]


def test_everything_sent_during_one_sync_shares_the_next(gate: Gate, spool: Spool) -> None:
    gate.open.clear()
    first = spool.send([message(0)])
    assert gate.reached.wait(WAIT_S)
    others = [spool.send([message(n), message(n)]) for n in range(1, 101)]
    waiting = [future.done() for future in (first, *others)]
    gate.open.set()
    for future in (first, *others):
        future.result(WAIT_S)

    assert not any(waiting)
    assert gate.counts["sync"] == 2
    assert spool.acknowledged == 201


def test_a_message_is_not_acknowledged_while_its_sync_runs(gate: Gate, spool: Spool) -> None:
    gate.open.clear()
    future = spool.send([message(1)])
    assert gate.reached.wait(WAIT_S)

    assert not future.done()
    assert spool.acknowledged == 0


def test_an_idle_spool_seals_its_segment_by_age(tmp_path: Path) -> None:
    with closing(open_spool(tmp_path, segment_age_ms=5)) as spool:
        spool.send([message(1)]).result(WAIT_S)

        assert eventually(lambda: numbers(tmp_path) == [1])
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_segments_are_sealed_by_size_and_number_their_messages_without_a_gap(
    tmp_path: Path,
) -> None:
    with closing(open_spool(tmp_path, segment_bytes=1_000)) as spool:
        for n in range(50):
            spool.send([message(n, size=100)]).result(WAIT_S)

    names = sealed(tmp_path)
    assert len(names) > 5
    assert [name.start for name in names] == [0, *(name.end for name in names[:-1])]
    assert numbers(tmp_path) == list(range(50))


def test_a_large_backlog_is_written_in_groups_of_about_a_segment(
    gate: Gate, tmp_path: Path
) -> None:
    with closing(open_spool(tmp_path, files=gate.files, segment_bytes=1_000)) as spool:
        gate.open.clear()
        futures = [spool.send([message(0)])]
        assert gate.reached.wait(WAIT_S)
        futures += [spool.send([message(n, size=460)]) for n in range(1, 21)]
        gate.open.set()
        for future in futures:
            future.result(WAIT_S)

    names = [name for text in gate.files.names() if (name := SegmentName.parse(text))]
    assert sum(name.lines for name in names) == 21
    assert max(name.lines for name in names) == 4  # the first message, and a group of three


def test_nothing_sent_is_nothing_to_wait_for(gate: Gate, spool: Spool) -> None:
    spool.send([]).result(WAIT_S)

    assert gate.counts == {}


def test_a_message_that_cannot_be_framed_refuses_its_whole_batch(tmp_path: Path) -> None:
    with closing(open_spool(tmp_path)) as spool, pytest.raises(ValueError, match="line feed"):
        spool.send([message(1), Message(b"\n", 1, "default", "sdk")])

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("operation", ["create", "sync_folder", "append", "sync"])
def test_a_failing_disk_breaks_the_spool_for_good(gate: Gate, spool: Spool, operation: str) -> None:
    gate.failures[operation] = errno.EIO
    first = refusal(spool.send([message(1)]))
    gate.failures.clear()
    second = refusal(spool.send([message(2)]))

    assert "broken" in first.detail
    assert "broken" in second.detail
    assert not first.disk_full
    assert spool.fault is not None
    assert gate.counts.get("rename") is None


def test_everybody_who_waits_hears_of_a_failed_sync_and_it_is_not_tried_again(
    gate: Gate, spool: Spool
) -> None:
    gate.open.clear()
    gate.failures["sync"] = errno.EIO
    futures = [spool.send([message(0)])]
    assert gate.reached.wait(WAIT_S)
    futures += [spool.send([message(n)]) for n in range(1, 10)]
    gate.open.set()

    assert all("broken" in refusal(future).detail for future in futures)
    assert gate.counts["sync"] == 1


def test_a_segment_whose_sealing_failed_keeps_what_was_acknowledged(
    gate: Gate, tmp_path: Path
) -> None:
    spool = open_spool(tmp_path, files=gate.files, segment_bytes=1)
    gate.failures["rename"] = errno.EIO
    spool.send([message(1)]).result(WAIT_S)

    assert eventually(lambda: spool.fault is not None)
    assert sum(gate.files.whole_lines(name) or 0 for name in gate.files.names()) == 1


@pytest.mark.parametrize("operation", ["append", "create"])
def test_a_full_disk_is_refused_and_passes(gate: Gate, spool: Spool, operation: str) -> None:
    gate.failures[operation] = errno.ENOSPC
    refused = [refusal(spool.send([message(n)])) for n in range(3)]
    gate.failures.clear()
    spool.send([message(3)]).result(WAIT_S)

    assert all(each.disk_full for each in refused)
    assert spool.fault is None
    assert spool.acknowledged == 1


def test_a_spool_that_holds_its_share_refuses_until_the_ingress_has_made_room(
    tmp_path: Path,
) -> None:
    with closing(open_spool(tmp_path, segment_bytes=1_000, bytes_max=5_000)) as spool:
        accepted = 0
        while True:
            future = spool.send([message(accepted, size=400)])
            if future.exception(WAIT_S) is not None:
                break
            accepted += 1
        full = refusal(future)
        held = sum(path.stat().st_size for path in tmp_path.iterdir())
        for name in sealed(tmp_path):
            (tmp_path / name.text).unlink()

        assert full.disk_full
        assert 4_000 < held <= 5_000
        assert eventually(lambda: spool.send([message(0, size=400)]).exception(WAIT_S) is None)


def test_a_batch_too_large_for_the_share_does_not_keep_out_a_small_one(tmp_path: Path) -> None:
    with closing(open_spool(tmp_path, bytes_max=2_000)) as spool:
        large = spool.send([message(n, size=400) for n in range(10)])
        small = spool.send([message(99)])

        assert refusal(large).disk_full
        small.result(WAIT_S)

    assert numbers(tmp_path) == [99]


def test_a_send_cancelled_before_it_is_written_is_not_written(gate: Gate, spool: Spool) -> None:
    gate.open.clear()
    first = spool.send([message(1)])
    assert gate.reached.wait(WAIT_S)
    second, third = spool.send([message(2)]), spool.send([message(3)])
    cancelled = (first.cancel(), second.cancel())
    gate.open.set()
    third.result(WAIT_S)

    assert cancelled == (False, True)
    assert spool.acknowledged == 2


def test_a_closed_spool_refuses(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    spool.close()
    spool.close()

    assert refusal(spool.send([message(1)])).detail == "the spool is closed"
    assert list(tmp_path.iterdir()) == []


def test_memory_is_bounded_while_the_disk_hangs(gate: Gate, spool: Spool) -> None:
    gate.open.clear()
    spool.send([message(0)])
    assert gate.reached.wait(WAIT_S)
    batch = [message(n, size=1_000_000) for n in range(33)]
    futures = [spool.send(batch), spool.send(batch), spool.send([message(1)])]
    last = refusal(futures[-1])
    gate.open.set()

    assert "waiting" in last.detail
    assert [future.result(WAIT_S) for future in futures[:2]] == [None, None]


def test_a_forked_child_is_refused_instead_of_waiting_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_spool(tmp_path)) as spool:
        monkeypatch.setattr(os, "getpid", lambda: 1)
        child = spool.send([message(1)])
        monkeypatch.undo()

    assert "forked" in refusal(child).detail


def test_a_new_spool_sorts_after_segments_from_the_future(tmp_path: Path) -> None:
    future = SegmentName(9_999_999_999_999, "0123456789ab", 0, 1)
    (tmp_path / future.text).write_bytes(b"")
    with closing(open_spool(tmp_path)) as spool:
        spool.send([message(1)]).result(WAIT_S)

    first, second = sealed(tmp_path)
    assert first == future
    assert second.ms == future.ms + 1


def orphan(folder: Path) -> None:
    name = OpenName(1_000, "0123456789ab", 0, 2**22 + 1, 1)
    (folder / name.text).write_bytes(frame(message(1)) + b"torn")


def test_a_new_spool_seals_what_a_dead_one_left(tmp_path: Path) -> None:
    orphan(tmp_path)

    with closing(open_spool(tmp_path)):
        assert numbers(tmp_path) == [1]


def test_an_idle_spool_seals_what_a_neighbour_leaves_when_it_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_disk, "_RECOVER_EVERY_MS", 5)
    with closing(open_spool(tmp_path)):
        orphan(tmp_path)

        assert eventually(lambda: numbers(tmp_path) == [1])


def test_counting_while_segments_come_and_go_never_misses_one(tmp_path: Path) -> None:
    sent = 0
    with closing(open_spool(tmp_path, segment_bytes=100)) as spool:
        for n in range(300):
            future = spool.send([message(n)])
            found = pending(tmp_path)
            assert sent <= found.messages <= sent + 1
            future.result(WAIT_S)
            sent += 1
