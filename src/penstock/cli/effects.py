"""Try what a plan does to triggers over the last days, and say the difference in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.cli.commands.backtest import ask
from penstock.cli.fields import inner, number, text, warnings
from penstock.cli.planning import There
from penstock.cli.refused import Refused
from penstock.envelope.envelope import JsonObject
from penstock.triggers.files import Change, Item, Kind

if TYPE_CHECKING:
    from penstock.cli.client import Client


@dataclass(frozen=True, slots=True)
class Tried:
    """What a trigger would have done, and whether for real."""

    status: str
    found: JsonObject

    @property
    def launches(self) -> int:
        """How many runs there would have been; one that is not active starts none."""
        return number(self.found, "launches") if self.status == "active" else 0


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change of a trigger comes to; `refused` when it could not be tried."""

    days: int
    before: Tried | None = None
    after: Tried | None = None
    refused: str | None = None

    def sentence(self) -> str:
        """The difference, for people."""
        if self.refused is not None:
            return f"not tried: {self.refused}"
        before, after = self.before, self.after
        over = f"in {self.days} days"
        if after is None:
            return f"{_runs(before.launches if before else 0)} {over} would not have been started"
        said = f"would have started {_runs(after.launches)} {over}"
        if before is not None:
            said += f" instead of {before.launches}{_percent(before.launches, after.launches)}"
        peak = number(after.found, "peakLaunchesPerMinute")
        said += f", at most {peak} a minute" if after.launches else ""
        if after.status != "active":
            said += f" ({after.status}: {number(after.found, 'launches')} on paper)"
        failures = number(after.found, "renderFailures")
        said += f"; {failures} could not be rendered" if failures else ""
        return said + ("" if after.found.get("complete") else "; not all events were read")

    def warnings(self) -> list[str]:
        """What the server warns of in the trigger as it would be."""
        return [] if self.after is None else warnings(self.after.found)

    def wire(self) -> JsonObject:
        """The difference, for programs."""
        return {
            "days": self.days,
            "before": None if self.before is None else self.before.found,
            "after": None if self.after is None else self.after.found,
            "launchesBefore": None if self.before is None else self.before.launches,
            "launchesAfter": None if self.after is None else self.after.launches,
            "refused": self.refused,
            "sentence": self.sentence(),
        }


def effect_of(
    client: Client,
    change: Change,
    there: Mapping[tuple[Kind, str], There],
    *,
    since: str,
    days: int,
) -> Effect:
    """Try a changed trigger, and what it replaces, over the same events."""
    old = there.get((change.kind, change.name))
    try:
        after = None if change.wanted is None else _try(client, change.wanted, since, None)
        end = None if after is None else text(inner(after.found, "coverage"), "lastPosition")
        before = None if old is None else _try(client, old.item, since, end)
    except Refused as error:
        return Effect(days, refused=f"{error.code}: {error.detail}")
    return Effect(days, before, after)


def _try(client: Client, item: Item, since: str, end: str | None) -> Tried:
    body: JsonObject = {
        "trigger": item.body,
        "workflow": item.name.partition("/")[0],
        "from": since,
    }
    if end:
        body["to"] = end
    return Tried(text(item.body, "status"), ask(client, body))


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _percent(before: int, after: int) -> str:
    if not before or before == after:
        return ""
    return f" ({round((after - before) / before * 100):+d} %)"
