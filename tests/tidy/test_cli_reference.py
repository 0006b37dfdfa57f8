"""The command line reference leaves no command and no option out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from penstock.cli.main import app

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()


def commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command that people see, with its whole name."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


COMMANDS = dict(commands(typer.main.get_command(app), "penstock"))


def section(name: str) -> str:
    """The part of the page under the heading of a command; empty when it has none."""
    found = re.search(rf"(?ms)^### `{re.escape(name)}`$(.*?)(?=^##|\Z)", PAGE)
    return found[1] if found else ""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_described(name: str) -> None:
    assert section(name), f"expected a heading ### `{name}` in docs/reference/cli.md"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_described_with_it(name: str) -> None:
    options = {
        max(parameter.opts, key=len)
        for parameter in COMMANDS[name].params
        if parameter.param_type_name == "option" and not parameter.hidden
    } - {"--help"}

    words = set(re.findall(r"--[a-z][a-z0-9-]*", section(name)))
    assert options - words == set()


def test_no_command_is_described_that_does_not_exist() -> None:
    assert set(re.findall(r"(?m)^### `(penstock [^`]+)`$", PAGE)) - set(COMMANDS) == set()
