"""Read and write what is generated from event types: contract files and reference pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.base.errors import SchemaConflict
from penstock.registry.declare import Vocabulary
from penstock.registry.handbook import FOLDER, FOOT
from penstock.registry.lock import broken, contracts, missing


def read_contracts(folder: Path) -> dict[str, str]:
    """Every frozen schema, by its path under `folder`."""
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in sorted(folder.glob("*/*.json"))
    }


def freeze(folder: Path, vocabularies: Iterable[Vocabulary]) -> tuple[str, ...]:
    """Write the contracts that are missing and return their paths; a frozen one never changes."""
    declared = contracts(vocabularies)
    frozen = read_contracts(folder)
    changed = broken(frozen, declared)
    if changed:
        raise SchemaConflict(f"expected the frozen schemas, found others for {', '.join(changed)}")
    new = missing(frozen, declared)
    for path in new:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(declared[path], "utf-8")
    return new


def write_reference(folder: Path, pages: Mapping[str, str]) -> tuple[str, ...]:
    """Write the pages and remove ours of types that are gone; the paths that were written."""
    for old in (folder / FOLDER).glob("*.md"):
        if f"{FOLDER}/{old.name}" not in pages and old.read_text("utf-8").rstrip().endswith(FOOT):
            old.unlink()
    for path, text in pages.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return tuple(pages)
