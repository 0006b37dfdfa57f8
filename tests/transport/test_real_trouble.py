"""Real processes on a real disk: kill -9, a full disk, and a power cut replayed from a trace.

The acknowledged numbers are kept here, in the parent, never in the process that is killed.
"""

from __future__ import annotations

import ast
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.transport.on_disk import pending, recover, sealed
from penstock.transport.port import Message
from penstock.transport.segment import parse

pytestmark = pytest.mark.prove

BEGIN = """
import os, resource, subprocess, sys, threading
from pathlib import Path
from penstock.base.errors import QueueUnavailable
from penstock.transport.on_disk import Spool, sealed
from penstock.transport.port import Message
from penstock.transport.segment import parse

folder = Path(sys.argv[1])

def open_spool(segment_bytes=5_000, segment_age_ms=5):
    return Spool(folder, segment_bytes=segment_bytes, segment_age_ms=segment_age_ms,
                 bytes_max=10**9)

def send(spool, *words):
    spool.send([Message(word.encode(), 1, "default", "sdk") for word in words]).result(20)
    os.write(1, ("\\n".join(words) + "\\n").encode())
"""
FOUR_SENDERS = """
spool = open_spool()
def work(thread):
    for n in range(10**9):
        send(spool, *(f"{sys.argv[2]}-{thread}-{n}-{part}" for part in range(1 + n % 3)))
for thread in range(4):
    threading.Thread(target=work, args=(thread,)).start()
"""
FILL_AND_FREE = """
spool = open_spool(segment_bytes=20_000, segment_age_ms=20)
def fill(name):
    for n in range(10**9):
        try:
            send(spool, f"{name}-{n}" + " " * 3_000)
        except QueueUnavailable as refused:
            assert refused.disk_full, refused
            return
def free():
    while not sealed(folder):
        pass
    for name in sealed(folder):
        path = folder / name.text
        for line in parse(path.read_bytes()):
            os.write(2, b"stored " + line.json + b"\\n")
        path.unlink()
"""
SMALL_DISK = (
    FILL_AND_FREE
    + """
for cycle in range(5):
    fill(f"full{cycle}")
    free()
    send(spool, f"after{cycle}")
spool.close()
free()
assert spool.fault is None, spool.fault
"""
)
SMALL_FILES = (
    FILL_AND_FREE
    + """
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
fill("full")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
send(spool, "after")
spool.close()
free()
assert spool.fault is None, spool.fault
"""
)
TRACED = """
spool = open_spool(segment_bytes=400, segment_age_ms=600_000)
for n in range(40):
    send(spool, f"{n}-a", f"{n}-b")
spool.close()
"""


def command(program: str, *words: object) -> list[str]:
    return [sys.executable, "-c", BEGIN + program, *map(str, words)]


def found_in(folder: Path) -> Counter[str]:
    """Every message in the sealed segments; a corrupt line is a failure."""
    found: Counter[str] = Counter()
    for name in sealed(folder):
        lines = list(parse((folder / name.text).read_bytes()))
        assert len(lines) == name.lines
        for line in lines:
            assert isinstance(line, Message), line
            found[line.json.decode()] += 1
    return found


