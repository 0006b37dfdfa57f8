"""Read and write what is generated from declarations: contract files and the handbook."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from penstock.base.errors import SchemaConflict
from penstock.registry.declare import Vocabulary
from penstock.registry.handbook import handbook
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


def write_handbook(file: Path, vocabularies: Iterable[Vocabulary]) -> None:
    """Write the reference of all types."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(handbook(vocabularies), "utf-8")
