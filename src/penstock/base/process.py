"""Live and die with other processes: hear a stop, follow a parent, keep no zombies.

    Stop.on_signals()     SIGINT, SIGTERM and SIGHUP become an event that any thread may wait on
    follow_parent(pid)    a process whose supervisor was killed ends itself
    adopt_orphans()       what a dead child leaves behind becomes ours, and reap_orphans() buries it

A Python signal handler runs between two instructions of the main thread, so setting an Event
there can meet its own lock. The number travels through a pipe instead, to a thread of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Collection
from types import FrameType

_PR_SET_CHILD_SUBREAPER = 36
_STOPS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """A request to end, and how often it was made."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.asked = 0

    def ask(self) -> None:
        """Request the end once more."""
        self.asked += 1
        self.event.set()

    @classmethod
    def on_signals(cls) -> Stop:
        """A request that those signals make from now on; call it in the main thread."""
        stop = cls()
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in _STOPS:
            signal.signal(number, _ignore)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # `nohup` asked us to stay
            signal.signal(signal.SIGHUP, _ignore)
        threading.Thread(target=stop._listen, args=(reader,), name="signals", daemon=True).start()
        return stop

    def _listen(self, reader: int) -> None:
        while numbers := os.read(reader, 64):
            for number in numbers:
                if number in (*_STOPS, signal.SIGHUP):
                    self.ask()


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Let the pipe carry the news."""


def follow_parent(
    parent_pid: int,
    *,
    on_orphaned: Callable[[], None] | None = None,
    every_s: float = 0.5,
    grace_s: float = 10.0,
) -> threading.Thread:
    """Ask this process to stop once `parent_pid` is no longer its parent, and end it after that."""
    leave = on_orphaned or (lambda: _leave(grace_s))

    def follow() -> None:
        while os.getppid() == parent_pid:
            time.sleep(every_s)
        leave()

    thread = threading.Thread(target=follow, name="parent", daemon=True)
    thread.start()
    return thread


def _leave(grace_s: float) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace_s)
    os._exit(1)


def adopt_orphans() -> bool:
    """Become the parent of what our children leave behind; whether this system can do that.

    An embedded database leaves its starter by design. In a container whose first process buries
    nobody, a killed one would stay a zombie, and its pid file would keep a new one from starting.
    """
    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def reap_orphans(children: Collection[int]) -> list[int]:
    """Bury every dead process that is ours and not one of `children`; say which."""
    buried: list[int] = []
    while True:
        try:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return buried
        if dead is None or dead.si_pid in children:
            return buried
        with contextlib.suppress(ChildProcessError):
            os.waitpid(dead.si_pid, os.WNOHANG)
        buried.append(dead.si_pid)
