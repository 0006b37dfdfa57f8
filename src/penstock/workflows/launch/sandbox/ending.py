"""Say what the end of a process means for its step.

in time, exit 0, a result     the result
in time, exit 0, none         failed: a handler that left by os._exit, say
exit n, or a signal           failed, with the number or the signal's name
out of time, called off       failed, whatever else happened
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Final

from penstock.base.errors import NotInProfile
from penstock.envelope.codec import decode
from penstock.envelope.envelope import JsonObject
from penstock.workflows.launch.crew import Left
from penstock.workflows.launch.results import (
    OUTPUT_BYTES_MAX,
    canceled,
    decoded,
    failed,
    succeeded,
    timed_out,
)
from penstock.workflows.port import Failed, Failure, StepResult, Succeeded

RESULT_BYTES_MAX: Final = OUTPUT_BYTES_MAX + 1024  # with what is around the output
_FRAME_NODES_MAX: Final = 25_000
_FRAME_DEPTH_MAX: Final = 34


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended: its code, what it wrote to descriptor 3, what it printed."""

    code: int  # negative: the signal that ended it
    result: bytes
    logs: str | None
    last_line: bytes = b""
    left: Left | None = None
    result_dropped: int = 0


def result_of(ending: Ending, timeout_s: float, *, is_command: bool) -> StepResult:
    """The step's result."""
    if ending.left is Left.CALLED_OFF:
        return canceled(ending.logs)
    if ending.left is Left.OUT_OF_TIME:
        return timed_out(timeout_s, ending.logs)
    if ending.code != 0:
        return failed(Failure.HANDLER_ERROR, _how(ending.code), ending.logs)
    if ending.result_dropped:
        size = len(ending.result) + ending.result_dropped
        detail = f"output: expected at most {OUTPUT_BYTES_MAX} bytes, found {size}"
        return failed(Failure.OUTPUT_INVALID, detail, ending.logs, retryable=False)
    return _of_command(ending) if is_command else _of_handler(ending)


def _of_command(ending: Ending) -> StepResult:
    if ending.result:
        return decoded(ending.result, ending.logs)
    result = decoded(ending.last_line, ending.logs) if ending.last_line else None
    return result if isinstance(result, Succeeded) else Succeeded(None, ending.logs)


def _of_handler(ending: Ending) -> StepResult:
    frame = _frame(ending.result)
    if "output" in frame:
        return succeeded(frame["output"], ending.logs)
    error = frame.get("error")
    if isinstance(error, dict):
        return _of_error(error, ending.logs)
    detail = "expected a result, found a process that ended without one"
    return failed(Failure.HANDLER_ERROR, detail, ending.logs)


def _of_error(error: JsonObject, logs: str | None) -> Failed:
    is_output = error.get("reason") == Failure.OUTPUT_INVALID
    return failed(
        Failure.OUTPUT_INVALID if is_output else Failure.HANDLER_ERROR,
        str(error.get("detail")),
        logs,
        retryable=error.get("retryable") is not False,
    )


def _frame(raw: bytes) -> JsonObject:
    try:
        tree = decode(
            raw,
            bytes_max=RESULT_BYTES_MAX,
            nodes_max=_FRAME_NODES_MAX,
            depth_max=_FRAME_DEPTH_MAX,
        )
    except NotInProfile as error:
        if not raw:
            return {}
        fault: JsonObject = {"detail": f"output: {error.detail}", "retryable": False}
        return {"error": {**fault, "reason": Failure.OUTPUT_INVALID}}
    return tree if isinstance(tree, dict) else {}


def _how(code: int) -> str:
    if code > 0:
        return f"expected exit code 0, found {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    why = " (its CPU time was used up)" if name == "SIGXCPU" else ""
    return f"expected exit code 0, found a process killed by {name}{why}"
