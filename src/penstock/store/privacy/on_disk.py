"""Keep the root key of personal data in a file that only its owner can read.

    <data_dir>/privacy.key

Whoever has this file and the database can read what was not erased; whoever has only one of them
cannot. It must be backed up apart from the database: without it no personal data can be read.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from penstock.base.errors import SetupIncomplete
from penstock.base.on_disk import kept_secret
from penstock.store.privacy.cipher import KEY, RootKey


def key_file(data_dir: Path) -> Path:
    """Where the root key is."""
    return data_dir.resolve() / "privacy.key"


def open_root(path: Path) -> RootKey:
    """The root key; made when there is none."""
    return _read(kept_secret(path, lambda: secrets.token_hex(KEY)), path)


def find_root(path: Path) -> RootKey:
    """The root key, for a process that must not make one; SetupIncomplete when it is not there."""
    if not path.exists():
        raise SetupIncomplete(
            f"expected the root key of personal data at {path}, found none",
            remedy="Copy privacy.key from the data directory of the server to this machine.",
        )
    return open_root(path)


def _read(text: str, path: Path) -> RootKey:
    try:
        return RootKey(bytes.fromhex(text))
    except ValueError:
        raise SetupIncomplete(
            f"expected a root key in {path}, found something else",
            remedy="Put back the privacy.key that this database was used with.",
        ) from None
