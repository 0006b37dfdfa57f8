"""Keep runs in memory while nobody else changes them.

A run's `rev` goes up with every change. What is in memory under the rev that the locked row shows
is what the database has; anything else is read again. Forgetting one is never wrong, only slower.
"""

from __future__ import annotations

from collections import OrderedDict

from penstock.workflows.run import RunState

_RUNS_MAX = 10_000


class States:
    """The runs that one worker has seen last."""

    def __init__(self, most: int = _RUNS_MAX) -> None:
        self._most = most
        self._known: OrderedDict[str, tuple[int, RunState]] = OrderedDict()

    def at(self, run_id: str, rev: int) -> RunState | None:
        """The run as it is at this rev, if it is in memory."""
        found = self._known.get(run_id)
        return found[1] if found is not None and found[0] == rev else None

    def put(self, run_id: str, rev: int, state: RunState) -> None:
        self._known[run_id] = (rev, state)
        self._known.move_to_end(run_id)
        if len(self._known) > self._most:
            self._known.popitem(last=False)

    def forget(self, run_id: str) -> None:
        self._known.pop(run_id, None)
