"""Keep one child process: its own group, its own log, and nothing left of it when it is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LOG_BYTES_MAX = 50_000_000
_TAIL_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start one part. Secrets travel in `environ`: a command line is public."""

    name: str
    command: tuple[str, ...]
    environ: Mapping[str, str]
    log: Path


class Child:
    """A running part."""

    def __init__(self, launch: Launch) -> None:
        rotate(launch.log)
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        with launch.log.open("ab") as log:
            # A session of its own: Ctrl-C in the terminal reaches the supervisor, not the parts.
            self._process = subprocess.Popen(
                launch.command, env=dict(launch.environ), stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_code(self) -> int | None:
        """How it ended, or None while it lives. What it left in its group ends with it."""
        try:
            dead = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return self._process.poll()
        if dead is None:
            return None
        # Still unburied, its pid cannot be given to anybody else: the group is surely ours.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        return self._process.wait()

    def terminate(self) -> None:
        """Ask it to stop."""
        self._process.terminate()

    def kill(self) -> None:
        """End it, and whatever it started in its group."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)


def rotate(log: Path, *, bytes_max: int = LOG_BYTES_MAX) -> None:
    """Set a log that has grown too large aside, in place of the one set aside before."""
    if log.exists() and log.stat().st_size > bytes_max:
        log.replace(log.with_name(f"{log.name}.1"))


def last_words(log: Path) -> str:
    """The last error that a part reported in its log, or nothing."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    errors = [number for number, line in enumerate(lines) if line.startswith("error  ")]
    return "\n".join(lines[errors[-1] : errors[-1] + 2]) if errors else ""
