"""Run recorded passes again: they must come to the deliveries that are on record.

    recorded passes, versions and outcomes ── replay ──▶ deliveries and history
                                              differences ──▶ nothing, or a bug

Recorded is what no decision can know by itself: when a pass looked at the clock, which events it
was given, what operators did, which runs had ended, and whether the workflow room started a run.
A trigger can be replayed alone, because triggers are independent of each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from penstock.envelope.envelope import Stored
from penstock.triggers.compiled import CompiledTrigger, compile_trigger
from penstock.triggers.delivery import (
    Act,
    Delivery,
    HistoryEntry,
    Launch,
    Launched,
    LaunchOutcome,
    Refused,
    RunEnd,
)
from penstock.triggers.inputs import DUE_LIMIT, PassInputs
from penstock.triggers.limits import Limits
from penstock.triggers.passes import run_pass
from penstock.triggers.past import EventLog, PastInMemory
from penstock.triggers.roster import Roster
from penstock.triggers.state import State
from penstock.triggers.trigger import Trigger
from penstock.triggers.words import Role, Status


@dataclass(frozen=True, slots=True)
class RecordedPass:
    """One pass as it was run."""

    number: int
    judged_at: datetime
    limits: Limits
    admitted: Sequence[Stored]  # held ones that were released, then new ones that were not held
    acts: Sequence[Act] = ()
    run_ends: Sequence[RunEnd] = ()
    due_limit: int = DUE_LIMIT


@dataclass(frozen=True, slots=True)
class RecordedVersion:
    """A version of a trigger, and the first pass that went by it; None: it acts no longer.

    Of several with the same first pass, the last one given counts.
    """

    trigger_id: str
    first_pass: int
    trigger: Trigger | None


@dataclass(slots=True)
class Replayed:
    """What recorded passes come to."""

    deliveries: dict[str, Delivery] = field(default_factory=dict)
    history: list[HistoryEntry] = field(default_factory=list)
    unforeseen: list[Launch] = field(default_factory=list)  # launches that the record lacks
    passes: int = 0


@dataclass(frozen=True, slots=True)
class Difference:
    """Where record and replay disagree; None: not there at all."""

    delivery_id: str
    recorded: Delivery | HistoryEntry | None
    replayed: Delivery | HistoryEntry | None


def replay(
    passes: Iterable[RecordedPass],
    versions: Sequence[RecordedVersion],
    outcomes: Mapping[tuple[int, str], LaunchOutcome],
    log: EventLog,
) -> Replayed:
    """Run recorded passes again, from the first one that a trigger was in force."""
    state, past, done = State(), PastInMemory(log), Replayed()
    rosters = _Rosters(versions)
    for recorded in passes:
        inputs = PassInputs(
            number=recorded.number,
            judged_at=recorded.judged_at,
            roster=rosters.at(recorded.number),
            limits=recorded.limits,
            acts=recorded.acts,
            run_ends=recorded.run_ends,
            due_limit=recorded.due_limit,
            admitted=recorded.admitted,
        )

        def start(launch: Launch, number: int = recorded.number) -> LaunchOutcome:
            outcome = outcomes.get((number, launch.delivery_id))
            if outcome is None:
                done.unforeseen.append(launch)
                return Launched(launch.run_id)
            return outcome

        result = run_pass(state, inputs, past, start)
        past.remember(result.deliveries)
        done.history.extend(result.history())
        done.passes += 1
    done.deliveries = past.deliveries
    return done


def outcomes_of(history: Iterable[HistoryEntry]) -> dict[tuple[int, str], LaunchOutcome]:
    """What the workflow room answered, by pass and triggering delivery."""
    found: dict[tuple[int, str], LaunchOutcome] = {}
    for entry in history:
        detail, key = entry.detail, (entry.pass_number, entry.delivery_id)
        if entry.status is Status.LAUNCHED and detail.get("role") != Role.INCLUDED:
            found[key] = Launched(
                str(detail["runId"]), attached=detail.get("role") == Role.ATTACHED
            )
        elif "refused" in detail:
            found[key] = Refused(str(detail["refused"]))
    return found


def differences(
    deliveries: Iterable[Delivery], history: Iterable[HistoryEntry], replayed: Replayed
) -> list[Difference]:
    """Every delivery and every history entry that is not the same in record and replay."""
    recorded = {d.id: d for d in deliveries}
    names = sorted({*recorded, *replayed.deliveries})
    found = [
        Difference(name, recorded.get(name), replayed.deliveries.get(name))
        for name in names
        if recorded.get(name) != replayed.deliveries.get(name)
    ]
    entries = {(e.delivery_id, e.pass_number): e for e in history}
    again = {(e.delivery_id, e.pass_number): e for e in replayed.history}
    return found + [
        Difference(key[0], entries.get(key), again.get(key))
        for key in sorted({*entries, *again})
        if entries.get(key) != again.get(key)
    ]


class _Rosters:
    """The triggers in force at each pass, compiled once."""

    def __init__(self, versions: Sequence[RecordedVersion]) -> None:
        self._coming = sorted(versions, key=lambda v: v.first_pass)[::-1]
        self._in_force: dict[str, CompiledTrigger] = {}
        self._roster = Roster()

    def at(self, number: int) -> Roster:
        """The roster of a pass; passes are asked for in order."""
        is_changed = False
        while self._coming and self._coming[-1].first_pass <= number:
            version = self._coming.pop()
            is_changed = True
            self._in_force.pop(version.trigger_id, None)
            if version.trigger is not None:
                self._in_force[version.trigger_id] = compile_trigger(version.trigger)
        if is_changed:
            self._roster = Roster(self._in_force.values())
        return self._roster
