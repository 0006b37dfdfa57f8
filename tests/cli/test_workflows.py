"""Hold the verbs of workflows, runs and traces to what they send and what they print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

WORKFLOW = {
    "slug": "ship", "version": 3, "status": "active", "name": "Ship an order",
    "steps": [
        {"id": "find", "type": "function", "handler": "find-order"},
        {"id": "tell", "type": "service", "serviceSlug": "post", "dependsOn": ["find"]},
    ],
    "schedules": [
        {"name": "nightly", "cron": "30 2 * * *", "timezone": "UTC", "isActive": True,
         "nextRunAt": "2026-03-02T02:30:00.000Z"},
    ],
    "eventTriggers": [
        {"name": "paid", "eventType": "orders.order.paid", "status": "active", "id": "t-1"}
    ],
}  # fmt: skip
RUN = {
    "id": "r-1", "status": "pending", "workflowSlug": "ship", "createdAt": "T", "runKey": None,
    "durationMs": None, "errorMessage": None, "parameters": {"n": 1},
}  # fmt: skip
YAML = """
kind: Workflow
slug: ship
name: Ship an order
steps:
  - {id: find, type: function, handler: find-order}
"""


def test_workflows_are_one_line_each(run: Any, desk: Any, answers: Any) -> None:
    answers("GET /workflows", {"data": {"workflows": [WORKFLOW]}})

    ran = run("workflows", "list", "--status", "active")

    assert ran.out == "ship  3  active  2  Ship an order\n"
    assert desk.asked[0].parameters == [("status", "active")]


def test_a_workflow_is_shown_with_what_its_steps_wait_for(
    run: Any, desk: Any, answers: Any
) -> None:
    versions = [{"version": 3, "createdAt": "T3", "createdBy": "ana"}]
    answers("GET /workflows/ship", {"data": {"workflow": WORKFLOW, "versions": versions}})

    lines = [line.split() for line in run("workflows", "show", "ship").out.splitlines()]

    assert ["step", "tell", "service", "post", "after", "find"] in lines
    assert ["trigger", "paid", "orders.order.paid", "active", "t-1"] in lines
    assert ["version", "3", "T3", "ana", "-"] in lines
    assert any(line[:2] == ["schedule", "nightly"] for line in lines)


def test_a_run_is_started_with_its_parameters(run: Any, desk: Any, answers: Any) -> None:
    answers("POST /workflows/ship/run", {"data": {"run": RUN}}, status=202)

    ran = run("workflows", "run", "ship", "--parameters", '{"n": 1}', "--run-key", "k")

    assert ran.out == "r-1  pending  ship\n"
    assert desk.asked[0].json == {"parameters": {"n": 1}, "runKey": "k"}


def test_parameters_may_come_from_a_file_or_from_stdin(
    run: Any, desk: Any, answers: Any, home: Path
) -> None:
    answers("POST /workflows/ship/run", {"data": {"run": RUN}}, status=202)
    (home / "p.json").write_text('{"n": 2}')

    run("workflows", "run", "ship", "--parameters", "@p.json")
    run("workflows", "run", "ship", "--parameters", "-", stdin=b'{"n": 3}')

    assert [each.json["parameters"] for each in desk.asked] == [{"n": 2}, {"n": 3}]


@pytest.mark.parametrize("given", ["{", "", "@nowhere.json"])
def test_parameters_that_cannot_be_read_are_refused_before_anything_is_asked(
    run: Any, desk: Any, given: str
) -> None:
    ran = run("workflows", "run", "ship", "--parameters", given)

    assert ran.code in (1, 2)
    assert desk.asked == []


def test_a_taken_run_key_is_two_lines_on_stderr(run: Any, desk: Any, answers: Any) -> None:
    problem = {"code": "run_key_conflict", "detail": "found r-0", "remedy": "Follow it.", "run": {}}
    answers("POST /workflows/ship/run", problem, status=409)

    ran = run("workflows", "run", "ship", "--run-key", "k")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error  run_key_conflict: found r-0\n  fix  Follow it.\n"


def test_a_file_makes_a_workflow_that_is_not_there(
    run: Any, desk: Any, answers: Any, home: Path
) -> None:
    (home / "ship.yaml").write_text(YAML)
    answers("POST /workflows", {"data": {"workflow": WORKFLOW | {"version": 1}}}, status=201)

    ran = run("workflows", "apply-file", "ship.yaml")

    assert ran.out == "created  ship  1\n"
    assert [each.method for each in desk.asked] == ["GET", "POST"]
    assert "kind" not in desk.asked[1].json


def test_a_file_replaces_what_is_there_whole(run: Any, desk: Any, answers: Any, home: Path) -> None:
    (home / "ship.yaml").write_text(YAML)
    answers("GET /workflows/ship", {"data": {"workflow": WORKFLOW}})
    answers("PATCH /workflows/ship", {"data": {"workflow": WORKFLOW | {"version": 4}}})

    ran = run("workflows", "apply-file", "ship.yaml", "--json")

    assert ran.json == {"applied": [{"action": "updated", "slug": "ship", "version": 4}]}
    sent = desk.asked[1].json
    assert (sent["description"], sent["parametersSchema"]) == (None, None)
    assert desk.asked[1].headers["if-match"] == '"3"'


def test_a_file_that_says_what_is_there_changes_nothing(run: Any, desk: Any, answers: Any) -> None:
    answers("GET /workflows/ship", {"data": {"workflow": WORKFLOW}})
    answers("PATCH /workflows/ship", {"data": {"workflow": WORKFLOW}})

    ran = run("workflows", "apply-file", "-", stdin=YAML.encode())

    assert ran.out == "unchanged  ship  3\n"


def test_a_file_with_a_circle_is_refused_by_line_and_nothing_is_asked(run: Any, desk: Any) -> None:
    circle = YAML.replace("handler: find-order", "handler: f, dependsOn: [find]")

    ran = run("workflows", "apply-file", "-", stdin=circle.encode())

    assert ran.code == 1
    assert ran.err.startswith("error  files_invalid: -:")
    assert desk.asked == []


def test_a_file_with_another_kind_is_refused_with_the_verb_that_takes_it(
    run: Any, desk: Any
) -> None:
    schedule = "kind: Schedule\nworkflow: ship\nname: nightly\ncron: '30 2 * * *'\n"

    ran = run("workflows", "apply-file", "-", stdin=schedule.encode())

    assert ran.code == 1
    assert "penstock apply" in ran.err
    assert desk.asked == []


def test_a_deleted_workflow_is_said(run: Any, desk: Any, answers: Any) -> None:
    answers("DELETE /workflows/ship", b"", status=204)

    assert run("workflows", "delete", "ship").out == "deleted  ship\n"
    assert run("workflows", "delete", "ship", "--json").json == {"slug": "ship", "deleted": True}


def test_runs_are_listed_with_every_filter(run: Any, desk: Any, answers: Any) -> None:
    page = {"nextCursor": "r-1", "hasMore": True, "limit": 1}
    answers("GET /workflow-runs", {"data": {"runs": [RUN], "page": page}})

    ran = run(
        "runs", "list", "--workflow", "ship", "--status", "failed", "--status", "canceled",
        "--from", "F", "--to", "T", "--limit", "1", "--cursor", "c",
    )  # fmt: skip

    assert ran.out == "r-1  T  pending  ship  -  -  -\n"
    assert ran.err == "there is more: --cursor r-1\n"
    assert sorted(desk.asked[0].parameters) == sorted(
        [
            ("workflow", "ship"), ("status", "failed"), ("status", "canceled"), ("from", "F"),
            ("to", "T"), ("limit", "1"), ("cursor", "c"),
        ]
    )  # fmt: skip


def test_a_run_is_shown_with_its_steps(run: Any, desk: Any, answers: Any) -> None:
    step = {"stepId": "find", "status": "failed", "attempt": 3, "durationMs": 12}
    answers("GET /workflow-runs/r-1", {"data": {"run": RUN}})
    answers("GET /workflow-runs/r-1/steps", {"data": {"steps": [step]}})

    lines = run("runs", "show", "r-1").out.splitlines()

    assert lines[0].split() == ["id", "r-1"]
    assert lines[-1].split() == ["step", "find", "failed", "3", "12", "-"]
    assert run("runs", "show", "r-1", "--json").json == {"run": RUN, "steps": [step]}


@pytest.mark.parametrize("verb", ["cancel", "replay"])
def test_a_run_is_canceled_and_replayed(run: Any, desk: Any, answers: Any, verb: str) -> None:
    answers(f"POST /workflow-runs/r-1/{verb}", {"data": {"run": RUN}})

    assert run("runs", verb, "r-1").out == "r-1  pending  ship\n"
    assert run("runs", verb, "r-1", "--json").json == RUN


def test_a_trace_is_a_tree_by_indentation(run: Any, desk: Any, answers: Any) -> None:
    tree = [
        {"kind": "event", "id": "e-1", "at": "T1", "type": "orders.order.paid", "children": [
            {"kind": "delivery", "id": "d-1", "at": "T2", "status": "skipped",
             "reason": "duplicate_key", "workflowSlug": "ship", "children": []},
        ]},
        {"kind": "event", "id": "e-2", "at": "T3", "type": "a.b", "missing": "e-0"},
    ]  # fmt: skip
    answers("GET /v1/traces", {"data": {"tree": tree, "complete": False}})

    ran = run("trace", "c 1")

    lines = ran.out.splitlines()
    assert lines[0].split() == ["T1", "event", "orders.order.paid", "-", "e-1"]
    assert lines[1].startswith("T2    delivery")
    assert lines[1].split()[1:] == ["delivery", "ship", "skipped", "duplicate_key", "d-1"]
    assert "cause e-0 is not here" in lines[2]
    assert ran.err == "there is more than is shown here\n"
    assert desk.asked[0].parameters == [("correlationId", "c 1")]


def test_ids_cannot_change_the_path_they_are_asked_under(run: Any, desk: Any) -> None:
    run("runs", "show", "../tokens?x=1")
    run("workflows", "show", "../tokens")

    assert [each.path for each in desk.asked] == [
        "/workflow-runs/..%2Ftokens%3Fx%3D1", "/workflows/..%2Ftokens",
    ]  # fmt: skip
