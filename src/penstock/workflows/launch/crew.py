"""Run work on threads with a time limit, and leave behind what does not end.

    run(errand) ──▶ an idle hand, or a new one ──▶ Ended(value) | Raised(error)
                        │ out of time, or called off
                        ▼
                    LEFT: asked to stop, and if it does not, abandoned

Python cannot end a thread. One that runs Python code is stopped by an exception at its next
instruction; one that waits in the operating system stays, and is counted. Its hand is never given
work again, so what it does late touches nobody.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from enum import Enum
from queue import SimpleQueue
from typing import TypeAlias


class Stopped(BaseException):
    """Raised inside a handler whose time is over. No `except Exception` keeps it."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The work gave this back."""

    value: object


@dataclass(frozen=True, slots=True)
class Raised:
    """The work raised this."""

    error: BaseException


class Left(Enum):
    """Nobody waits for the work any more, and why."""

    OUT_OF_TIME = "out of time"
    CALLED_OFF = "called off"


Outcome: TypeAlias = Ended | Raised | Left


class Errand:
    """One piece of work: `ask` tells it to end, `wake` rouses it from a wait that allows it."""

    def __init__(
        self,
        work: Callable[[], object],
        *,
        ask: Callable[[], None] = lambda: None,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.work = work
        self.ask = ask
        self.wake = wake
        self.over = threading.Event()
        self.outcome: Outcome | None = None
        self.is_called_off = False
        self.settled = threading.Event()
        self.lock = threading.Lock()

    def call_off(self) -> None:
        """Wait for it no longer."""
        self.is_called_off = True
        self.settled.set()

    def perform(self) -> bool:
        """Do the work in a context of its own; whether anybody still waited for it."""
        outcome: Outcome
        try:
            outcome = Ended(Context().run(self.work))
        except BaseException as error:  # noqa: BLE001  whatever a handler raises is its result
            outcome = Raised(error)
        with self.lock:
            self.over.set()
            if self.outcome is None:
                self.outcome = outcome
                self.settled.set()
                return True
        return False


class _Hand(threading.Thread):
    """A thread that does one errand after the other."""

    def __init__(self, come_back: Callable[[_Hand], bool]) -> None:
        super().__init__(name="handler", daemon=True)
        self.inbox: SimpleQueue[Errand | None] = SimpleQueue()
        self._come_back = come_back

    def run(self) -> None:
        try:
            while (errand := self.inbox.get()) is not None:
                if not errand.perform() or not self._come_back(self):
                    return
        except Stopped:
            return  # the exception came after the work had ended


class Crew:
    """Threads for handlers; several threads may give it work."""

    def __init__(self, *, idle_max: int = 32, grace_s: float = 0.2) -> None:
        self._idle: list[_Hand] = []
        self._left: list[_Hand] = []
        self._idle_max = idle_max
        self._grace_s = grace_s
        self._is_closed = False
        self._lock = threading.Lock()

    @property
    def abandoned(self) -> int:
        """How many threads were told to stop and still run."""
        with self._lock:
            self._left = [hand for hand in self._left if hand.is_alive()]
            return len(self._left)

    def run(self, errand: Errand, timeout_s: float) -> Outcome:
        """What became of the errand, after `timeout_s` and a moment of grace at the latest."""
        hand = self._take()
        hand.inbox.put(errand)
        errand.settled.wait(timeout_s)
        with errand.lock:
            if errand.outcome is None:
                errand.outcome = Left.CALLED_OFF if errand.is_called_off else Left.OUT_OF_TIME
            outcome = errand.outcome
        if isinstance(outcome, Left):
            self._leave(hand, errand)
        return outcome

    def close(self) -> None:
        """Let the idle threads go; busy ones go when they are done."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for hand in idle:
            hand.inbox.put(None)

    def _take(self) -> _Hand:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        hand = _Hand(self._back)
        hand.start()
        return hand

    def _back(self, hand: _Hand) -> bool:
        with self._lock:
            if self._is_closed or len(self._idle) >= self._idle_max:
                return False
            self._idle.append(hand)
            return True

    def _leave(self, hand: _Hand, errand: Errand) -> None:
        """Ask to stop; what does not is made to, as far as Python can."""
        with self._lock:
            self._left.append(hand)
        errand.ask()
        if errand.over.wait(self._grace_s):
            return
        with errand.lock:  # so that the exception meets the work and nothing after it
            if not errand.over.is_set():
                _raise_in(hand, Stopped)
        errand.wake()


def _raise_in(thread: threading.Thread, kind: type[BaseException]) -> None:
    """Raise at the next instruction of another thread; nothing happens when it has ended."""
    ident = ctypes.c_ulong(thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(kind))
