"""Hold `tail` to its place in the log: each event once, across lost connections."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.cli.commands import tail
from penstock.cli.sse import Message, messages

STREAM = "GET /v1/events/stream"


def event(position: int, **fields: str) -> dict[str, str]:
    return {
        "position": str(position), "id": f"e-{position}", "type": "a.b", "source": "s",
        "occurredAt": "t", "severity": "info", **fields,
    }  # fmt: skip


def received(position: int, **fields: str) -> bytes:
    frame = {"type": "workflow.event.received", "data": {"event": event(position, **fields)}}
    return (
        f"id: {position}\nevent: workflow.event.received\ndata: {json.dumps(frame)}\n\n"
    ).encode()


def about(kind: str, position: int | None, **data: object) -> bytes:
    place = "" if position is None else f"id: {position}\n"
    return f"{place}event: {kind}\ndata: {json.dumps({'type': kind, 'data': data})}\n\n".encode()


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail.time, "sleep", lambda _seconds: None)


def test_events_are_printed_one_per_line_until_there_are_enough(
    run: Any, desk: Any, answers: Any
) -> None:
    answers(STREAM, about("connection.ack", 4) + received(5) + received(6) + received(7))

    ran = run("tail", "--count", "2")

    assert ran.out.splitlines() == ["5  t  info  a.b  s  e-5", "6  t  info  a.b  s  e-6"]
    assert (ran.code, ran.err) == (0, "")


def test_json_is_one_event_per_line(run: Any, desk: Any, answers: Any) -> None:
    answers(STREAM, received(5) + received(6))

    ran = run("tail", "-n", "2", "--json")

    assert [json.loads(line) for line in ran.out.splitlines()] == [event(5), event(6)]


def test_after_a_lost_connection_it_goes_on_after_the_last_event(
    run: Any, desk: Any, answers: Any
) -> None:
    answers(STREAM, about("connection.ack", 4) + received(5), received(6) + received(7))

    ran = run("tail", "-n", "3")

    assert [line.split()[0] for line in ran.out.splitlines()] == ["5", "6", "7"]
    assert "last-event-id" not in desk.asked[0].headers
    assert desk.asked[1].headers["last-event-id"] == "5"
    assert ran.err == "connecting again: the stream ended\n"


def test_nothing_is_missed_when_the_connection_is_lost_before_the_first_event(
    run: Any, desk: Any, answers: Any
) -> None:
    answers(STREAM, about("connection.ack", 41) + b": heartbeat\nid: 42\n\n", received(43))

    run("tail", "-n", "1")

    assert desk.asked[1].headers["last-event-id"] == "42"


def test_since_a_position_asks_for_everything_after_it(run: Any, desk: Any, answers: Any) -> None:
    answers(STREAM, received(8))

    run("tail", "-n", "1", "--since", "7")

    assert desk.asked[0].headers["last-event-id"] == "7"


def test_filters_reach_the_server(run: Any, desk: Any, answers: Any) -> None:
    answers(STREAM, received(1))

    run(
        "tail", "-n", "1", "--type", "metastore.**", "--source", "s", "--severity", "error",
        "--tag", "issueId=42", "--correlation-id", "r",
    )  # fmt: skip

    assert desk.asked[0].parameters == [
        ("type", "metastore.**"), ("source", "s"), ("severity", "error"), ("tag.issueId", "42"),
        ("correlationId", "r"),
    ]  # fmt: skip


def test_a_server_that_restarts_is_waited_for(run: Any, desk: Any, answers: Any) -> None:
    away = (503, {"code": "store_unavailable", "detail": "not now", "remedy": "wait"})
    answers(STREAM, received(5), away, away, received(6))

    ran = run("tail", "-n", "2")

    assert [line.split()[0] for line in ran.out.splitlines()] == ["5", "6"]
    assert ran.err.splitlines()[1:] == ["connecting again: not now"] * 2


def test_a_refusal_ends_it_with_the_servers_words(run: Any, desk: Any, answers: Any) -> None:
    problem = {"code": "access_denied", "detail": "expected a token", "remedy": "Send one."}
    answers(STREAM, problem, status=401)

    ran = run("tail")

    assert ran.code == 1
    assert ran.err.splitlines() == ["error  access_denied: expected a token", "  fix  Send one."]


def test_falling_behind_is_said_and_costs_nothing(run: Any, desk: Any, answers: Any) -> None:
    answers(STREAM, received(1) + about("lagged", 1, dropped=9) + received(2))

    ran = run("tail", "-n", "2")

    assert "fell behind by 9 events" in ran.err
    assert len(ran.out.splitlines()) == 2


def test_no_server_from_the_start_is_a_failure_not_a_wait(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", "http://127.0.0.1:1")

    ran = run("tail")

    assert ran.code == 1
    assert ran.err.startswith("error  server_unavailable")


def test_server_sent_events_survive_any_cut_of_the_bytes() -> None:
    stream = (
        b': hello\nretry: 2000\n\nid: 1\nevent: a\ndata: {"x":"\xe2\x80\xa8y\xc2\x85"}\n\n'
        b"data: two\ndata: lines\r\n\r\n: beat\nid: 9\n\ndata: never finished"
    )
    expected = [
        Message('{"x":"\u2028y\x85"}', "a", "1"),
        Message("two\nlines"),
        Message("", id="9"),
    ]

    for size in range(1, len(stream) + 1):
        chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert list(messages(chunks)) == expected
