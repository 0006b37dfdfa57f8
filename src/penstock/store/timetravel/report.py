"""Write a story as one HTML file: timeline, every event, what it changed, and keys to step with.

The file needs nothing but itself. Everything an event says goes through `_text`, which leaves no
character that HTML could read as markup, and none that could hide or turn round what is shown;
tests/store/timetravel/test_report.py parses pages made of hostile events.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from decimal import Decimal

import orjson

from penstock.base.clock import parse_instant
from penstock.envelope.envelope import JsonValue
from penstock.store.timetravel.diff import Change
from penstock.store.timetravel.page import SCRIPT, STYLE, policy
from penstock.store.timetravel.story import Scene, Story

_SHOWN_MAX = 2_000  # characters of one value in a list of changes
_WHOLE_MAX = 40_000  # characters of one event
# Controls, and what is invisible or changes the direction of text.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_MARKS = {"added": "+", "removed": "-", "changed": "~"}
_TONES = ("critical", "error", "warning", "info", "debug")
_KEYS = (
    '<p class="keys"><kbd>→</kbd> or <kbd>n</kbd> next, <kbd>←</kbd> or <kbd>p</kbd> back, '
    "<kbd>Home</kbd> first, <kbd>End</kbd> last</p>"
)


def write_report(story: Story) -> str:
    """The story as a whole HTML document."""
    focus = max((story.focus or 1) - 1, 0)
    return "".join(
        [
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy()}">',
            '<meta name="referrer" content="no-referrer">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Replay of {_text(story.title)}</title><style>{STYLE}</style></head>",
            f'<body data-focus="{focus}">{_header(story)}<main><nav><ol>',
            *(_entry(number, scene) for number, scene in enumerate(story.scenes, 1)),
            "</ol></nav><div>",
            *(_article(number, scene, story) for number, scene in enumerate(story.scenes, 1)),
            f"</div></main><script>{SCRIPT}</script></body></html>\n",
        ]
    )


def _header(story: Story) -> str:
    count = len(story.scenes)
    return (
        f"<header><h1>Replay of {_text(story.title)}</h1>"
        f"<p>{count} event{'' if count == 1 else 's'}, from {_text(story.begins)} to"
        f" {_text(story.ends)}, folded by <code>{_text(story.reducer)}</code></p>"
        f"{_KEYS}{_timeline(story.scenes)}{_state('State before', story.base)}"
        f"{_state('State at the end', story.state_after(count))}</header>"
    )


def _timeline(scenes: Iterable[Scene]) -> str:
    """A dot per event where it lies in time; each leads to its scene."""
    listed = list(scenes)
    instants = [_seconds(scene) for scene in listed]
    first, last = min(instants, default=0.0), max(instants, default=0.0)
    dots = []
    for number, (scene, at) in enumerate(zip(listed, instants, strict=True), 1):
        place = 1 + 98 * (at - first) / (last - first) if last > first else 50
        tone = scene.said("severity")
        dots.append(
            f'<a href="#s{number}"><circle class="{tone if tone in _TONES else "info"}"'
            f' cx="{place:.2f}%" cy="17" r="5"><title>{_text(_caption(scene))}</title></circle></a>'
        )
    line = '<line x1="1%" y1="17" x2="99%" y2="17"></line>'
    return f'<svg role="group" aria-label="timeline">{line}{"".join(dots)}</svg>'


def _entry(number: int, scene: Scene) -> str:
    changes = len(scene.changes)
    return (
        f'<li><a href="#s{number}"><strong>{_text(scene.said("type"))}</strong><br>'
        f'<small class="mono">{_text(scene.said("position"))} · {_text(scene.said("occurredAt"))}'
        f" · {changes} change{'' if changes == 1 else 's'}</small></a></li>"
    )


def _article(number: int, scene: Scene, story: Story) -> str:
    names = ("id", "position", "source", "occurredAt", "receivedAt", "severity", "correlationId")
    facts = "".join(
        f'<tr><th>{name}</th><td class="mono">{_text(scene.said(name))}</td></tr>'
        for name in names
        if scene.said(name)
    )
    changed = "".join(_row(change) for change in scene.changes)
    changes = f"<table>{changed}</table>" if changed else "<p>Nothing changed.</p>"
    whole = _text(_cut(_json(scene.event), _WHOLE_MAX))
    return (
        f'<article id="s{number}"><h2>{number} of {len(story.scenes)}:'
        f" {_text(scene.said('type'))}</h2>{changes}<details><summary>Event</summary>"
        f"<table>{facts}</table><pre>{whole}</pre></details></article>"
    )


def _row(change: Change) -> str:
    old, new = (_text(_cut(_json(value), _SHOWN_MAX)) for value in (change.before, change.after))
    shown = [f"<del>{old}</del>"] if change.kind != "added" else []
    shown += [f"<ins>{new}</ins>"] if change.kind != "removed" else []
    return (
        f'<tr class="{change.kind}"><td>{_MARKS[change.kind]}</td>'
        f'<td class="mono pointer">{_text(change.pointer)}</td>'
        f'<td class="mono">{" → ".join(shown)}</td></tr>'
    )


def _state(name: str, state: JsonValue) -> str:
    whole = _text(_cut(_json(state), _WHOLE_MAX))
    return f"<details><summary>{name}</summary><pre>{whole}</pre></details>"


def _caption(scene: Scene) -> str:
    return f"{scene.said('position')} {scene.said('type')} {scene.said('occurredAt')}"


def _seconds(scene: Scene) -> float:
    try:
        return parse_instant(scene.said("occurredAt")).timestamp()
    except ValueError:
        return 0.0


def _text(text: str) -> str:
    """Text as HTML shows it, whatever it says: as content, or between quotes."""
    plain = _HIDDEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
    return html.escape(plain, quote=True)


def _json(value: JsonValue) -> str:
    return orjson.dumps(value, default=_digits, option=orjson.OPT_INDENT_2).decode()


def _digits(value: object) -> orjson.Fragment:
    if isinstance(value, Decimal):
        return orjson.Fragment(str(value))
    raise TypeError(f"expected a JSON value, found {type(value).__name__}")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
