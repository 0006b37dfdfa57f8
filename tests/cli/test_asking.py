"""Hold the verbs that ask a server to what they send and what they print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.base.settings import load_settings
from penstock.cli.connect import token_of

EVENT = {
    "position": "7",
    "id": "e-7",
    "type": "metastore.record.updated",
    "source": "metastore.api",
    "occurredAt": "2026-01-31T10:30:00.000Z",
    "severity": "info",
    "payload": {"version": 12},
}
PAGE = {"nextCursor": "abc", "hasMore": True, "limit": 50}


def test_a_list_of_events_is_one_line_per_event(run: Any, desk: Any, answers: Any) -> None:
    answers("GET /admin/events", {"data": {"events": [EVENT, EVENT], "page": PAGE}, "schema": {}})

    ran = run("events", "list")

    line = "7  2026-01-31T10:30:00.000Z  info  metastore.record.updated  metastore.api  e-7"
    assert ran.out.splitlines() == [line, line]
    assert ran.err == "there is more: --cursor abc\n"
    assert ran.code == 0


def test_every_filter_of_a_list_reaches_the_server(run: Any, desk: Any, answers: Any) -> None:
    answers("GET /admin/events", {"data": {"events": [], "page": {}}})

    ran = run(
        "events", "list", "--type", "a.*", "--type", "b.c", "--source", "s", "--severity", "error",
        "--tag", "issueId=42", "--tag", "k=a=b", "--correlation-id", "r", "--from", "F", "--to",
        "T", "--json-path", "$.x", "--limit", "3", "--cursor", "c",
    )  # fmt: skip

    assert (ran.code, ran.out) == (0, "")
    assert sorted(desk.asked[0].parameters) == sorted(
        [
            ("type", "a.*"), ("type", "b.c"), ("source", "s"), ("severity", "error"),
            ("tag.issueId", "42"), ("tag.k", "a=b"), ("correlationId", "r"), ("from", "F"),
            ("to", "T"), ("jsonPath", "$.x"), ("limit", "3"), ("cursor", "c"),
        ]
    )  # fmt: skip


def test_json_output_is_what_the_server_said_digit_by_digit(
    run: Any, desk: Any, answers: Any
) -> None:
    body = b'{"data": {"event": {"id": "e", "payload": {"n": 12345678901234567.890123456789}}}}'
    answers("GET /admin/events/e", body)

    ran = run("events", "show", "e", "--json")

    assert '"n":12345678901234567.890123456789' in ran.out
    assert json.loads(ran.out)["id"] == "e"


def test_one_event_is_shown_field_by_field(run: Any, desk: Any, answers: Any) -> None:
    answers("GET /admin/events/e-7", {"data": {"event": EVENT}})

    lines = run("events", "show", "e-7").out.splitlines()

    assert lines[0] == "position    7"
    assert lines[-1] == 'payload     {"version":12}'


def test_an_id_cannot_change_the_path_it_is_asked_under(run: Any, desk: Any) -> None:
    run("events", "show", "../tokens?x=1#y")

    assert desk.asked[0].path == "/admin/events/..%2Ftokens%3Fx%3D1%23y"


def test_control_characters_in_events_never_reach_the_terminal(
    run: Any, desk: Any, answers: Any
) -> None:
    evil = {**EVENT, "source": "x\x1b]0;owned\x07\ny\x9b31m"}
    answers("GET /admin/events", {"data": {"events": [evil], "page": {}}})

    ran = run("events", "list")

    assert "x\\x1b]0;owned\\x07\\x0ay\\x9b31m" in ran.out
    assert len(ran.out.splitlines()) == 1


def test_a_problem_of_the_server_is_two_lines_with_its_own_code_and_remedy(
    run: Any, desk: Any, answers: Any
) -> None:
    problem = {
        "code": "query_invalid",
        "detail": "expected a jsonPath, found rubbish",
        "remedy": "Correct it.",
        "errors": [{"pointer": "jsonPath", "detail": "expected a jsonPath, found rubbish"}],
    }
    answers("GET /admin/events", problem, status=400)

    ran = run("events", "list", "--json-path", "rubbish")

    assert ran.code == 1
    assert ran.out == ""
    assert ran.err.splitlines() == [
        "error  query_invalid: expected a jsonPath, found rubbish",
        "  fix  Correct it.",
    ]


@pytest.mark.parametrize("body", [b"<html>Bad Gateway</html>", b"", b"[1]", b"\xff"])
def test_an_answer_that_is_no_problem_document_is_still_two_lines(
    run: Any, desk: Any, answers: Any, body: bytes
) -> None:
    answers("GET /admin/events", body, status=500)

    ran = run("events", "list")

    assert ran.code == 1
    assert ran.err.splitlines()[0] == "error  http_500: the server answered 500"


def test_an_answer_that_is_not_json_is_refused_in_two_lines(
    run: Any, desk: Any, answers: Any
) -> None:
    answers("GET /admin/events", b"<html>a login page</html>")

    ran = run("events", "list")

    assert ran.code == 1
    assert ran.err.startswith("error  not_understood: ")
    assert len(ran.err.splitlines()) == 2


def test_a_server_that_is_not_there_is_two_lines_with_what_to_start(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", "http://127.0.0.1:1")

    ran = run("ledger")

    assert ran.code == 1
    assert ran.err.startswith(
        "error  server_unavailable: expected an answer from http://127.0.0.1:1"
    )
    assert "penstock up" in ran.err.splitlines()[1]


def test_the_token_is_the_given_one_then_the_admins_then_the_kept_one(home: Path) -> None:
    (home / ".penstock").mkdir()
    (home / ".penstock" / "admin.token").write_text("kept-token\n")
    admin = {"PENSTOCK_ADMIN_TOKEN": "admin-token-of-24-characters"}

    assert token_of(load_settings({})) == "kept-token"
    assert token_of(load_settings(admin)) == "admin-token-of-24-characters"
    assert token_of(load_settings({**admin, "PENSTOCK_TOKEN": "given"})) == "given"


def test_no_token_anywhere_sends_none(home: Path) -> None:
    assert token_of(load_settings({})) is None


def test_the_token_is_sent_as_a_bearer(run: Any, desk: Any) -> None:
    run("ledger")

    assert desk.asked[0].headers["authorization"] == "Bearer pst_test-token-of-the-command-line"


LETTER = {
    "id": "d-1",
    "reason": "payload_invalid",
    "detail": "expected integer",
    "pointer": "/payload/version",
    "source": "metastore.api",
    "type": "metastore.record.updated",
    "raw": "e30=",
    "firstSeenAt": "2026-01-31T10:30:00.000Z",
    "lastSeenAt": "2026-01-31T10:31:00.000Z",
    "count": 3,
    "via": "http",
}


def test_dead_letters_are_listed_one_per_line(run: Any, desk: Any, answers: Any) -> None:
    answers("GET /admin/dead-letters", {"data": {"deadLetters": [LETTER], "page": {}}})

    ran = run("dead-letters", "list", "--reason", "payload_invalid", "--type", "t", "--source", "s")

    assert ran.out.split() == [
        "d-1", "2026-01-31T10:31:00.000Z", "3", "payload_invalid", "metastore.record.updated",
        "metastore.api", "expected", "integer",
    ]  # fmt: skip
    assert dict(desk.asked[0].parameters) == {
        "reason": "payload_invalid", "type": "t", "source": "s", "limit": "50",
    }  # fmt: skip


def test_dead_letters_are_listed_by_cause(run: Any, desk: Any, answers: Any) -> None:
    group = {**LETTER, "messages": 12, "letters": 4}
    answers("GET /admin/dead-letters/groups", {"data": {"groups": [group]}})

    ran = run("dead-letters", "groups")

    assert ran.out.startswith("12  payload_invalid  metastore.record.updated  metastore.api")


def test_one_dead_letter_is_shown_whole(run: Any, desk: Any, answers: Any) -> None:
    answers("GET /admin/dead-letters/d-1", {"data": {"deadLetter": LETTER}})

    assert run("dead-letters", "show", "d-1", "--json").json == LETTER


def test_a_dry_redrive_says_what_would_pass_and_why_the_rest_would_not(
    run: Any, desk: Any, answers: Any
) -> None:
    report = {
        "wouldPass": 2,
        "wouldFail": 1,
        "redriven": 0,
        "stillFailing": [{"id": "d-9", "reason": "type_unknown"}],
    }
    answers("POST /admin/dead-letters/redrive", {"data": report})

    ran = run("dead-letters", "redrive", "--reason", "type_unknown", "--dry-run")

    assert desk.asked[0].json == {"dryRun": True, "filter": {"reason": "type_unknown"}}
    assert ran.out.splitlines() == [
        "wouldPass  2",
        "wouldFail  1",
        "stillFailing  d-9  type_unknown",
    ]


def test_a_redrive_by_id_sends_the_ids_and_nothing_else(run: Any, desk: Any, answers: Any) -> None:
    answers("POST /admin/dead-letters/redrive", {"data": {"redriven": 2, "stillFailing": []}})

    ran = run("dead-letters", "redrive", "--id", "a", "--id", "b")

    assert desk.asked[0].json == {"dryRun": False, "ids": ["a", "b"]}
    assert ran.out == "redriven  2\n"


def test_a_redrive_of_everything_has_to_be_said(run: Any, desk: Any, answers: Any) -> None:
    answers("POST /admin/dead-letters/redrive", {"data": {"redriven": 0, "stillFailing": []}})

    assert run("dead-letters", "redrive").code == 2
    assert run("dead-letters", "redrive", "--all").code == 0
    assert desk.asked[0].json == {"dryRun": False, "filter": {}}


def test_a_new_token_is_alone_on_stdout(run: Any, desk: Any, answers: Any) -> None:
    token = {"id": "t-1", "name": "etl", "secret": "pst_new", "scopes": ["events:publish"]}
    answers("POST /admin/tokens", {"data": {"token": token}}, status=201)

    ran = run("token", "create", "etl", "--scope", "events:publish", "--tenant", "acme")

    assert ran.out == "pst_new\n"
    assert "t-1" in ran.err
    assert desk.asked[0].json == {
        "name": "etl",
        "scopes": ["events:publish"],
        "tenantId": "acme",
    }


def test_tokens_are_listed_with_their_state(run: Any, desk: Any, answers: Any) -> None:
    row = {"id": "t", "name": "n", "tenantId": "default", "scopes": ["admin", "x"]}
    gone = {**row, "id": "u", "revokedAt": "2026-01-01T00:00:00.000Z"}
    answers("GET /admin/tokens", {"data": {"tokens": [row, gone]}})

    first, second = run("token", "list").out.splitlines()

    assert first.split() == ["t", "n", "default", "admin,x", "-", "active"]
    assert second.endswith("revoked 2026-01-01T00:00:00.000Z")


def test_a_token_is_revoked_by_its_id(run: Any, desk: Any, answers: Any) -> None:
    answers("DELETE /admin/tokens/t-1", b"", status=204)

    assert run("token", "revoke", "t-1").out == "revoked  t-1\n"


LEDGER = {
    "accepted": 10, "stored": 7, "duplicates": 1, "deadLettered": 1, "inFlight": 1,
    "unexplained": 0, "sources": [{"source": "a.b", "stored": 7, "duplicates": 1}],
}  # fmt: skip


def test_the_ledger_is_one_figure_per_line_then_one_source_per_line(
    run: Any, desk: Any, answers: Any
) -> None:
    answers("GET /admin/ledger", {"data": LEDGER})

    ran = run("ledger")

    assert ran.code == 0
    lines = ran.out.splitlines()
    assert [line.split() for line in lines[:6]] == [
        [name, str(LEDGER[name])] for name in list(LEDGER)[:6]
    ]
    assert lines[6].split() == ["refused", "0"]
    assert lines[7] == "source  a.b  stored 7  duplicates 1  deadLettered 0"


def test_a_ledger_that_does_not_add_up_exits_1(run: Any, desk: Any, answers: Any) -> None:
    answers("GET /admin/ledger", {"data": {**LEDGER, "unexplained": -2}})

    ran = run("ledger", "--json")

    assert ran.code == 1
    assert ran.json["unexplained"] == -2


def test_a_published_event_is_accepted_on_one_line(run: Any, desk: Any, answers: Any) -> None:
    answers(
        "POST /v1/events",
        {"data": {"status": "accepted", "acceptedAt": "t", "event": {**EVENT, "id": "e-1"}}},
        status=202,
    )

    ran = run(
        "publish", "a.b.c", "--source", "s.t", "--id", "e-1", "--payload", '{"n": 1.50}',
        "--tag", "k=v", "--correlation-id", "r",
    )  # fmt: skip

    assert ran.err == ""
    assert ran.out == "accepted  e-1  a.b.c\n"
    sent = desk.asked[0].json
    assert sent | {"id": "e-1"} == {
        "id": "e-1", "type": "a.b.c", "source": "s.t", "payload": {"n": 1.5}, "tags": {"k": "v"},
        "correlationId": "r",
    }  # fmt: skip


@pytest.mark.parametrize("given", ["@payload.json", "-"])
def test_a_payload_comes_from_a_file_or_stdin(
    run: Any, desk: Any, answers: Any, tmp_path: Path, given: str
) -> None:
    (tmp_path / "payload.json").write_text('{"from": "there"}')
    answers(
        "POST /v1/events",
        {"data": {"status": "duplicate", "acceptedAt": "t", "event": EVENT}},
        status=202,
    )

    ran = run("publish", "a.b", "--source", "s", "--payload", given, stdin=b'{"from": "there"}')

    assert ran.out.startswith("duplicate  ")
    assert desk.asked[0].json["payload"] == {"from": "there"}


def test_a_refused_event_is_two_lines_with_reason_and_dead_letter(
    run: Any, desk: Any, answers: Any
) -> None:
    problem = {
        "status": 422,
        "code": "type_unknown",
        "detail": "expected a registered type, found 'a.b'",
        "remedy": "Did you mean a.c?",
        "errors": [],
        "deadLetterId": "d-1",
    }
    answers("POST /v1/events", problem, status=422)

    ran = run("publish", "a.b", "--source", "s")

    assert ran.code == 1
    assert ran.err.splitlines() == [
        "error  type_unknown: expected a registered type, found 'a.b'; kept as dead letter d-1",
        "  fix  Did you mean a.c?",
    ]


def test_a_payload_outside_the_profile_is_refused_with_its_reason(run: Any, desk: Any) -> None:
    ran = run("publish", "a.b", "--source", "s", "--payload", '{"a":1,"a":2}')

    assert ran.code == 1
    assert ran.err.startswith("error  duplicate_key: ")
