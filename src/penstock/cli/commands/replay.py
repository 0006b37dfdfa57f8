"""Replay a history: every event and what it changed, at once, step by step, or as a report.

It asks the server what happened and shows it. Nothing happens again.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import report
from penstock.cli.connect import connect
from penstock.cli.fields import inner, rows, text
from penstock.cli.options import AsJson
from penstock.cli.refused import Refused
from penstock.cli.replay_view import HELP, Player, read_story, scene_lines
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.store.timetravel.report import write_report
from penstock.store.timetravel.story import Story

_PAGE = 200
Parameters = list[tuple[str, str]]

CorrelationId = Annotated[str | None, typer.Option(help="The history of one correlation id.")]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", help="The history of what carries this key:value; repeat to narrow."),
]
EventId = Annotated[
    str | None, typer.Option(help="The history this event is part of: its correlation, or tags.")
]
Types = Annotated[
    list[str] | None, typer.Option("--type", help="Only this type; a glob such as ISSUE.** too.")
]
ReducerName = Annotated[str | None, typer.Option("--reducer", help="How events make up a state.")]
Begins = Annotated[str | None, typer.Option("--from", help="After this position or instant.")]
Ends = Annotated[str | None, typer.Option("--to", help="Up to this position or instant.")]
Interactive = Annotated[bool, typer.Option("--interactive", "-i", help=f"Step: {HELP}.")]
Html = Annotated[
    Path | None, typer.Option("--html", help="Write a report into this file.", dir_okay=False)
]
Steps = Annotated[int, typer.Option("--limit", min=1, help="How many events at most.")]


def replay(
    correlation_id: CorrelationId = None,
    tags: Tags = None,
    event_id: EventId = None,
    types: Types = None,
    reducer: ReducerName = None,
    begins: Begins = None,
    ends: Ends = None,
    interactive: Interactive = False,
    html: Html = None,
    limit: Steps = 10_000,
    as_json: AsJson = False,
) -> None:
    """Step through history: what each event changed, and the state before and after it."""
    asked = _boundary(correlation_id, tags, event_id)
    more = {"reducer": reducer, "from": begins, "to": ends}
    parameters = asked + [("type", each) for each in types or []]
    parameters += [(name, value) for name, value in more.items() if value is not None]
    pages = _ask(parameters, limit)
    story = read_story(pages, ", ".join(f"{_words(name)}{value}" for name, value in asked))
    if not story.scenes:
        report.say("no events between these moments")
    if html is not None:
        _write(html, story)
    if interactive:
        _play(story)
    elif as_json:
        report.document(_document(pages, story))
    elif html is None:
        _tell(story)


def _boundary(
    correlation_id: str | None, tags: list[str] | None, event_id: str | None
) -> Parameters:
    given = [correlation_id is not None, bool(tags), event_id is not None]
    if sum(given) != 1:
        raise typer.BadParameter(
            "expected one of --correlation-id, --tag and --event-id",
            param_hint="--correlation-id / --tag / --event-id",
        )
    if correlation_id is not None:
        return [("correlationId", correlation_id)]
    if event_id is not None:
        return [("eventId", event_id)]
    return [_tag(each) for each in tags or []]


def _tag(said: str) -> tuple[str, str]:
    """`key:value`, or `key=value` as the other verbs have it."""
    for mark in (":", "="):
        key, found, value = said.partition(mark)
        if found and key and value:
            return f"tag.{key}", value
    raise typer.BadParameter(f"expected key:value, found {said!r}", param_hint="--tag")


def _words(parameter: str) -> str:
    """What a title says of a parameter, before its value."""
    known = {"correlationId": "correlation ", "eventId": "event "}
    return known.get(parameter) or f"{parameter.removeprefix('tag.')}:"


def _ask(parameters: Parameters, limit: int) -> list[JsonObject]:
    """The pages of one replay; all of them end where the first one saw the end."""
    pages: list[JsonObject] = []
    left, cursor = limit, ""
    with connect() as client:
        while left > 0 and (cursor or not pages):
            page = client.get(
                "/v1/replay",
                [*parameters, ("limit", str(min(left, _PAGE))), *_on(cursor)],
            )
            pages.append(page)
            left -= len(rows(page, "steps"))
            cursor = text(inner(page, "page"), "nextCursor")
            if not any(name == "to" for name, _ in parameters):
                parameters = [*parameters, ("to", text(inner(page, "to"), "position"))]
    if cursor:
        last = rows(pages[-1], "steps")[-1]
        place = text(inner(last, "event"), "position")
        report.say(f"there is more: --from {place}, or a higher --limit")
    return pages


def _on(cursor: str) -> Parameters:
    return [("cursor", cursor)] if cursor else []


def _tell(story: Story) -> None:
    for scene in story.scenes:
        first, *rest = scene_lines(scene)
        report.line(first, tone=scene.said("severity"))
        for change in rest:
            report.line(change)


def _play(story: Story) -> None:
    player = Player.start(story)
    report.say(HELP)
    while not player.is_over:
        for shown in player.lines():
            report.line(shown)
        sys.stderr.write("> ")
        sys.stderr.flush()
        command = sys.stdin.readline()
        player = player.obey(command or "q")


def _document(pages: list[JsonObject], story: Story) -> JsonObject:
    first = pages[0]
    steps: list[JsonValue] = [step for page in pages for step in rows(page, "steps")]
    kept = {name: first.get(name) for name in ("boundary", "reducer", "from", "to", "focus")}
    final = story.state_after(len(story.scenes))
    return kept | {"base": first.get("state"), "steps": steps, "state": final}


def _write(file: Path, story: Story) -> None:
    try:
        file.write_text(write_report(story), "utf-8")
    except OSError as error:
        raise Refused(
            "not_written",
            f"expected to write {file}, found {error.strerror or error}",
            "Name a file in a folder that exists and that you may write to.",
        ) from None
    report.say(f"wrote {file}: {len(story.scenes)} events")
