"""Hold all SQL: numbered migrations, and named queries that PostgreSQL checks in a test.

    queries/<room>.sql     -- name: read_after
                           -- why:  one sentence
                           SELECT …;

Only modules named `on_postgres` import this package.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import LiteralString, cast

_NAMED = re.compile(r"^-- name: (\w+)\n-- why:  (.+)\n", re.MULTILINE)


@cache
def queries(room: str) -> dict[str, LiteralString]:
    """The queries of one room by name."""
    text = resources.files("penstock.sql").joinpath("queries", f"{room}.sql").read_text("utf-8")
    parts = _NAMED.split(text)
    names, bodies = parts[1::3], parts[3::3]
    return {
        name: cast("LiteralString", body.strip().rstrip(";"))
        for name, body in zip(names, bodies, strict=True)
    }


def query(room: str, name: str) -> LiteralString:
    """One query; KeyError when the room has none by that name."""
    return queries(room)[name]


@cache
def migrations() -> tuple[tuple[int, str, str], ...]:
    """Every migration as (number, name, text), in order."""
    folder = resources.files("penstock.sql").joinpath("migrations")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return tuple((int(f.name[:4]), f.name[5:-4], f.read_text("utf-8")) for f in files)
