"""Declare the options that several verbs share, once, with their help."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]
ParentPid = Annotated[
    int | None, typer.Option("--parent-pid", hidden=True, help="End when this parent is gone.")
]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", help="Only this type; a glob such as metastore.** too."),
]
Sources = Annotated[list[str] | None, typer.Option("--source", help="Only from this source.")]
Severities = Annotated[
    list[str] | None,
    typer.Option("--severity", help="Only this severity: critical error warning info debug."),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag as key=value.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=200, help="How many at most.")]
Cursor = Annotated[str | None, typer.Option("--cursor", help="Go on where a page ended.")]
Tenant = Annotated[str, typer.Option("--tenant", help="The tenant the events belong to.")]


def pairs(texts: list[str] | None, option: str = "--tag") -> list[tuple[str, str]]:
    """`key=value` texts as pairs; misuse when one has no `=` or no key."""
    found = []
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise typer.BadParameter(f"expected key=value, found {text!r}", param_hint=option)
        found.append((key, value))
    return found
