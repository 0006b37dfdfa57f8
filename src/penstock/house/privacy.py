"""Join what hides personal data before it is stored, and shows it to those who may see it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.base.settings import Settings
from penstock.ingress.protect import Protect
from penstock.store.privacy.hide import Hiding
from penstock.store.privacy.on_disk import find_root, key_file, open_root
from penstock.store.privacy.on_postgres import Connect, OwnConnection, PostgresSubjectKeys
from penstock.store.privacy.vault import Vault


def open_vault(settings: Settings, connect: Connect) -> Vault:
    """The keys of subjects, for a process of the server."""
    root = open_root(key_file(settings.data_dir))
    return Vault(root, PostgresSubjectKeys(connect, root.fingerprint))


@dataclass(frozen=True, slots=True)
class OpenProtect:
    """How an executor gets to the keys of subjects; picklable, and equal when it leads there."""

    dsn: str
    key_path: Path

    def __call__(self) -> Protect:
        root = find_root(self.key_path)
        return Hiding(Vault(root, PostgresSubjectKeys(OwnConnection(self.dsn), root.fingerprint)))


def protect_for(settings: Settings, dsn: str) -> OpenProtect:
    """What executors open; the root key is made here if there is none, never there."""
    path = key_file(settings.data_dir)
    open_root(path)
    return OpenProtect(dsn, path)
