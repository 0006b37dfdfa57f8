"""Hold a replay as it is shown: scenes in order, each an event and what it changed.

    base ── scene 1 ──▶ state 1 ── scene 2 ──▶ state 2 …          and back again

The terminal and the HTML report tell the same story.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.envelope.envelope import JsonObject
from penstock.store.timetravel.diff import Change, apply


@dataclass(frozen=True, slots=True)
class Scene:
    """One event as the API shows it, and what it changed."""

    event: JsonObject
    changes: tuple[Change, ...]

    def said(self, name: str) -> str:
        """A field of the event as text; empty when it is absent."""
        found = self.event.get(name)
        return "" if found is None else str(found)

    @property
    def position(self) -> int:
        text = self.said("position")
        return int(text) if text.isdecimal() else 0


@dataclass(frozen=True, slots=True)
class Story:
    """A history from one moment to another."""

    title: str
    reducer: str
    begins: str
    ends: str
    base: JsonObject  # the state before the first scene
    scenes: tuple[Scene, ...]
    focus: int | None = None  # the scene that was asked for, counted from 1

    def state_after(self, scenes: int) -> JsonObject:
        """The state when so many scenes have passed."""
        state = self.base
        for scene in self.scenes[:scenes]:
            state = apply(state, scene.changes)
        return state

    def at(self, position: int) -> int:
        """How many scenes have passed at a position."""
        return sum(scene.position <= position for scene in self.scenes)
