"""`penstock registry` lists, shows, compares, checks, registers and documents event types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

VERSION = {"eventType": "a.b", "version": 2, "status": "active", "schemaHash": "ff", "schema": {}}


def test_schemas_are_listed_to_the_last_page(run: Any, desk: Any, answers: Any) -> None:
    answers(
        "GET /admin/event-schemas",
        {"data": {"schemas": [VERSION, VERSION], "total": 3}},
        {"data": {"schemas": [VERSION], "total": 3}},
    )

    ran = run("registry", "list", "--status", "active")

    assert ran.out.splitlines() == ["a.b  2  active  ff"] * 3
    assert [dict(asked.parameters)["offset"] for asked in desk.asked] == ["0", "2"]


def test_a_schema_is_registered_from_a_file(
    run: Any, desk: Any, answers: Any, tmp_path: Path
) -> None:
    answers("POST /admin/event-schemas", {"data": VERSION}, status=201)
    (tmp_path / "s.json").write_text('{"type": "object"}')

    ran = run("registry", "register", "a.b", "s.json", "--version", "2", "--status", "draft")

    assert ran.out == "registered  a.b  2  active  ff\n"
    assert desk.asked[0].json == {
        "eventType": "a.b", "schema": {"type": "object"}, "version": 2, "status": "draft",
    }  # fmt: skip


def test_a_schema_that_is_not_json_is_refused_before_it_is_sent(run: Any, desk: Any) -> None:
    ran = run("registry", "register", "a.b", "-", stdin=b'{"a": 1, "a": 2}')

    assert ran.code == 1
    assert ran.err.startswith("error  duplicate_key: ")
    assert desk.asked == []


@pytest.mark.parametrize(("words", "path"), [([], "latest"), (["--version", "3"], "3")])
def test_a_schema_is_shown_newest_or_by_version(
    run: Any, desk: Any, answers: Any, words: list[str], path: str
) -> None:
    answers(f"GET /admin/event-schemas/a.b/{path}", {"data": VERSION})

    assert run("registry", "show", "a.b", *words, "--json").json == VERSION


def test_the_old_name_of_the_verb_still_works(run: Any, desk: Any, answers: Any) -> None:
    answers("GET /admin/event-schemas/a.b/latest", {"data": VERSION})

    assert run("schemas", "show", "a.b", "--json").json == VERSION


def test_the_registry_is_listed_as_it_was(run: Any, desk: Any, answers: Any) -> None:
    answers("GET /admin/event-schemas", {"data": {"schemas": [VERSION], "total": 1}})

    ran = run("registry", "list", "--as-of", "1042")

    assert ran.out == "a.b  2  active  ff\n"
    assert dict(desk.asked[0].parameters)["asOf"] == "1042"


# Comparing.


def versions(*schemas: Any) -> Any:
    found = [{**VERSION, "version": n, "schema": schema} for n, schema in enumerate(schemas, 1)]
    return {"data": {"schemas": found, "total": len(found)}}


ONE = {"properties": {"total": {"type": "integer"}, "note": {}}}
TWO = {"properties": {"total": {"type": "integer"}}, "required": ["total"]}
THREE = {"properties": {"total": {"type": "string"}}, "required": ["total"]}


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ([], ["breaks all  /total  was integer, is now string", "verdict  none"]),
        (
            ["1", "2"],
            [
                "breaks publishers  /total  is required now",
                "breaks none        /note   was removed",
                "verdict  forward",
            ],
        ),
        (["2", "2"], ["verdict  full"]),
        (
            ["2", "1"],
            [
                "breaks readers  /total  is no longer required",
                "breaks none     /note   was added",
                "verdict  backward",
            ],
        ),
    ],
)
def test_two_versions_are_compared_by_default_the_newest_two(
    run: Any, desk: Any, answers: Any, given: list[str], lines: list[str]
) -> None:
    answers("GET /admin/event-schemas", versions(ONE, TWO, THREE))

    ran = run("registry", "diff", "a.b", *given)

    assert ran.code == 0
    assert ran.out.splitlines() == lines
    assert dict(desk.asked[0].parameters)["eventType"] == "a.b"


def test_a_comparison_as_json_has_whom_each_change_breaks(
    run: Any, desk: Any, answers: Any
) -> None:
    answers("GET /admin/event-schemas", versions(TWO, THREE))

    found = run("registry", "diff", "a.b", "--json").json

    assert (found["from"], found["to"], found["verdict"]) == (1, 2, "none")
    assert found["differences"] == [
        {
            "pointer": "/total",
            "change": "retyped",
            "detail": "was integer, is now string",
            "breaksBackward": True,
            "breaksForward": True,
        }
    ]


@pytest.mark.parametrize("given", [[], ["1", "7"], ["7"]])
def test_a_version_that_is_not_there_cannot_be_compared(
    run: Any, desk: Any, answers: Any, given: list[str]
) -> None:
    answers("GET /admin/event-schemas", versions(ONE))

    ran = run("registry", "diff", "a.b", *given)

    assert ran.code == 1
    assert ran.err.startswith(
        "error  not_found: expected two versions of a.b to compare, found [1]"
    )


# Checking.

REVIEW = {
    "eventType": "a.b",
    "version": 2,
    "comparedWith": 1,
    "verdict": "forward",
    "breaking": True,
    "differences": [
        {
            "pointer": "/total",
            "change": "required",
            "detail": "is required now",
            "breaksBackward": True,
            "breaksForward": False,
        }
    ],
    "storedEvents": {"examined": 12431, "failing": 313},
    "readers": [],
    "sentences": [
        "/total is required now",
        "of 12,431 events of the last 30 days 313 would fail: /total expected … (313)",
        "the trigger big-orders reads /total",
    ],
}


def test_a_breaking_schema_is_told_in_full_and_exits_1(
    run: Any, desk: Any, answers: Any, tmp_path: Path
) -> None:
    answers("POST /admin/event-schemas/check", {"data": REVIEW})
    (tmp_path / "s.json").write_text('{"type": "object"}')

    ran = run("registry", "check", "a.b", "s.json", "--version", "2", "--days", "7")

    assert ran.code == 1
    assert ran.out.splitlines() == [
        "breaks publishers  /total  is required now",
        "verdict  forward",
        "found  of 12,431 events of the last 30 days 313 would fail: /total expected … (313)",
        "found  the trigger big-orders reads /total",
    ]
    assert ran.err.splitlines() == [
        "error  schema_breaking: a.b version 2 breaks version 1",
        "  fix  Keep what was promised, or register it with --override --reason.",
    ]
    assert desk.asked[0].json == {
        "eventType": "a.b", "schema": {"type": "object"}, "version": 2, "days": 7,
    }  # fmt: skip


def test_a_compatible_schema_exits_0(run: Any, desk: Any, answers: Any, tmp_path: Path) -> None:
    fine = {**REVIEW, "breaking": False, "differences": [], "sentences": ["nothing differs"]}
    answers("POST /admin/event-schemas/check", {"data": {**fine, "verdict": "full"}})
    (tmp_path / "s.json").write_text("{}")

    ran = run("registry", "check", "a.b", "s.json", "--json")

    assert ran.code == 0
    assert ran.json["verdict"] == "full"


@pytest.mark.parametrize("verb", ["check", "register"])
def test_triggers_that_a_mark_would_blind_are_told(
    run: Any, answers: Any, tmp_path: Path, verb: str
) -> None:
    warning = {
        "trigger": "greet/new", "pointer": "/predicates/0/path", "detail": "it is ciphertext here",
        "refused": True,
    }  # fmt: skip
    review = {**REVIEW, "breaking": False, "warnings": [warning]}
    answers("POST /admin/event-schemas/check", {"data": review})
    answers("POST /admin/event-schemas", {"data": {**VERSION, "warnings": [warning]}}, 201)
    (tmp_path / "s.json").write_text('{"type": "object"}')

    ran = run("registry", verb, "a.b", "s.json")

    assert ran.code == 0
    assert ran.err.splitlines() == [
        "warning  trigger greet/new /predicates/0/path: it is ciphertext here"
    ]


def test_a_breaking_schema_is_registered_with_a_reason(
    run: Any, desk: Any, answers: Any, tmp_path: Path
) -> None:
    answers("POST /admin/event-schemas", {"data": VERSION}, status=201)
    (tmp_path / "s.json").write_text("{}")

    ran = run("registry", "register", "a.b", "s.json", "--override", "--reason", "nobody uses it")

    assert ran.code == 0
    assert desk.asked[0].json == {
        "eventType": "a.b", "schema": {}, "override": True, "reason": "nobody uses it",
    }  # fmt: skip


# Documenting.

ENTRY = {
    "eventType": "shop.order.placed",
    "vocabulary": None,
    "purpose": "An order was placed.",
    "severity": "info",
    "severityRule": "default",
    "sources": ["shop.api"],
    "consumers": ["billing"],
    "tags": {"orderId": "/id"},
    "links": {},
    "needsUuid7": False,
    "derivedRequires": None,
    "version": 1,
    "fields": [{"path": "id", "kind": "string", "required": True, "meaning": "The order."}],
    "example": {"id": "o-1"},
    "schema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    "versions": [{"version": 1, "status": "active", "schemaHash": "ff", "schemaId": 7}],
}


def test_pages_are_written_for_every_type_of_the_server(
    run: Any, desk: Any, answers: Any, tmp_path: Path
) -> None:
    listed = [{**VERSION, "eventType": "shop.order.placed", "version": n} for n in (1, 2)]
    answers("GET /admin/event-schemas", {"data": {"schemas": listed, "total": 2}})
    answers("GET /admin/event-schemas/shop.order.placed", {"data": ENTRY})

    ran = run("registry", "docs", "--out", "out", "--json")

    assert ran.json == {
        "written": [
            "out/event-types.md",
            "out/event-types/shop.order.placed.md",
            "out/asyncapi.json",
        ]
    }
    text = (tmp_path / "out/event-types/shop.order.placed.md").read_text()
    assert "| consumers | `billing` |" in text
    assert "| `id` (required) | string | The order. |" in text
    document = json.loads((tmp_path / "out/asyncapi.json").read_text())
    assert document["components"]["messages"]["shop.order.placed"]["summary"] == ENTRY["purpose"]
    assert document["servers"]["http"]["host"].startswith("127.0.0.1:")


def test_what_the_code_declares_is_documented_without_a_server(run: Any, tmp_path: Path) -> None:
    ran = run("registry", "docs", "--declared", "--out", "out")

    assert ran.code == 0
    assert "written  out/event-types/metastore.record.updated.md" in ran.out.splitlines()
    assert (tmp_path / "out/asyncapi.json").exists()
