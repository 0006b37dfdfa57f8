"""Be the process of one job: bind yourself, read the parameters, run the handler, say the result.

    argv    how to run: limits, the descriptor of the result, what to run
    stdin   the job in JSON
    3       the result in JSON: {"output": …} or {"error": …}

The limits are set here and not by the worker: between fork and exec a process with threads must
not run Python. This process dies with the worker that started it.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib
import inspect
import json
import os
import resource
import signal
import sys
import traceback
from functools import reduce
from typing import Any

RESULT_FD = 3
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38


def main(spec: dict[str, Any]) -> None:
    """Run what `spec` says; exit 0 once the result is written."""
    _bind(spec["limits"], spec["parent"])
    if spec["fd"] != RESULT_FD:
        os.dup2(spec["fd"], RESULT_FD)
        os.close(spec["fd"])
    if spec["argv"]:
        os.set_inheritable(RESULT_FD, True)
        os.execvp(spec["argv"][0], spec["argv"])  # noqa: S606  a registered command, no shell
    os.set_inheritable(RESULT_FD, False)
    _say(_run(spec["handler"], json.load(sys.stdin)))


def _bind(limits: dict[str, int], parent: int) -> None:
    for name, most in limits.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # A little room above the CPU limit, so that SIGXCPU comes and not SIGKILL.
        room = 5 if name == "RLIMIT_CPU" and hard == resource.RLIM_INFINITY else 0
        resource.setrlimit(kind, (most, most + room))
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return
    prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before we could ask to follow it
        os._exit(1)


def _run(name: str, said: dict[str, Any]) -> dict[str, Any]:
    from penstock.envelope.context import WorkflowContext
    from penstock.workflows.launch.errors import StepFailed
    from penstock.workflows.launch.functions import JobContext
    from penstock.workflows.launch.results import words_of

    context = JobContext(**{**said, "workflow": WorkflowContext.model_validate(said["workflow"])})
    try:
        module, _, path = name.partition(":")
        handler: Any = reduce(getattr, path.split("."), importlib.import_module(module))
        with context.entered():
            value = handler(context)
            if inspect.iscoroutine(value):
                value = asyncio.run(value)
    except BaseException as error:  # noqa: BLE001  whatever it raises is its result
        traceback.print_exc()
        retryable = error.retryable if isinstance(error, StepFailed) else True
        return {"error": {"detail": words_of(error), "retryable": retryable}}
    return {"output": value}


def _say(result: dict[str, Any]) -> None:
    from penstock.base.errors import NotInProfile
    from penstock.envelope.codec import encode

    try:
        raw = encode(result)
    except (NotInProfile, TypeError, ValueError, RecursionError) as error:
        detail = f"output: expected JSON, found {error}"
        raw = encode({"error": {"detail": detail, "reason": "output_invalid", "retryable": False}})
    with os.fdopen(RESULT_FD, "wb") as pipe:
        pipe.write(raw)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
