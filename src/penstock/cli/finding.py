"""Find a trigger by what people call it, read files that describe things, ask before acting."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import typer

from penstock.cli.fields import rows, text
from penstock.cli.refused import Refused
from penstock.envelope.envelope import JsonObject

if TYPE_CHECKING:
    from penstock.cli.client import Client
    from penstock.triggers.files import Item

TRIGGERS = "/v1/triggers"
_ENDINGS = (".yaml", ".yml", ".json")
_SHOWN = 5


def find_trigger(client: Client, said: str) -> JsonObject:
    """The trigger by that id, name, or workflow/name; Refused when none or several are meant."""
    known = rows(client.get(TRIGGERS), "triggers")
    found = [each for each in known if text(each, "id") == said] or [
        each for each in known if said in (full_name(each), text(each, "name"))
    ]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(text(each, "id") for each in found[:_SHOWN])
        raise Refused(
            "ambiguous",
            f"expected one trigger called {said!r}, found {len(found)}: {ids}",
            "Name it by its id, or as workflow/name.",
        )
    raise Refused(
        "not_found",
        f"expected a trigger by the id or name {said!r}, found none",
        "`penstock triggers list` shows them all.",
    )


def full_name(trigger: JsonObject) -> str:
    """What files call a trigger: its workflow and its name."""
    return f"{text(trigger, 'workflowSlug')}/{text(trigger, 'name')}"


def path_of(trigger: JsonObject) -> str:
    """Where the trigger is over HTTP."""
    slug, key = text(trigger, "workflowSlug"), text(trigger, "id")
    return f"/workflows/{quote(slug, safe='')}/triggers/{quote(key, safe='')}"


def version_of(thing: JsonObject) -> dict[str, str]:
    """The header that makes a change of exactly this version, or of none."""
    return {"If-Match": f'"{text(thing, "version")}"'}


def read_texts(path: Path) -> list[tuple[str, str]]:
    """The name and text of a file, or of every YAML file under a folder; - is stdin."""
    if str(path) == "-":
        return [("stdin", sys.stdin.read())]
    try:
        files = [path] if path.is_file() else _below(path)
        return [(str(file), file.read_text("utf-8")) for file in files]
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "text that is not UTF-8"
        raise typer.BadParameter(f"expected readable files at {path}, found {said}") from None


def _below(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise typer.BadParameter(f"expected a file or a folder, found nothing at {folder}")
    return sorted(file for file in folder.rglob("*") if file.suffix in _ENDINGS and file.is_file())


def read_triggers(path: Path, *, only: bool = True) -> list[Item]:
    """The triggers that a file describes; FilesInvalid names the line of every fault.

    Whatever else it describes is refused, unless it may stand beside them.
    """
    from penstock.triggers.files import Kind, read_files

    found = read_files(read_texts(path))
    items = [item for item in found if item.kind is Kind.TRIGGER]
    others = [f"{item.kind} {item.name}" for item in found if item.kind is not Kind.TRIGGER]
    if not items or (only and others):
        raise Refused(
            "files_invalid",
            f"expected triggers in {path}, found {', '.join(others[:_SHOWN]) or 'none'}",
            "Apply workflows, schedules and services with `penstock apply`.",
        )
    return items


def agree(question: str, *, yes: bool) -> None:
    """Go on only if somebody agrees; where nobody can be asked, `--yes` must say so."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter("expected --yes where nobody can be asked", param_hint="--yes")
    typer.confirm(question, abort=True, err=True)
