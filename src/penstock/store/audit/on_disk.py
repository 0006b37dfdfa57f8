"""Keep the signing key and the checkpoints in files, out of the database's reach.

    <data_dir>/audit.key                      the seed of the Ed25519 key, for its owner only
    <data_dir>/checkpoints/<size>.note        one signed note each; the name orders them

Whoever can change the database cannot change these. Copy the folder elsewhere to be safe from
whoever can change this machine.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from penstock.base.errors import SetupIncomplete
from penstock.base.on_disk import kept_secret
from penstock.store.audit.checkpoint import SignerKey

_SUFFIX = ".note"


def open_key(data_dir: Path) -> SignerKey:
    """The signing key of this installation; made when there is none."""
    seed = kept_secret(data_dir / "audit.key", lambda: secrets.token_hex(32))
    return SignerKey(bytes.fromhex(seed))


def find_key(data_dir: Path) -> SignerKey:
    """The signing key of this installation; SetupIncomplete when it was never made."""
    if not (data_dir / "audit.key").exists():
        raise SetupIncomplete(
            f"expected the audit key at {data_dir / 'audit.key'}, found none",
            remedy="Set PENSTOCK_DATA_DIR to the data directory, or name the public key: --key.",
        )
    return open_key(data_dir)


class CheckpointFolder:
    """A folder of signed notes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def notes(self) -> list[tuple[str, str]]:
        """Every note with the name of its file, the smallest first; a single file is one note."""
        if self._folder.is_file():
            return [(self._folder.name, self._folder.read_text("utf-8", "replace"))]
        found = []
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            # A newer one may take the place of the last while we look.
            with contextlib.suppress(FileNotFoundError):
                found.append((path.name, path.read_text("utf-8", "replace")))
        return found

    def newest(self, most: int) -> list[str]:
        """The notes of the largest sizes, the largest first."""
        paths = sorted(self._folder.glob(f"*{_SUFFIX}"), reverse=True)[:most]
        return [path.read_text("utf-8", "replace") for path in paths]

    def keep(self, size: int, note: str) -> None:
        """Make a note durable under its size."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._path(size)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        with draft.open("w", encoding="utf-8") as file:
            file.write(note)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        self._sync()

    def drop(self, size: int) -> None:
        """Forget the note of that size, which a newer one has superseded."""
        self._path(size).unlink(missing_ok=True)

    def _path(self, size: int) -> Path:
        return self._folder / f"{size:020d}{_SUFFIX}"

    def _sync(self) -> None:
        opened = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
