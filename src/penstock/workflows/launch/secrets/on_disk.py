"""Read secrets from a folder, as container platforms hand them out.

    <folder>/<tenant>/<name>     a value on each line, the newest first

A file is read each time it is needed, so that a new value needs no restart. A name that could lead
out of the folder is no name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_BYTES_MAX = 64_000


class SecretFolder:
    """The secrets of every tenant; called, it gives the values of one, the newest first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, tenant_id: str, name: str) -> Sequence[str]:
        """Every value of a secret that is valid now; none when there is no such secret."""
        if _NAME.fullmatch(tenant_id) is None or _NAME.fullmatch(name) is None:
            return ()
        try:
            with (self._folder / tenant_id / name).open("rb") as file:
                text = file.read(_BYTES_MAX).decode()
        except (OSError, UnicodeDecodeError):
            return ()
        return tuple(line.strip() for line in text.splitlines() if line.strip())
