"""PostgreSQL itself reads every named query, and every query says why it exists."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import psycopg
import pytest

from penstock.sql import queries

FOLDER = Path(str(resources.files("penstock.sql"))) / "queries"
ROOMS = sorted(f.stem for f in FOLDER.glob("*.sql"))
UTILITY = re.compile(r"^\s*(SET|COPY|CREATE|LISTEN)\b")


def named() -> list[tuple[str, str]]:
    return [(room, name) for room in ROOMS for name in queries(room)]


@pytest.mark.parametrize("room", ROOMS)
def test_every_statement_of_a_room_is_named_and_explained(room: str) -> None:
    text = (FOLDER / f"{room}.sql").read_text()

    assert (
        text.count("-- name: ")
        == len(queries(room))
        == len(re.findall(r"^-- why:  \S", text, re.M))
    )


@pytest.mark.parametrize(("room", "name"), named(), ids=lambda word: word)
def test_postgresql_understands_the_query(room: str, name: str, database: str) -> None:
    text = queries(room)[name]
    if UTILITY.match(text) or name.startswith(("where_", "order_", "fragment_")) or "{" in text:
        pytest.skip("a fragment or a utility statement: run by the tests of its room")
    numbered: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return f"${numbered.setdefault(found.group(1), len(numbered) + 1)}"

    statement = re.sub(r"%\((\w+)\)[sbt]", number, text).replace("%%", "%")
    with psycopg.connect(database) as connection:
        connection.execute(f"PREPARE probe AS {statement}".encode())
