"""Hold processes to how they end: on a signal, with their parent, and without zombies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from penstock.base.process import follow_parent

PRELUDE = "import os, signal, subprocess, sys, time\nfrom penstock.base import process\n"


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PRELUDE + program],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_sigterm_and_sigint_become_one_event_that_counts() -> None:
    done = run(
        "stop = process.Stop.on_signals()\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "assert stop.event.wait(20)\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "while stop.asked < 2: time.sleep(0.01)\n"
        "print('stopped', stop.asked)\n"
    )

    assert (done.returncode, done.stdout) == (0, "stopped 2\n"), done.stderr


def test_a_process_whose_parent_is_alive_goes_on() -> None:
    orphaned = threading.Event()

    follow_parent(os.getppid(), on_orphaned=orphaned.set, every_s=0.01)

    assert not orphaned.wait(0.1)


def test_a_process_whose_parent_is_another_one_leaves() -> None:
    orphaned = threading.Event()

    follow_parent(os.getppid() + 1, on_orphaned=orphaned.set, every_s=0.01)

    assert orphaned.wait(20)


def test_a_part_ends_itself_after_its_supervisor_was_killed(tmp_path: Path) -> None:
    part = (
        f"{PRELUDE}process.follow_parent(int(sys.argv[1]), every_s=0.02, grace_s=5)\n"
        "print('up', flush=True)\n"
        "signal.sigwait([signal.SIGUSR1])\n"
    )
    start = (
        "import os, subprocess, sys; "
        "subprocess.run([sys.executable, '-c', sys.argv[1], str(os.getpid())])"
    )
    supervisor = subprocess.Popen([sys.executable, "-c", start, part], stdout=subprocess.PIPE)
    assert supervisor.stdout is not None
    assert supervisor.stdout.readline() == b"up\n"

    supervisor.send_signal(signal.SIGKILL)
    supervisor.wait(20)

    assert supervisor.stdout.read() == b""  # the pipe closes when its last holder, the part, ends
    supervisor.stdout.close()


def test_an_orphan_of_a_child_is_adopted_and_buried_but_our_own_children_are_left() -> None:
    done = run(
        "assert process.adopt_orphans()\n"
        "own = subprocess.Popen(['true'])\n"
        "subprocess.run(['sh', '-c', 'sleep 0.2 & echo $!'], check=True)\n"
        "os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT)\n"
        "buried = process.reap_orphans({own.pid})\n"
        "assert own.wait() == 0\n"
        "while not buried: buried += process.reap_orphans(())\n"
        "print('buried', len(buried))\n"
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "buried 1"
