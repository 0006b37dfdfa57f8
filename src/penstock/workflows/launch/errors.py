"""Say what the executors refuse, in codes that never change.

PenstockError
├── OutboundRefused     an address that no request may go to
├── Unreachable         a request that got no answer in time
├── SignatureInvalid    a webhook whose signature does not prove who sent it
├── JobInvalid          a handler that cannot be registered
└── StepFailed          raised by a handler to say that its step failed, and whether for good
"""

from __future__ import annotations

from penstock.base.errors import PenstockError


class OutboundRefused(PenstockError):
    """An address that no request may go to. Nothing was sent."""

    code = "outbound_refused"
    remedy = (
        "Use a public address and an allowed port, or let an operator list the network in "
        "PENSTOCK_ALLOWED_OUTBOUND."
    )


class Unreachable(PenstockError):
    """A request that got no whole answer in time. It may have been heard."""

    code = "unreachable"
    remedy = "Check that the receiver is up and answers in time; the step is tried again."


class Resting(Unreachable):
    """A receiver that failed in a row and is spared for a while. Nothing was sent."""

    code = "resting"
    remedy = "Wait: it is asked again by itself."

    def __init__(self, detail: str, *, rest_s: float) -> None:
        super().__init__(detail)
        self.rest_s = rest_s


class SignatureInvalid(PenstockError):
    """A webhook whose signature does not prove who sent it, and when."""

    code = "signature_invalid"
    remedy = "Compare the secret on both sides, the clock, and that the body is the raw bytes."


class SecretUnknown(PenstockError):
    """A secret that a step or a service names, and nobody keeps."""

    code = "secret_unknown"
    remedy = "Give the worker a secret by that name, or correct the name."


class JobInvalid(PenstockError):
    """A handler that cannot be registered."""

    code = "job_invalid"
    remedy = "Give every handler a name of its own: letters, digits and any of `_ . : -`."


class StepFailed(PenstockError):
    """Raised by a handler: the step failed. With `retryable=False` it is not tried again."""

    code = "step_failed"
    remedy = "The handler said why; look at the step's logs."

    def __init__(self, detail: str, *, retryable: bool = True) -> None:
        super().__init__(detail)
        self.retryable = retryable
