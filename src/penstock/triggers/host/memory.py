"""Remember between passes what would otherwise be read again; losing it costs time, never truth."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.triggers.roster import Roster
from penstock.triggers.state import State


@dataclass(slots=True)
class Memory:
    """What a host knows without asking."""

    number: int | None = None  # the pass that left the state as it is here
    revision: int | None = None  # of the definitions in the roster
    settings_pass: int | None = None  # since when the recorded limits are ours
    state: State = field(default_factory=State)
    roster: Roster = field(default_factory=Roster)