def test_six_writers_killed_at_any_moment_lose_nothing_they_acknowledged(tmp_path: Path) -> None:
    rng = random.Random(6)
    acked: set[str] = set()
    for life in range(6):
        child = subprocess.Popen(
            command(FOUR_SENDERS, tmp_path, life), stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        for _ in range(rng.randrange(1, 1_500)):
            acked.add(child.stdout.readline().strip())
        child.kill()
        acked.update(child.stdout.read().split())
        child.communicate()
        if life % 2:  # else the next writer finds what this one left
            recover(tmp_path)

    recover(tmp_path)
    found = found_in(tmp_path)

    assert len(acked) > 500
    assert acked <= found.keys()
    assert set(found.values()) == {1}
    assert pending(tmp_path).messages == found.total()


def check_full_disk(done: subprocess.CompletedProcess[str]) -> None:
    """Acknowledged on stdout, found in segments on stderr: the same, once each."""
    acked = re.findall(r"^\w+(?:-\d+)?", done.stdout, re.MULTILINE)
    stored = re.findall(r"^stored (\w+(?:-\d+)?)", done.stderr, re.MULTILINE)

    assert done.returncode == 0, done.stderr[-2_000:]
    assert len(acked) > 2
    assert sorted(stored) == sorted(acked)


def test_a_full_disk_refuses_then_resumes_alone_and_loses_nothing(tmp_path: Path) -> None:
    # A disk of 200 kB in a mount namespace of its own, which ends with the process.
    own_mounts = ["unshare", "--mount", "--map-root-user"]
    mount = f"mount -t tmpfs -o size=200k none {tmp_path}"
    if (
        shutil.which("unshare") is None
        or subprocess.run(
            [*own_mounts, "sh", "-c", mount], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("this machine does not let us mount a small disk")

    program = command(SMALL_DISK, tmp_path)
    done = subprocess.run(
        [*own_mounts, "sh", "-c", f'{mount} && exec "$@"', "sh", *program],
        capture_output=True, check=False, text=True, timeout=60,
    )  # fmt: skip

    check_full_disk(done)
    assert [f"after{cycle}" in done.stdout for cycle in range(5)] == [True] * 5


def test_a_file_size_limit_refuses_then_resumes_alone_and_loses_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        command(SMALL_FILES, tmp_path), capture_output=True, check=False, text=True, timeout=60
    )

    check_full_disk(done)
    assert "after" in done.stdout


CALL = re.compile(r"^(\d+) +(.*)$")
CREATED = re.compile(r'openat\([^"]*"([^"]+)", [^)]*O_CREAT.*= \d+<')
WRITTEN = re.compile(r'write\((\d+)<([^>]*)>, "(.*)", \d+\) += (\d+)')
SYNCED = re.compile(r"fd?(?:ata)?sync\(\d+<([^>]*)>\) += 0")
RENAMED = re.compile(r'rename\w*\((?:[^"]*)"([^"]+)", (?:[^"]*)"([^"]+)".*\) += 0')


def finished_calls(trace: str) -> Iterator[str]:
    """System calls in the order in which they returned."""
    begun: dict[str, str] = {}
    for pid, call in (CALL.findall(line)[0] for line in trace.splitlines() if CALL.match(line)):
        if call.endswith("<unfinished ...>"):
            begun[pid] = call.removesuffix("<unfinished ...>").rstrip()
        elif call.startswith("<..."):
            yield begun.pop(pid) + call.partition("resumed>")[2]
        else:
            yield call


class Replay:
    """What a machine that lost its power would still hold, after each system call."""

    def __init__(self, spool: Path) -> None:
        self.spool = str(spool)
        self.names: dict[str, str] = {}  # name -> the name it was made under
        self.durable_names: dict[str, str] = {}
        self.content: dict[str, bytes] = {}
        self.durable: dict[str, bytes] = {}
        self.acked: list[str] = []

    def feed(self, call: str) -> bool:
        """Follow one call; whether it acknowledged something."""
        if (made := CREATED.match(call)) and made[1].startswith(self.spool):
            self.names[made[1]] = made[1]
            self.content[made[1]] = b""
        elif wrote := WRITTEN.match(call):
            data: bytes = ast.literal_eval(f'b"{wrote[3]}"')[: int(wrote[4])]
            if wrote[1] == "1":
                self.acked += data.decode().split()
                return True
            if wrote[2] in self.names:
                self.content[self.names[wrote[2]]] += data
        elif (moved := RENAMED.match(call)) and moved[1] in self.names:
            self.names[moved[2]] = self.names.pop(moved[1])
        elif synced := SYNCED.match(call):
            if synced[1] == self.spool:
                self.durable_names = dict(self.names)
            elif synced[1] in self.names:
                made_as = self.names[synced[1]]
                self.durable[made_as] = self.content[made_as]
        return False

    def after_power_cut(self, folder: Path) -> Counter[str]:
        folder.mkdir()
        for name, made_as in self.durable_names.items():
            (folder / Path(name).name).write_bytes(self.durable.get(made_as, b""))
        recover(folder)
        return found_in(folder)


def test_at_every_acknowledgement_the_synced_bytes_alone_hold_everything_acknowledged(
    tmp_path: Path,
) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    spool, log = tmp_path / "spool", tmp_path / "trace"
    calls = "trace=openat,write,fdatasync,fsync,rename,renameat,renameat2"
    strace = ["strace", "-f", "-y", "-s", "100000", "-e", calls, "-o", str(log)]
    traced = subprocess.run(
        [*strace, *command(TRACED, spool)], capture_output=True, check=False, timeout=60
    )
    if traced.returncode != 0 and not spool.exists():
        pytest.skip("this machine does not let us trace a process")

    replay = Replay(spool)
    cuts = 0
    for call in finished_calls(log.read_text()):
        if replay.feed(call):
            cuts += 1
            assert set(replay.acked) <= replay.after_power_cut(tmp_path / f"cut{cuts}").keys()

    assert cuts == 40
    assert len(replay.acked) == 80
    assert len(sealed(spool)) > 3
