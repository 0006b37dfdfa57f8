"""PostgreSQL itself reads every named query, and every query says why it exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import psycopg
import pytest

from penstock.base.on_postgres import EmbeddedPostgres
from penstock.sql import queries

FOLDER = Path(str(resources.files("penstock.sql"))) / "queries"
ROOMS = sorted(f.stem for f in FOLDER.glob("*.sql"))
UTILITY = re.compile(r"^\s*(SET|COPY|CREATE|LISTEN)\b")
FRAGMENTS = ("where_", "order_", "part_")


def named() -> list[tuple[str, str]]:
    """Whole statements; fragments and utility statements are run by the tests of their rooms."""
    return [
        (room, name)
        for room in ROOMS
        for name, text in queries(room).items()
        if not (UTILITY.match(text) or name.startswith(FRAGMENTS) or "{" in text)
    ]


@pytest.fixture(scope="module")
def connection(
    server: EmbeddedPostgres, template: str
) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(server.url(template)) as opened:
        yield opened


@pytest.mark.parametrize("room", ROOMS)
def test_every_statement_of_a_room_is_named_and_explained(room: str) -> None:
    text = (FOLDER / f"{room}.sql").read_text()

    assert (
        text.count("-- name: ")
        == len(queries(room))
        == len(re.findall(r"^-- why:  \S", text, re.MULTILINE))
    )


@pytest.mark.parametrize(("room", "name"), named(), ids=lambda word: word)
def test_postgresql_understands_the_query(
    room: str, name: str, connection: psycopg.Connection[tuple[object, ...]]
) -> None:
    numbered: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return f"${numbered.setdefault(found.group(1), len(numbered) + 1)}"

    statement = re.sub(r"%\((\w+)\)[sbt]", number, queries(room)[name]).replace("%%", "%")
    try:
        connection.execute(f"PREPARE probe AS {statement}".encode())
    finally:
        connection.rollback()
        connection.execute("DEALLOCATE ALL")
