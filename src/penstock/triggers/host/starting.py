"""Start runs while a pass decides: all at once afterwards, or one by one as they come.

    Hopeful   answers at once that a run was started; the launcher is called once, with all of them
    Careful   asks the launcher for each, and hands on what it says

A hopeful pass whose launcher disagrees (a run attached to another, or refused) is undone, and
decided again carefully. What a launcher said is an input of the pass, so the odd is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.triggers.delivery import Launch, Launched, LaunchOutcome, Refused


@dataclass(slots=True)
class Hopeful:
    """Say of every run that it was started."""

    def __call__(self, launch: Launch) -> LaunchOutcome:
        return Launched(launch.run_id)


@dataclass(slots=True)
class Careful:
    """Start every run when it is asked for, and remember what did not go plainly."""

    launch_all: Callable[[Sequence[Launch]], list[LaunchOutcome]]
    odd: dict[str, LaunchOutcome] = field(default_factory=dict)  # by triggering delivery

    def __call__(self, launch: Launch) -> LaunchOutcome:
        outcome = storable(self.launch_all([launch])[0])
        if outcome != Launched(launch.run_id):
            self.odd[launch.delivery_id] = outcome
        return outcome


def storable(outcome: LaunchOutcome) -> LaunchOutcome:
    """An outcome whose words PostgreSQL can keep, wherever they come from."""
    if isinstance(outcome, Refused):
        words = outcome.detail.replace("\0", "\ufffd")
        return Refused(words.encode(errors="replace").decode())
    return outcome


def went_plainly(launches: Sequence[Launch], outcomes: Sequence[LaunchOutcome]) -> bool:
    """Whether every launch became a run of its own."""
    return all(
        outcome == Launched(launch.run_id)
        for launch, outcome in zip(launches, outcomes, strict=True)
    )


def odd_columns(odd: Mapping[str, LaunchOutcome]) -> dict[str, list[str | None]]:
    """What did not go plainly, as columns: attached to which run, or refused and why."""
    return {
        "delivery_ids": list(odd),
        "attached": [o.run_id if isinstance(o, Launched) else None for o in odd.values()],
        "refused": [o.detail if isinstance(o, Refused) else None for o in odd.values()],
    }


def odd_of(attached: str | None, refused: str | None) -> LaunchOutcome:
    """What did not go plainly, from its columns."""
    return Refused(refused or "") if attached is None else Launched(attached, attached=True)
