"""Replay never repeats side effects: nothing that could cause one is within its reach."""

from __future__ import annotations

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path

import grimp
import pytest

from penstock.sql import queries

# Whoever can reach one of these could publish, append, settle, send or erase something.
ACTING = (
    "penstock.publish",
    "penstock.transport",
    "penstock.ingress",
    "penstock.house",
    "penstock.api",
    "penstock.stream",
    "penstock.store.append",
    "penstock.store.audit",
    "penstock.store.deadletters",
    "penstock.store.intake",
    "penstock.store.lease",
    "penstock.store.privacy",
    "penstock.store.retention",
    "pyspark",
)
HANDLER = "penstock.api.handlers.state"
WRITING = re.compile(
    r"\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|TRUNCATE|COPY|MERGE\s+INTO|NOTIFY|pg_notify|append_\w+)"
    r"(?!\s+SET\b)[\s(]+(\w+)",
    re.IGNORECASE,
)


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("penstock", include_external_packages=True, cache_dir=None)


def modules() -> list[str]:
    room = graph().find_descendants("penstock.store.timetravel")
    return sorted({*room, "penstock.cli.commands.replay", "penstock.cli.replay_view"})


def reached() -> set[str]:
    """Every module of ours that replay can reach, its own included."""
    found = {name for module in modules() for name in graph().find_upstream_modules(module)}
    return {name for name in {*found, *modules()} if name.startswith("penstock.")}


def source(module: str) -> str:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text()


def query_rooms(module: str) -> set[str]:
    """The files of named queries that a module takes queries from."""
    return {
        node.args[0].value
        for node in ast.walk(ast.parse(source(module)))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("named", "query")
        and len(node.args) == 2
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


def test_the_modules_of_replay_are_looked_at() -> None:
    assert {
        "penstock.store.timetravel.travel",
        "penstock.store.timetravel.on_postgres",
        "penstock.store.timetravel.report",
        "penstock.cli.commands.replay",
    } <= set(modules())
    assert set(modules()) <= graph().modules


@pytest.mark.parametrize("module", modules())
def test_no_module_of_replay_can_reach_anything_that_publishes_or_appends(module: str) -> None:
    acting = {
        found
        for found in graph().find_upstream_modules(module)
        for room in ACTING
        if found == room or found.startswith(f"{room}.")
    }

    assert acting == set()


def test_the_only_tables_that_replay_has_words_to_write_to_are_its_snapshots() -> None:
    rooms = {room for module in reached() if ".store." in module for room in query_rooms(module)}

    written = {
        table
        for room in rooms
        for text in queries(room).values()
        for table in WRITING.findall(text)
    }

    assert "timetravel" in rooms
    assert written == {"state_boundaries", "state_snapshots"}


def test_the_handler_of_replay_uses_no_part_of_the_house_that_acts() -> None:
    imported = graph().find_modules_directly_imported_by(HANDLER)
    used = {
        node.attr
        for node in ast.walk(ast.parse(source(HANDLER)))
        if isinstance(node, ast.Attribute)
    }

    assert not {name for name in imported if name.endswith((".acts", ".body", ".batch"))}
    assert not used & {
        "door",
        "transport",
        "redriver",
        "open_intake",
        "ingest",
        "owner",
        "appender",
    }


def test_the_command_only_ever_asks_by_get() -> None:
    called = {
        node.func.attr
        for node in ast.walk(ast.parse(source("penstock.cli.commands.replay")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "client"
    }

    assert called == {"get"}
