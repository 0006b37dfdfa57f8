"""The HTTP reference leaves no route out, and names the scope that each one needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.access.token import Scope
from penstock.api.routes import OPEN, ROWS, WEBSOCKET, Row
from penstock.stream import frames

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text()
SECTIONS = re.split(r"(?m)^(?=#{2,4} )", PAGE)


def section(method: str, path: str) -> str:
    """The part of the page that describes the route: under its heading, or around its table row."""
    name = f"`{method} {path}`"
    described = re.compile(rf"(?m)^(#+ |\| ){re.escape(name)}")
    found = [part for part in SECTIONS if described.search(part)]
    assert len(found) == 1, f"expected {name} once in docs/reference/http.md, found {len(found)}"
    return found[0]


def named(row: Row) -> str:
    return f"{row.method} {row.path}"


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_every_route_is_described_with_the_scope_it_needs(row: Row) -> None:
    text = section(row.method, row.path)

    assert ("Needs any token" if row.needs is None else f"Needs `{row.needs}`") in text


@pytest.mark.parametrize("path", [path for path, _ in OPEN])
def test_every_open_route_is_described_as_open(path: str) -> None:
    assert "No token" in section("GET", path)


def test_the_websocket_is_described() -> None:
    assert section("GET", WEBSOCKET[0])


def test_no_route_is_described_that_does_not_exist() -> None:
    real = {named(row) for row in ROWS} | {f"GET {path}" for path, _ in OPEN}
    described = re.findall(r"(?m)^(?:#+ |\| )`((?:GET|POST|PUT|PATCH|DELETE) [^`]+)`", PAGE)

    assert set(described) - real - {f"GET {WEBSOCKET[0]}"} == set()


@pytest.mark.parametrize("scope", list(Scope))
def test_every_scope_is_described(scope: Scope) -> None:
    assert f"| `{scope}` |" in PAGE


@pytest.mark.parametrize("form", list(frames.Style))
def test_every_subprotocol_is_described(form: frames.Style) -> None:
    assert f"`{form}`" in PAGE
