"""Deliver a signed webhook, and wait for the receiver to call back when the step says so.

    POST url, webhook-id · webhook-timestamp · webhook-signature ── 2xx ──▶ done
                                                  └─ waitForCallback ──▶ Waiting … Callback ──▶ done

The id is the step's idempotency key, so a receiver that hears a retry knows it. What it answers
beyond its status is thrown away: nobody can read an internal page by pointing a webhook at it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

from penstock.base.clock import Clock, SystemClock
from penstock.base.errors import SettingsInvalid
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonValue
from penstock.workflows.launch.credentials import Secrets, secret_values
from penstock.workflows.launch.errors import OutboundRefused, SecretUnknown, Unreachable
from penstock.workflows.launch.request import (
    TOTAL_S,
    Http,
    Reply,
    Request,
    outcome_from,
    outcome_of,
)
from penstock.workflows.launch.results import failed, succeeded, timed_out
from penstock.workflows.launch.signature import message_id, signed_headers
from penstock.workflows.port import Failure, StepCall, StepResult, Waiting

POLL_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Callback:
    """What a receiver said when its work was done."""

    succeeded: bool
    output: JsonValue = None
    detail: str = ""


Callbacks: TypeAlias = Callable[[str, str], Callback | None]  # (tenant, webhook-id)


def deliver(
    http: Http,
    url: str,
    body: JsonValue,
    *,
    message: str,
    secrets: Sequence[str] = (),
    call_id: str,
    clock: Clock,
    total_s: float = TOTAL_S,
) -> Reply:
    """Send one signed message; alerts use it too. The answer comes without its body."""
    content = encode(body)
    headers = {
        "content-type": "application/json",
        **signed_headers(message, clock.now(), content, secrets),
    }
    reply = http.send(Request("POST", url, headers, content), call_id=call_id, total_s=total_s)
    return Reply(reply.status, reply.headers)


class Webhooks:
    """Runs steps of the kind `webhook`."""

    def __init__(
        self,
        http: Http,
        secrets: Secrets,
        *,
        callbacks: Callbacks | None = None,
        clock: Clock | None = None,
        poll_s: float = POLL_S,
    ) -> None:
        self._http = http
        self._secrets = secrets
        self._callbacks = callbacks
        self._clock = clock or SystemClock()
        self._poll_s = poll_s

    def run(self, call: StepCall) -> StepResult:
        """Deliver, or look whether the receiver has called back."""
        message = message_id(call.idempotency_key)
        if isinstance(call.token, dict) and "messageId" in call.token:
            return self._look(call, message)
        waits = call.input.get("waitForCallback") is True
        if waits and self._callbacks is None:
            detail = "waitForCallback: expected a worker that takes callbacks, found one without"
            return failed(Failure.INPUT_INVALID, detail, retryable=False)
        try:
            reply = self._deliver(call, message)
        except (OutboundRefused, Unreachable) as error:
            return outcome_from(error, call)
        except (SecretUnknown, SettingsInvalid) as error:
            return failed(Failure.INPUT_INVALID, error.detail, retryable=False)
        if not reply.is_ok:
            return outcome_of(reply, call)
        if waits:
            return Waiting(self._poll_s, {"messageId": message})
        return succeeded({"status": reply.status, "messageId": message})

    def cancel(self, call_id: str) -> None:
        """Hang up."""
        self._http.cancel(call_id)

    def _deliver(self, call: StepCall, message: str) -> Reply:
        name = call.input.get("secretName")
        secrets = secret_values(self._secrets, call.tenant_id, str(name)) if name else ()
        return deliver(
            self._http,
            str(call.input.get("url")),
            call.input.get("body"),
            message=message,
            secrets=secrets,
            call_id=call.job_run_id,
            clock=self._clock,
            total_s=min(TOTAL_S, call.timeout_s),
        )

    def _look(self, call: StepCall, message: str) -> StepResult:
        found = self._callbacks(call.tenant_id, message) if self._callbacks else None
        if found is None:
            if is_over(call, self._clock):
                return timed_out(call.timeout_s)
            return Waiting(self._poll_s, call.token)
        if found.succeeded:
            return succeeded(found.output)
        # The word stands under the message, which is the same for every attempt.
        detail = found.detail or "the receiver said that it failed"
        return failed(Failure.REMOTE_FAILED, detail, retryable=False)


def is_over(call: StepCall, clock: Clock) -> bool:
    """Whether an attempt that began elsewhere has used up its time."""
    if call.started_at is None:
        return False
    return clock.now() - call.started_at >= timedelta(seconds=call.timeout_s)
