"""`penstock replay` shows history as the server tells it, in whole, step by step, or as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.cli.replay_view import Player, read_story, scene_lines
from penstock.store.timetravel.diff import changes_between

STATES: list[Any] = [
    {},
    {"title": "Slow", "status": "open"},
    {"title": "Slow", "status": "open", "labels": ["bug"]},
    {"title": "Slow", "status": "closed"},
]
POSITIONS = (11, 15, 20)


def step(number: int, **said: Any) -> dict[str, Any]:
    """The step that leads to one of the states."""
    changes = changes_between(STATES[number - 1], STATES[number])
    event = {
        "position": str(POSITIONS[number - 1]), "id": f"e-{number}", "severity": "info",
        "type": "ISSUE.UPDATED.SUCCESS", "source": "tamma.api",
        "occurredAt": f"2026-03-01T12:00:0{number}.000Z", "payload": STATES[number],
    }  # fmt: skip
    return {"event": {**event, **said}, "changes": [change.to_json() for change in changes]}


def page(*steps: dict[str, Any], cursor: str | None = None, **more: Any) -> dict[str, Any]:
    """An answer of `/v1/replay`."""
    data = {
        "boundary": {"tags": [["issueId", "42"]], "types": [], "correlationId": None},
        "reducer": {"name": "last-write-wins", "version": 1},
        "from": {"position": "0", "at": None},
        "to": {"position": "99", "at": "2026-03-01T13:00:00.000Z"},
        "state": {}, "events": 0, "steps": list(steps), "focus": None,
        "page": {"nextCursor": cursor, "hasMore": cursor is not None, "limit": 200},
    }  # fmt: skip
    return {"data": {**data, **more}}


WHOLE = page(step(1), step(2), step(3))
LINES = [
    "11  2026-03-01T12:00:01.000Z  ISSUE.UPDATED.SUCCESS  tamma.api  e-1",
    '  + /status  "open"',
    '  + /title  "Slow"',
    "15  2026-03-01T12:00:02.000Z  ISSUE.UPDATED.SUCCESS  tamma.api  e-2",
    '  + /labels  ["bug"]',
    "20  2026-03-01T12:00:03.000Z  ISSUE.UPDATED.SUCCESS  tamma.api  e-3",
    '  - /labels  ["bug"]',
    '  ~ /status  "open" -> "closed"',
]


def test_a_replay_prints_each_event_and_what_it_changed(run: Any, desk: Any, answers: Any) -> None:
    answers("GET /v1/replay", WHOLE)

    ran = run("replay", "--tag", "issueId:42")

    assert ran.out.splitlines() == LINES
    assert (ran.code, ran.err) == (0, "")


def test_every_option_reaches_the_server(run: Any, desk: Any, answers: Any) -> None:
    answers("GET /v1/replay", WHOLE)

    run(
        "replay", "--tag", "issueId:42", "--tag", "mode=dev", "--tag", "url:http://x:1", "--type",
        "ISSUE.**", "--reducer", "count", "--from", "5", "--to", "2026-03-01T12:00:00Z",
    )  # fmt: skip

    assert sorted(desk.asked[0].parameters) == sorted(
        [
            ("tag.issueId", "42"), ("tag.mode", "dev"), ("tag.url", "http://x:1"),
            ("type", "ISSUE.**"), ("reducer", "count"), ("from", "5"),
            ("to", "2026-03-01T12:00:00Z"), ("limit", "200"),
        ]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        (("--correlation-id", "req-1"), ("correlationId", "req-1")),
        (("--event-id", "e-2"), ("eventId", "e-2")),
    ],
)
def test_a_correlation_or_an_event_names_a_history(
    run: Any, desk: Any, answers: Any, words: tuple[str, ...], parameter: tuple[str, str]
) -> None:
    answers("GET /v1/replay", WHOLE)

    assert run("replay", *words).code == 0
    assert parameter in desk.asked[0].parameters


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--tag", "a:1", "--event-id", "e"),
        ("--correlation-id", "r", "--event-id", "e"),
        ("--tag", "issueId"),
        ("--tag", ":42"),
        ("--tag", "issueId:"),
    ],
)
def test_a_replay_of_nothing_or_of_two_things_is_misuse(run: Any, desk: Any, words: Any) -> None:
    ran = run("replay", *words)

    assert ran.code == 2
    assert ran.err.startswith("error  misused: ")
    assert desk.asked == []


def test_all_pages_are_read_up_to_where_the_first_saw_the_end(
    run: Any, desk: Any, answers: Any
) -> None:
    answers("GET /v1/replay", page(step(1), step(2), cursor="c1"), page(step(3), state=STATES[2]))

    ran = run("replay", "--tag", "issueId:42")

    assert ran.out.splitlines() == LINES
    assert ("cursor", "c1") in desk.asked[1].parameters
    assert ("to", "99") in desk.asked[1].parameters


def test_a_limit_stops_and_says_how_to_go_on(run: Any, desk: Any, answers: Any) -> None:
    answers("GET /v1/replay", page(step(1), step(2), cursor="c1"))

    ran = run("replay", "--tag", "issueId:42", "--limit", "2")

    assert len(desk.asked) == 1
    assert ("limit", "2") in desk.asked[0].parameters
    assert "--from 15" in ran.err


def test_json_is_the_whole_replay_in_one_document(run: Any, desk: Any, answers: Any) -> None:
    answers("GET /v1/replay", page(step(1), cursor="c1"), page(step(2), step(3)))

    found = run("replay", "--tag", "issueId:42", "--json").json

    assert [each["event"]["id"] for each in found["steps"]] == ["e-1", "e-2", "e-3"]
    assert (found["base"], found["state"]) == ({}, STATES[3])
    assert found["reducer"]["name"] == "last-write-wins"


def test_nothing_that_happened_is_said_and_is_no_failure(run: Any, answers: Any) -> None:
    answers("GET /v1/replay", page())

    ran = run("replay", "--tag", "issueId:43")

    assert (ran.code, ran.out, ran.err) == (0, "", "no events between these moments\n")


def test_a_report_is_written_into_the_file(run: Any, answers: Any, home: Path) -> None:
    answers("GET /v1/replay", WHOLE)

    ran = run("replay", "--tag", "issueId:42", "--html", "story.html")

    text = (home / "story.html").read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert text.count("<article ") == 3
    assert "<title>Replay of issueId:42</title>" in text
    assert ran.out == ""
    assert ran.err == "wrote story.html: 3 events\n"


def test_a_file_that_cannot_be_written_is_two_lines(run: Any, answers: Any) -> None:
    answers("GET /v1/replay", WHOLE)

    ran = run("replay", "--tag", "issueId:42", "--html", "no/such/folder/x.html")

    assert ran.code == 1
    assert ran.err.splitlines()[0].startswith("error  not_written: expected to write")
    assert ran.err.splitlines()[1].startswith("  fix  ")


def test_a_refusal_of_the_server_is_two_lines(run: Any, answers: Any) -> None:
    problem = {
        "code": "reducer_failed", "detail": "expected x to give a state for event e-9",
        "remedy": "Correct it.", "errors": [],
    }  # fmt: skip
    answers("GET /v1/replay", problem, status=422)

    ran = run("replay", "--tag", "issueId:42", "--reducer", "x")

    assert ran.code == 1
    assert ran.err.splitlines() == [
        "error  reducer_failed: expected x to give a state for event e-9",
        "  fix  Correct it.",
    ]


def test_stepping_goes_forward_and_back_and_ends(run: Any, answers: Any) -> None:
    answers("GET /v1/replay", WHOLE)

    ran = run("replay", "--tag", "issueId:42", "--interactive", stdin=b"n\np\ng 17\ns\nl\nq\n")

    assert [line for line in ran.out.splitlines() if not line.startswith("  ")] == [
        f"[1/3] {LINES[0]}",
        f"[2/3] {LINES[3]}",
        f"[1/3] {LINES[0]}",
        f"[2/3] {LINES[3]}",
        '{"status":"open","title":"Slow","labels":["bug"]}',
        f"[3/3] {LINES[5]}",
    ]
    assert ran.code == 0


def test_stepping_ends_where_the_input_ends(run: Any, answers: Any) -> None:
    answers("GET /v1/replay", WHOLE)

    assert run("replay", "--event-id", "e-1", "--interactive", stdin=b"").code == 0


def test_stepping_opens_at_the_event_that_was_asked_for(run: Any, answers: Any) -> None:
    answers("GET /v1/replay", page(step(1), step(2), step(3), focus="15"))

    ran = run("replay", "--event-id", "e-2", "--interactive", stdin=b"q\n")

    assert ran.out.splitlines()[0] == f"[2/3] {LINES[3]}"


def test_what_an_event_says_cannot_steer_the_terminal(run: Any, answers: Any) -> None:
    hostile = step(1, source="\x1b[2J\x07evil")
    hostile["changes"][0]["after"] = "\x1b]0;owned\x07"
    answers("GET /v1/replay", page(hostile))

    for words in ((), ("--interactive",)):
        ran = run("replay", "--tag", "a:1", *words, stdin=b"s\nq\n")

        assert "\x1b" not in ran.out
        assert "\x07" not in ran.out


def player(**more: Any) -> Player:
    return Player.start(read_story([page(step(1), step(2), step(3), **more)["data"]], "t"))


def test_the_state_at_every_place_is_right_whichever_way_it_was_reached() -> None:
    there = player()
    for command, place in [
        ("n", 2), ("", 3), ("n", 3), ("p", 2), ("p", 1), ("p", 0), ("p", 0), ("l", 3), ("f", 1),
        ("g 20", 3), ("g 19", 2), ("g 0", 0), ("g 999", 3),
    ]:  # fmt: skip
        there = there.obey(command)

        assert there.place == place
        assert there.state == STATES[place]


def test_before_the_first_event_there_is_nothing_to_show() -> None:
    assert player().obey("p").lines() == ["[0/3] before the first event"]


def test_an_unknown_command_shows_the_keys_and_moves_nothing() -> None:
    for command in ("x", "g", "g here", "n 5", "help"):
        there = player().obey(command)

        assert there.place == 1
        assert "q quit" in there.lines()[0]
    assert player().obey("x").obey("n").lines()[0].startswith("[2/3]")


def test_an_event_that_changed_nothing_says_so() -> None:
    still = {**step(2), "changes": []}
    there = Player.start(read_story([page(still)["data"]], "t"))

    assert there.lines()[1:] == ["  nothing changed"]


def test_a_story_of_no_events_can_be_stepped_through_too() -> None:
    empty = Player.start(read_story([page()["data"]], "t"))

    assert empty.obey("n").obey("l").obey("p").lines() == ["[0/0] before the first event"]
    assert empty.obey("q").is_over


def test_a_long_value_is_cut_on_a_line() -> None:
    long = step(1)
    long["changes"][0]["after"] = "x" * 5_000
    story = read_story([page(long)["data"]], "t")

    lines = list(scene_lines(story.scenes[0]))

    assert all(len(line) < 300 for line in lines)
    assert "(5002 characters)" in lines[1]
