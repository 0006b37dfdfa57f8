"""The real folder and the one in memory do the same to the same requests."""

from __future__ import annotations

import fcntl
import os
import random
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.transport.files.in_memory import MemoryFiles
from penstock.transport.files.on_disk import DiskFiles, is_alive, started
from penstock.transport.files.port import Files


@pytest.fixture(params=["on_disk", "in_memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    if request.param == "on_disk":
        return DiskFiles(tmp_path / "spool")
    return MemoryFiles(random.Random(0))


def test_a_new_file_is_there_and_empty(files: Files) -> None:
    handle = files.create("a")

    assert files.names() == ["a"]
    assert files.sizes() == {"a": 0}
    assert files.whole_lines("a") == 0
    files.close(handle)


def test_a_name_that_exists_is_not_made_again(files: Files) -> None:
    files.create("a")

    with pytest.raises(FileExistsError):
        files.create("a")


def test_what_is_appended_is_read_back_in_order(files: Files) -> None:
    handle = files.create("a")
    files.append(handle, b"one\ntwo\n")
    files.append(handle, b"thr")
    files.sync(handle)
    files.close(handle)

    claimed = files.claim("a")
    assert claimed is not None
    assert files.read(claimed) == b"one\ntwo\nthr"
    assert files.whole_lines("a") == 2
    assert files.sizes() == {"a": 11}


def test_what_follows_a_cut_is_written_at_the_cut(files: Files) -> None:
    handle = files.create("a")
    files.append(handle, b"one\ntw")
    files.truncate(handle, 4)
    files.append(handle, b"2\n")
    files.close(handle)

    claimed = files.claim("a")
    assert claimed is not None
    assert files.read(claimed) == b"one\n2\n"


def test_a_file_is_held_by_one_at_a_time(files: Files) -> None:
    handle = files.create("a")
    while_written = files.claim("a")
    files.close(handle)
    first = files.claim("a")
    second = files.claim("a")

    assert while_written is None
    assert first is not None
    assert second is None


def test_a_file_that_is_gone_is_claimed_by_nobody(files: Files) -> None:
    assert files.claim("a") is None
    assert files.whole_lines("a") is None
    files.unlink("a")


def test_a_file_keeps_its_bytes_under_a_new_name(files: Files) -> None:
    handle = files.create("a")
    files.append(handle, b"one\n")
    files.rename("a", "b")
    files.close(handle)
    files.sync_folder()

    assert files.sizes() == {"b": 4}
    assert files.claim("a") is None


def test_renaming_what_is_gone_is_an_error(files: Files) -> None:
    with pytest.raises(FileNotFoundError):
        files.rename("a", "b")


def test_a_name_that_was_taken_is_replaced(files: Files) -> None:
    for name, data in (("a", b"new\n"), ("b", b"old and longer\n")):
        handle = files.create(name)
        files.append(handle, data)
        files.close(handle)
    files.rename("a", "b")

    assert files.sizes() == {"b": 4}


def test_only_the_owner_may_look_into_the_spool(tmp_path: Path) -> None:
    old_mask = os.umask(0)
    try:
        DiskFiles(tmp_path / "data" / "spool" / "queue").create("a")
    finally:
        os.umask(old_mask)

    for folder in ("data", "data/spool", "data/spool/queue"):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "data/spool/queue/a").stat().st_mode) == 0o600


@pytest.mark.parametrize("name_taken_again", [False, True])
def test_a_file_renamed_while_it_was_being_claimed_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name_taken_again: bool
) -> None:
    files = DiskFiles(tmp_path)
    files.close(files.create("a"))
    really_lock = fcntl.flock

    def lock_too_late(handle: int, operation: int) -> None:
        files.rename("a", "b")
        if name_taken_again:
            (tmp_path / "a").touch()
        really_lock(handle, operation)

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", lock_too_late)
        late = files.claim("a")

    assert late is None
    assert files.claim("b") is not None


def test_a_running_process_is_alive_and_its_namesake_is_not() -> None:
    mine = started(os.getpid())

    assert is_alive(os.getpid(), mine)
    assert not is_alive(os.getpid(), mine + 1)
    assert not is_alive(os.getpid(), 0)


def test_a_killed_process_is_dead_before_its_parent_has_looked() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    start = started(child.pid)
    before = is_alive(child.pid, start)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    unreaped = is_alive(child.pid, start)
    child.communicate()

    assert before
    assert not unreaped
    assert not is_alive(child.pid, start)


def test_a_process_with_a_hostile_name_is_told_alive_from_dead(tmp_path: Path) -> None:
    program = tmp_path / ") Z 1 (x"
    program.symlink_to("/bin/cat")
    child = subprocess.Popen([program], stdin=subprocess.PIPE)
    try:
        assert is_alive(child.pid, started(child.pid))
    finally:
        child.communicate()


@pytest.mark.parametrize("seed", range(20))
def test_a_power_cut_keeps_what_was_synced_and_may_take_the_rest(seed: int) -> None:
    files = MemoryFiles(random.Random(seed))
    handle = files.create("a")
    files.sync_folder()
    files.append(handle, b"synced\n")
    files.sync(handle)
    files.append(handle, b"not synced\n")
    files.create("b")
    files.cut_power()

    claimed = files.claim("a")
    assert claimed is not None
    assert files.read(claimed).startswith(b"synced\n")
    assert len(files.read(claimed)) <= len(b"synced\nnot synced\n")


def test_power_cuts_do_take_something() -> None:
    left: set[bytes] = set()
    for seed in range(1_000):
        files = MemoryFiles(random.Random(seed))
        files.append(files.create("a"), b"xyz\n")
        files.cut_power()
        claimed = files.claim("a")
        left.add(b"gone" if claimed is None else files.read(claimed))

    assert {b"gone", b"", b"x", b"xyz", b"xyz\n", bytes(4)} <= left
