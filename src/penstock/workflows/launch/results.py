"""Turn what a handler gave back or raised into the result of its step."""

from __future__ import annotations

from typing import Final

from penstock.base.errors import NotInProfile, PenstockError
from penstock.envelope.codec import decode, encode
from penstock.envelope.envelope import PAYLOAD_BYTES_MAX
from penstock.workflows.launch.errors import StepFailed
from penstock.workflows.port import Failed, Failure, StepResult, Succeeded

OUTPUT_BYTES_MAX: Final = PAYLOAD_BYTES_MAX
DETAIL_LENGTH_MAX: Final = 2_000


def succeeded(value: object, logs: str | None = None) -> StepResult:
    """The step's output, if it is JSON in the strict profile and not too long."""
    if value is None:
        return Succeeded(None, logs)
    try:
        output = decode(encode(value), bytes_max=OUTPUT_BYTES_MAX)  # type: ignore[arg-type]
    except NotInProfile as error:
        return _unusable(error.detail, logs)
    except (TypeError, ValueError, RecursionError) as error:
        return _unusable(f"expected JSON, found {str(error) or type(error).__name__}", logs)
    return Succeeded(output, logs)


def decoded(raw: bytes, logs: str | None = None) -> StepResult:
    """As `succeeded`, from the bytes that a process wrote."""
    try:
        return Succeeded(decode(raw, bytes_max=OUTPUT_BYTES_MAX), logs)
    except NotInProfile as error:
        return _unusable(error.detail, logs)


def raised(error: BaseException, logs: str | None = None) -> Failed:
    """The failure that a handler's exception means."""
    retryable = error.retryable if isinstance(error, StepFailed) else True
    return failed(Failure.HANDLER_ERROR, words_of(error), logs, retryable=retryable)


def words_of(error: BaseException) -> str:
    """An exception in one line: our own by their sentence, others by their kind too."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  a stranger's __str__
        text = ""
    if isinstance(error, PenstockError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def failed(
    reason: Failure, detail: str, logs: str | None = None, *, retryable: bool = True
) -> Failed:
    """A failure whose sentence fits a column: no NUL, no lone surrogate, not too long."""
    plain = detail.encode(errors="replace").decode().replace("\0", "\ufffd")
    return Failed(reason, plain[:DETAIL_LENGTH_MAX], logs, retryable=retryable)


def timed_out(timeout_s: float, logs: str | None = None) -> Failed:
    """The step did not end in its time."""
    return failed(Failure.TIMED_OUT, f"expected an end within {timeout_s:g} s, found none", logs)


def canceled(logs: str | None = None) -> Failed:
    """Somebody called the step off."""
    return failed(Failure.CANCELED, "expected to go on, found it called off", logs, retryable=False)


def unknown(slug: str, kind: str) -> Failed:
    """Nothing is registered under the step's name."""
    detail = f"expected a {kind} named {slug}, found none in this worker"
    return failed(Failure.HANDLER_UNKNOWN, detail, retryable=False)


def _unusable(detail: str, logs: str | None) -> Failed:
    return failed(Failure.OUTPUT_INVALID, f"output: {detail}", logs, retryable=False)
