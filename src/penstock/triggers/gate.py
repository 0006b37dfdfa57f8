"""Let past events through the limits of their sources, on a simulated clock.

    events in order ── limited source? ── no ──▶ at the instant it was received
                              └── yes ──▶ held ── when its source may go on ──▶ later

The pace is set by the code that sets it for passes (`sources`), run without any trigger: so a
back-test waits where the product would have. Pauses by hand are not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from penstock.envelope.envelope import Stored
from penstock.triggers.delivery import Launch, LaunchOutcome
from penstock.triggers.inputs import PassInputs
from penstock.triggers.limits import Limits
from penstock.triggers.passes import run_pass
from penstock.triggers.past import LogInPassing, PastInMemory
from penstock.triggers.roster import Roster
from penstock.triggers.state import State


class SourceGate:
    """The line before the triggers."""

    def __init__(self, limits: Limits) -> None:
        self._limits = Limits(sources=limits.sources)
        self._log = LogInPassing({})
        self._state, self._past = State(), PastInMemory(self._log)
        self._next_due: datetime | None = None
        self._number = 0
        self._behind: list[Stored] = []  # of sources with held events: they can only queue up
        self.held: dict[int, Stored] = {}  # still waiting, by position

    def paced(self, events: Iterable[Stored]) -> Iterator[tuple[datetime, Stored]]:
        """Events with the instant at which triggers see them, in the order of these instants."""
        limits = self._limits
        last = None
        for stored in events:
            last = stored.received_at
            yield from self._due(last)
            if limits.of_source(stored.envelope.source) is None:
                yield last, stored
            elif self._has_held(stored):
                self._behind.append(stored)
                self._keep(stored)
            else:
                yield from self._pass(last, stored)
        if last is not None:
            yield from self._due(last)

    def _due(self, until: datetime) -> Iterator[tuple[datetime, Stored]]:
        while self.held and self._next_due is not None and self._next_due <= until:
            yield from self._pass(self._next_due, None)

    def _pass(self, at: datetime, stored: Stored | None) -> Iterator[tuple[datetime, Stored]]:
        self._number += 1
        behind, self._behind = self._behind, []
        new = behind if stored is None else [*behind, stored]
        inputs = PassInputs(self._number, at, Roster(), self._limits, events=new)
        result = run_pass(self._state, inputs, self._past, _never)
        self._next_due = result.next_due
        for each in new:
            self._keep(each)
        waits = {held.position for held in result.held if held.released_pass is None}
        for position in (*result.released, *(e.position for e in new if e.position not in waits)):
            self._log.forget(position)
            yield at, self.held.pop(position)

    def _has_held(self, stored: Stored) -> bool:
        name = (stored.envelope.tenant_id, stored.envelope.source)
        source = self._state.sources.get(name)
        return source is not None and bool(source.held)

    def _keep(self, stored: Stored) -> None:
        self.held[stored.position] = stored
        self._log.add(stored)


def _never(launch: Launch) -> LaunchOutcome:
    raise AssertionError(f"a gate without triggers launched {launch.run_id}")
