"""Run a job in a process group of its own, listen to its pipes, and end it in time.

    stdin ◀── the job in JSON          stdout, stderr ──▶ 64 kB of log, the rest counted
    fd 3  ──▶ the result               time over, or called off: SIGTERM, SIGKILL, to the group

The process gets a folder of its own and an environment without the worker's secrets. Whatever it
starts and leaves behind in its group is killed when it ends. It is kept apart in memory and time;
files and network are not closed to it: only installed code runs here.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from penstock.envelope.codec import encode
from penstock.workflows.launch.crew import Left
from penstock.workflows.launch.functions import Command, Job
from penstock.workflows.launch.prints import Log
from penstock.workflows.launch.registry import Jobs, Runnable
from penstock.workflows.launch.results import failed, unknown
from penstock.workflows.launch.sandbox.ending import RESULT_BYTES_MAX, Ending, result_of
from penstock.workflows.launch.sandbox.limits import Limits, Surroundings
from penstock.workflows.port import Failure, StepCall, StepResult

_CHILD: Final = "penstock.workflows.launch.sandbox.child"
_READ_BYTES: Final = 64 * 1024
_TAIL_BYTES_MAX: Final = 64 * 1024
_PIPE_BYTES: Final = 1024 * 1024  # the most that Linux lets a pipe hold, unasked


class Sandbox:
    """Runs steps of the kind `subprocess`; threads may share it."""

    def __init__(
        self,
        jobs: Jobs,
        *,
        limits: Limits | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._jobs = jobs
        self._limits = limits or Limits()
        self._surroundings = surroundings or Surroundings()
        self._running: dict[str, _Process] = {}

    def run(self, call: StepCall) -> StepResult:
        """Run the job in a process of its own to its end, its time limit or its cancellation."""
        found = self._jobs.find(call.slug)
        if found is None:
            return unknown(call.slug, "job")
        misfit = found.misfit(call.input) if isinstance(found, Job) else None
        if misfit is not None:
            return failed(Failure.INPUT_INVALID, misfit, retryable=False)
        spec = self._spec(found, call)
        if spec is None:
            detail = f"{call.slug}: expected a function that another process can import by name"
            return failed(Failure.HANDLER_ERROR, detail, retryable=False)
        with tempfile.TemporaryDirectory(prefix="step-", ignore_cleanup_errors=True) as folder:
            return self._run_in(Path(folder), call, spec, is_command=isinstance(found, Command))

    def cancel(self, call_id: str) -> None:
        """End the process group of this call, if it runs."""
        process = self._running.get(call_id)
        if process is not None:
            process.call_off()

    def _run_in(
        self, folder: Path, call: StepCall, spec: dict[str, Any], *, is_command: bool
    ) -> StepResult:
        environment = self._surroundings.environment(folder, call.context)
        try:
            process = _Process(spec, _job_text(call), environment, folder, self._limits.grace_s)
        except OSError as error:
            return failed(Failure.HANDLER_ERROR, f"expected a process to start, found {error}")
        self._running[call.job_run_id] = process
        try:
            ending = process.follow(call.timeout_s)
        finally:
            self._running.pop(call.job_run_id, None)
            process.close()
        return result_of(ending, call.timeout_s, is_command=is_command)

    def _spec(self, found: Runnable, call: StepCall) -> dict[str, Any] | None:
        spec = {"limits": self._limits.for_step(call.timeout_s), "parent": os.getpid()}
        if isinstance(found, Command):
            return {**spec, "handler": None, "argv": list(found.argv)}
        module = getattr(found.handler, "__module__", "__main__")
        path = getattr(found.handler, "__qualname__", "<none>")
        if module == "__main__" or "<" in path:
            return None
        return {**spec, "handler": f"{module}:{path}", "argv": None}


class _Process:
    """One started process and the pipes to it."""

    def __init__(
        self,
        spec: dict[str, Any],
        said: bytes,
        environment: dict[str, str],
        folder: Path,
        grace_s: float,
    ) -> None:
        self._grace_s = grace_s
        self._log = Log()
        self._tail = b""  # of what was printed
        self._result = Log(RESULT_BYTES_MAX)
        self._left: Left | None = None
        with contextlib.ExitStack() as kept, contextlib.ExitStack() as lent:
            self._calls, self._bell = _pipe(kept, kept)
            self._output, output = _pipe(kept, lent)
            self._answer, answer = _pipe(kept, lent)
            stdin = os.memfd_create("step")
            lent.callback(os.close, stdin)
            os.write(stdin, said)
            os.lseek(stdin, 0, os.SEEK_SET)
            self._popen = _start({**spec, "fd": answer}, stdin, output, environment, folder)
            self._death = os.pidfd_open(self._popen.pid)
            kept.callback(os.close, self._death)
            self._kept = kept.pop_all()

    def call_off(self) -> None:
        """End it soon, from whatever thread."""
        with contextlib.suppress(OSError):
            os.write(self._bell, b"!")

    def follow(self, timeout_s: float) -> Ending:
        """Listen until it ends; after `timeout_s` make it."""
        deadline, is_asked = time.monotonic() + timeout_s, False
        with selectors.DefaultSelector() as ears:
            for fd in (self._output, self._answer, self._calls, self._death):
                ears.register(fd, selectors.EVENT_READ)
            while True:
                heard = {key.fd for key, _ in ears.select(max(0.0, deadline - time.monotonic()))}
                if self._death in heard:
                    return self._ended()
                for fd in heard:
                    if not self._hear(fd):
                        ears.unregister(fd)
                if self._left is Left.CALLED_OFF and not is_asked:
                    deadline = 0.0
                if time.monotonic() >= deadline:
                    self._left = self._left or Left.OUT_OF_TIME
                    self._signal(signal.SIGKILL if is_asked else signal.SIGTERM)
                    is_asked, deadline = True, time.monotonic() + self._grace_s

    def close(self) -> None:
        """Leave nothing behind: no process of the group, no descriptor."""
        if self._popen.returncode is None:
            self._signal(signal.SIGKILL)
            self._popen.wait()
        self._kept.close()

    def _hear(self, fd: int) -> bool:
        """Take what a pipe has; whether there may be more."""
        try:
            found = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return True
        if fd == self._calls:
            self._left = self._left or Left.CALLED_OFF
        elif fd == self._answer:
            self._result.add(found)
        else:
            self._log.add(found)
            self._tail = (self._tail + found)[-_TAIL_BYTES_MAX:]
        return bool(found)

    def _ended(self) -> Ending:
        # Before the dead leader is buried: until then nobody else can have its group's number.
        self._signal(signal.SIGKILL)
        code = self._popen.wait()
        for fd in (self._output, self._answer):
            for _ in range(_PIPE_BYTES // _READ_BYTES + 1):  # one that left its group may go on
                if not self._hear(fd):
                    break
        return Ending(
            code=code,
            result=self._result.kept,
            logs=self._log.text(),
            last_line=(self._tail.splitlines() or [b""])[-1],
            left=self._left,
            result_dropped=self._result.dropped,
        )

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, number)


def _pipe(reader: contextlib.ExitStack, writer: contextlib.ExitStack) -> tuple[int, int]:
    read_end, write_end = os.pipe()
    reader.callback(os.close, read_end)
    writer.callback(os.close, write_end)
    os.set_blocking(read_end, False)
    return read_end, write_end


def _start(
    spec: dict[str, Any], stdin: int, output: int, environment: dict[str, str], folder: Path
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", _CHILD, json.dumps(spec)],
        stdin=stdin,
        stdout=output,
        stderr=output,
        pass_fds=(spec["fd"],),
        env=environment,
        cwd=folder,
        start_new_session=True,
    )


def _job_text(call: StepCall) -> bytes:
    return encode(
        {
            "parameters": call.input,
            "workflow": call.context.wire(),
            "attempt": call.attempt,
            "idempotency_key": call.idempotency_key,
            "timeout_s": call.timeout_s,
            "correlation_id": call.correlation_id,
            "causation_id": call.causation_id,
            "tenant_id": call.tenant_id,
        }
    )
