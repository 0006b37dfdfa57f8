"""Say how much a job in a process of its own may use, and what it may know of its surroundings."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from penstock.envelope.context import WorkflowContext, to_environment

_GIB: Final = 1 << 30
# What a program needs to run at all; nothing that could be a secret.
_KEPT: Final = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "JAVA_HOME")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds for one process; those below it share them."""

    memory_bytes: int = 2 * _GIB  # of addresses, so a little above what is really used
    file_bytes: int = _GIB
    files: int = 1024
    cpu_s: int | None = None  # twice the step's time limit, unless said
    grace_s: float = 2.0  # from SIGTERM to SIGKILL

    def for_step(self, timeout_s: float) -> dict[str, int]:
        """The limits that the process sets for itself before it does anything else."""
        cpu_s = self.cpu_s if self.cpu_s is not None else max(1, math.ceil(2 * timeout_s))
        return {
            "RLIMIT_AS": self.memory_bytes,
            "RLIMIT_FSIZE": self.file_bytes,
            "RLIMIT_NOFILE": self.files,
            "RLIMIT_CPU": cpu_s,
            "RLIMIT_CORE": 0,
        }


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The environment of every such process: little, and nothing of the worker's own."""

    given: Mapping[str, str] = field(default_factory=dict)  # such as PENSTOCK_URL, PENSTOCK_TOKEN

    def environment(self, folder: Path, context: WorkflowContext) -> dict[str, str]:
        """The variables for one process that works in `folder`."""
        return {
            **{name: os.environ[name] for name in _KEPT if name in os.environ},
            "HOME": str(folder),
            "TMPDIR": str(folder),
            # The child imports what the worker can import, from wherever the worker does.
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "PYTHONUNBUFFERED": "1",
            **self.given,
            **to_environment(context),
        }
