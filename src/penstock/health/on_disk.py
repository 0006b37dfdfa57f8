"""Try whether a folder can be written to: not by asking, but by writing and syncing a byte."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def is_writable(folder: Path) -> bool:
    """Whether a file can be made, synced and removed in the folder. Its name starts with a dot,
    so neither the spool nor Spark ever takes it for a segment."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix=".ready-", dir=folder) as probe:
            probe.write(b".")
            probe.flush()
            os.fdatasync(probe.fileno())
    except OSError:
        return False
    return True
