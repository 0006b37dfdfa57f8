"""Spare a receiver that does not answer: after a row of failures, wait before asking again.

    closed ── 5 failures in a row ──▶ open for 30 s ──▶ one try ── answered ──▶ closed
                                        ▲                  │
                                        └──── not ─────────┘

Pure but for the memory it keeps: the time is an argument.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass


@dataclass(slots=True)
class _State:
    failures: int = 0
    open_until: float = 0.0


class Circuits:
    """One circuit per receiver; threads may share it. The least used are forgotten first."""

    def __init__(
        self, *, failures_max: int = 5, rest_s: float = 30.0, receivers_max: int = 10_000
    ) -> None:
        self._failures_max = failures_max
        self._rest_s = rest_s
        self._receivers_max = receivers_max
        self._states: OrderedDict[str, _State] = OrderedDict()
        self._lock = threading.Lock()

    def rests_for(self, receiver: str, now: float) -> float:
        """How long the receiver is still spared; 0 when it may be asked.

        Whoever hears 0 after a rest makes the one try; others are told to wait for it.
        """
        with self._lock:
            state = self._states.get(receiver)
            if state is None or state.failures < self._failures_max:
                return 0.0
            if now < state.open_until:
                return state.open_until - now
            state.open_until = now + self._rest_s
            return 0.0

    def note(self, receiver: str, now: float, *, answered: bool) -> None:
        """Remember how a request ended."""
        with self._lock:
            if answered:
                self._states.pop(receiver, None)
                return
            state = self._states.setdefault(receiver, _State())
            self._states.move_to_end(receiver)
            state.failures += 1
            state.open_until = now + self._rest_s
            while len(self._states) > self._receivers_max:
                self._states.popitem(last=False)
