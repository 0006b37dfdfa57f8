"""Show a replay in a plain terminal: all of it, or one step at a time, forward and back.

    n  or Enter   next          g 1042   go to a position        s   the whole state
    p             back          f, l     first, last             q   quit

`Player` is pure: a command gives another player, and a player gives its lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from penstock.cli import report
from penstock.cli.fields import inner, rows, text
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.store.timetravel.diff import Change, Kind, apply, read_pointer, undo
from penstock.store.timetravel.story import Scene, Story

HELP = "n next · p back · g POSITION go there · f first · l last · s state · q quit"
_MARKS: dict[Kind, str] = {"added": "+", "removed": "-", "changed": "~"}
_SHOWN_MAX = 200


def read_story(pages: Sequence[JsonObject], title: str) -> Story:
    """The story that the pages of `/v1/replay` tell."""
    first, last = pages[0], pages[-1]
    scenes = tuple(read_scene(step) for page in pages for step in rows(page, "steps"))
    reducer = inner(first, "reducer")
    focus = text(first, "focus")
    story = Story(
        title=title,
        reducer=f"{text(reducer, 'name')}@{text(reducer, 'version')}",
        begins=moment(inner(first, "from")),
        ends=moment(inner(last, "to")),
        base=inner(first, "state"),
        scenes=scenes,
    )
    return replace(story, focus=story.at(int(focus))) if focus.isdecimal() else story


def read_scene(step: JsonObject) -> Scene:
    """One step as the API sends it."""
    return Scene(inner(step, "event"), tuple(map(_change, rows(step, "changes"))))


def moment(found: JsonObject) -> str:
    """A moment as a person reads it."""
    at = text(found, "at")
    return f"position {text(found, 'position')}{f' ({at})' if at else ''}"


def scene_lines(scene: Scene) -> Iterator[str]:
    """One line for the event, one more for each change."""
    names = ("position", "occurredAt", "type", "source", "id")
    yield "  ".join(scene.said(name) or "-" for name in names)
    for change in scene.changes:
        shown = " -> ".join(_cut(value) for value in _values(change))
        yield f"  {_MARKS[change.kind]} {change.pointer}  {shown}"


@dataclass(frozen=True, slots=True)
class Player:
    """A place in a story and the state there; 0 is before the first scene."""

    story: Story
    place: int
    state: JsonObject
    says: tuple[str, ...] = ()  # instead of the scene, when that is what was asked for
    is_over: bool = False

    @classmethod
    def start(cls, story: Story) -> Player:
        """At the scene that was asked for, or else at the first."""
        place = story.focus or min(1, len(story.scenes))
        return cls(story, place, story.state_after(place))

    def obey(self, command: str) -> Player:
        """The player after a command."""
        word, _, rest = command.strip().partition(" ")
        last = len(self.story.scenes)
        if word == "g" and rest.strip().isdecimal():
            return self._go(self.story.at(int(rest)))
        places = {"": self.place + 1, "n": self.place + 1, "p": self.place - 1, "f": 1, "l": last}
        if word in places and not rest:
            return self._go(places[word])
        if word == "s":
            return replace(self, says=(report.to_json(self.state),))
        if word == "q":
            return replace(self, is_over=True)
        return replace(self, says=(HELP,))

    def lines(self) -> list[str]:
        """What to show now."""
        if self.says:
            return [*self.says]
        head = f"[{self.place}/{len(self.story.scenes)}]"
        if self.place == 0:
            return [f"{head} before the first event"]
        first, *rest = scene_lines(self.story.scenes[self.place - 1])
        return [f"{head} {first}", *(rest or ["  nothing changed"])]

    def _go(self, wanted: int) -> Player:
        place = max(0, min(len(self.story.scenes), wanted))
        state = self.state
        for scene in self.story.scenes[self.place : place]:
            state = apply(state, scene.changes)
        for scene in reversed(self.story.scenes[place : self.place]):
            state = undo(state, scene.changes)
        return replace(self, place=place, state=state, says=())


def _change(found: JsonObject) -> Change:
    kinds: dict[str, Kind] = {"added": "added", "removed": "removed"}
    return Change(
        path=read_pointer(text(found, "pointer")),
        kind=kinds.get(text(found, "kind"), "changed"),
        before=found.get("before"),
        after=found.get("after"),
    )


def _values(change: Change) -> list[JsonValue]:
    return {"added": [change.after], "removed": [change.before]}.get(
        change.kind, [change.before, change.after]
    )


def _cut(value: JsonValue) -> str:
    shown = report.to_json(value)
    return shown if len(shown) <= _SHOWN_MAX else f"{shown[:_SHOWN_MAX]}… ({len(shown)} characters)"
