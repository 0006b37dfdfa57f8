"""Do what `supervise.decide` says: start processes, watch them, stop them.

Every turn asks four questions (were we asked to stop? who died? does every part answer? what is
due?), gives each answer to `decide`, and carries out the actions. Nothing is decided here.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from penstock.base.process import Stop, reap_orphans
from penstock.cli.child import Child, Launch, last_words
from penstock.cli.supervise import (
    Action,
    Announce,
    Answered,
    Died,
    Finish,
    Happening,
    Kill,
    Mourn,
    Start,
    StopAsked,
    Supervision,
    Terminate,
    Tick,
    decide,
)

_TURN_S = 0.05


class Supervisor:
    """The parts of one running product, and the promise that they come back.

    `launches` are in the order in which they stop. `answers` says whether every part answers;
    `announce` is called once, when it first does; `chores` runs every turn until stopping.
    """

    def __init__(
        self,
        launches: Sequence[Launch],
        *,
        stop: Stop,
        answers: Callable[[], bool],
        announce: Callable[[], None],
        say: Callable[[str], None],
        chores: Callable[[], None] = lambda: None,
    ) -> None:
        self._launches = {launch.name: launch for launch in launches}
        self._children: dict[str, Child] = {}
        self._state = Supervision.of(self._launches)
        self._stop = stop
        self._answers = answers
        self._announce = announce
        self._say = say
        self._chores = chores
        self._stops_seen = 0
        self._finished = False
        self._rng = random.Random()  # noqa: S311  jitter, not a secret

    def run(self) -> None:
        """Supervise until asked to stop and everything has."""
        while not self._finished:
            self._turn()
            time.sleep(_TURN_S)

    def pids(self) -> dict[str, int]:
        """The process id of every part that lives."""
        return {name: child.pid for name, child in self._children.items()}

    def _turn(self) -> None:
        while self._stops_seen < self._stop.asked:
            self._stops_seen += 1
            self._see(StopAsked())
        self._bury()
        self._see(Tick())
        if self._stops_seen == 0:
            self._chores()
            if not self._state.ready and self._answers():
                self._see(Answered())

    def _bury(self) -> None:
        for name, child in list(self._children.items()):
            code = child.exit_code()
            if code is not None:
                del self._children[name]
                self._see(Died(name, code))
        reap_orphans(self.pids().values())

    def _see(self, event: Happening) -> None:
        self._state, actions = decide(self._state, event, now=time.monotonic(), rng=self._rng)
        for action in actions:
            self._do(action)

    def _do(self, action: Action) -> None:
        match action:
            case Start(name):
                self._children[name] = Child(self._launches[name])
            case Terminate(name):
                self._children[name].terminate()
            case Kill(name):
                self._children[name].kill()
            case Mourn():
                self._mourn(action)
            case Announce():
                self._announce()
            case Finish():
                self._finished = True

    def _mourn(self, mourn: Mourn) -> None:
        log = self._launches[mourn.name].log
        ended = f"signal {-mourn.code}" if mourn.code < 0 else f"exit {mourn.code}"
        self._say(f"{mourn.name} ended with {ended}, back in {mourn.back_in_s:.1f} s; see {log}")
        if mourn.code > 0 and (words := last_words(log)):
            self._say(words)
