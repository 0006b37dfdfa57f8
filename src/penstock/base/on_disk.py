"""Keep small secrets in files that only their owner can read, and scratch in folders that go."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path


def kept_secret(path: Path, make: Callable[[], str]) -> str:
    """The secret in this file; made and written once, by whoever comes first."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_text("ascii").strip()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(make() + "\n")
        file.flush()
        os.fsync(file.fileno())
    with contextlib.suppress(FileExistsError):
        os.link(draft, path)
    draft.unlink()
    return path.read_text("ascii").strip()


def scratch_folder(parent: Path, name: str) -> Path:
    """A new folder of this process; what killed processes left beside it is removed."""
    parent.mkdir(parents=True, exist_ok=True)
    for left in parent.glob(f"{name}-*"):
        found = re.fullmatch(rf"{re.escape(name)}-(\d+)", left.name)
        if found is not None and not Path(f"/proc/{found[1]}").exists():
            shutil.rmtree(left, ignore_errors=True)
    folder = parent / f"{name}-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder
