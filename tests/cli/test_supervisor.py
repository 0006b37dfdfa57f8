"""Hold the supervisor to its word with real, small processes that die and come back."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.base.process import Stop
from penstock.cli.child import Child, Launch, last_words, rotate
from penstock.cli.supervisor import Supervisor

OBEDIENT = "import signal; signal.sigwait([signal.SIGTERM])"
STUBBORN = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
WITH_GRANDCHILD = (
    "import subprocess,sys; p = subprocess.Popen(['sleep', '600']); "
    "print('grandchild', p.pid, flush=True); sys.stdin.read(); import time; time.sleep(600)"
)


def until(claim: Callable[[], bool], *, seconds: float = 20.0) -> None:
    """Wait for a claim to become true."""
    limit = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < limit, "waited too long"
        time.sleep(0.01)


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


class Stage:
    """A supervisor running in a thread, and what it said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stop = Stop()
        self.said: list[str] = []
        self.ready = threading.Event()
        self.answers = True
        self.supervisor: Supervisor | None = None
        self.thread: threading.Thread | None = None

    def launch(self, name: str, program: str) -> Launch:
        return Launch(
            name,
            (sys.executable, "-S", "-c", program),
            {"PATH": os.environ["PATH"]},
            self.folder / f"{name}.log",
        )

    def play(self, **programs: str) -> Supervisor:
        self.supervisor = Supervisor(
            [self.launch(name, program) for name, program in programs.items()],
            stop=self.stop,
            answers=lambda: self.answers,
            announce=self.ready.set,
            say=self.said.append,
        )
        self.thread = threading.Thread(target=self.supervisor.run)
        self.thread.start()
        return self.supervisor

    def end(self) -> None:
        self.stop.ask()
        assert self.thread is not None
        self.thread.join(30)
        assert not self.thread.is_alive()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    if stage.thread is not None and stage.thread.is_alive():
        stage.stop.ask()
        stage.stop.ask()
        stage.thread.join(30)


def test_a_killed_part_comes_back_as_a_new_process(stage: Stage) -> None:
    supervisor = stage.play(serve=OBEDIENT, worker=OBEDIENT)
    assert stage.ready.wait(20)
    first = supervisor.pids()

    os.kill(first["serve"], signal.SIGKILL)

    until(lambda: supervisor.pids().get("serve", first["serve"]) != first["serve"])
    assert supervisor.pids()["worker"] == first["worker"]
    assert "serve ended with signal 9" in stage.said[0]
    stage.end()
    assert not any(lives(pid) for pid in first.values())


def test_a_part_that_fails_at_start_is_tried_again_and_its_error_is_repeated(
    stage: Stage, tmp_path: Path
) -> None:
    mark = tmp_path / "second-time"
    program = (
        f"import pathlib,sys; mark = pathlib.Path({str(mark)!r})\n"
        "if not mark.exists():\n"
        "    mark.touch()\n"
        "    print('error  setup_incomplete: no Java'); print('  fix  install it'); sys.exit(1)\n"
        f"{OBEDIENT}"
    )

    stage.answers = False
    supervisor = stage.play(ingress=program)

    until(lambda: len(stage.said) >= 2 and "ingress" in supervisor.pids())
    assert "exit 1" in stage.said[0]
    assert stage.said[1] == "error  setup_incomplete: no Java\n  fix  install it"
    stage.end()


def test_ready_is_announced_when_every_part_answers_and_not_before(stage: Stage) -> None:
    stage.answers = False
    supervisor = stage.play(serve=OBEDIENT)
    until(lambda: "serve" in supervisor.pids())
    assert not stage.ready.is_set()

    stage.answers = True

    assert stage.ready.wait(20)
    stage.end()


def test_a_part_that_ignores_its_stop_is_killed_when_asked_twice(stage: Stage) -> None:
    supervisor = stage.play(ingress=STUBBORN)
    assert stage.ready.wait(20)
    pid = supervisor.pids()["ingress"]

    stage.stop.ask()
    stage.end()

    assert not lives(pid)


def test_what_a_dead_part_started_ends_with_it(tmp_path: Path) -> None:
    log = tmp_path / "ingress.log"
    child = Child(Launch("ingress", (sys.executable, "-c", WITH_GRANDCHILD), dict(os.environ), log))
    until(lambda: "grandchild" in log.read_text())
    grandchild = int(log.read_text().split()[1])
    assert lives(grandchild)

    os.kill(child.pid, signal.SIGKILL)

    until(lambda: child.exit_code() is not None)
    until(lambda: not lives(grandchild))


def test_a_child_has_a_process_group_of_its_own(tmp_path: Path) -> None:
    child = Child(
        Launch("serve", (sys.executable, "-c", OBEDIENT), dict(os.environ), tmp_path / "log")
    )

    assert os.getpgid(child.pid) == child.pid != os.getpgid(0)

    child.kill()
    until(lambda: child.exit_code() == -9)


def test_a_log_over_the_limit_is_set_aside_and_a_small_one_is_kept(tmp_path: Path) -> None:
    large, small = tmp_path / "large.log", tmp_path / "small.log"
    large.write_bytes(b"x" * 101)
    small.write_bytes(b"x" * 100)

    rotate(large, bytes_max=100)
    rotate(small, bytes_max=100)
    rotate(tmp_path / "absent.log", bytes_max=100)

    assert not large.exists()
    assert (tmp_path / "large.log.1").stat().st_size == 101
    assert small.stat().st_size == 100


def test_the_last_words_are_the_last_error_with_its_fix(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    log.write_text("error  a: old\n  fix  x\n{}\nerror  b: new\n  fix  y\nbye\n")

    assert last_words(log) == "error  b: new\n  fix  y"
    assert last_words(tmp_path / "absent.log") == ""
