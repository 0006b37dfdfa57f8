"""Speak HTTP in values: what is asked, what is answered, and what an answer means for a step.

    2xx               done
    3xx               failed for good: a redirect is never followed
    408 425 429 5xx   failed, worth trying again
    any other         failed for good, 410 (gone) among them

Who is asked to come again later, by `Retry-After` or by the circuit, waits without failing.

`Http` is the one way out; over_http.py goes it, and only past the guard.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Protocol

from penstock.base.errors import NotInProfile
from penstock.envelope.codec import decode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.workflows.launch.errors import OutboundRefused, Resting, Unreachable
from penstock.workflows.port import Failed, Failure, StepCall, StepResult, Waiting

ANSWER_BYTES_MAX: Final = 64 * 1024
TOTAL_S: Final = 10.0
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE: Final = re.compile(r"[\t -~]{0,8192}")
# These belong to the connection, or would say that the request came from elsewhere.
_OURS: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"}
    | {"expect", "keep-alive", "proxy-authorization", "proxy-connection", "accept-encoding"}
)
_WORTH_TRYING: Final = frozenset({408, 425, 429})
_SECONDS: Final = re.compile(r"[0-9]{1,5}")
_RESTS_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, and of whom."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Reply:
    """What was answered; of a long body only the beginning."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes = b""
    is_cut: bool = False

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> JsonValue:
        """The body as JSON; NotInProfile when it is not, or not whole."""
        if self.is_cut:
            raise NotInProfile("too_large", f"expected at most {ANSWER_BYTES_MAX} bytes")
        return decode(self.body, bytes_max=ANSWER_BYTES_MAX)


class Http(Protocol):
    """Sends requests to others."""

    def send(self, request: Request, *, call_id: str, total_s: float = TOTAL_S) -> Reply:
        """The answer; OutboundRefused when it may not be sent, Unreachable when none came."""
        ...

    def cancel(self, call_id: str) -> None:
        """End the request of this call, if one is under way: it becomes Unreachable."""
        ...


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuse headers that are no headers, or not the caller's to set."""
    for name, value in headers.items():
        if name.lower() in _OURS or not _NAME.fullmatch(name):
            raise OutboundRefused(f"expected a header that a step may set, found {name[:40]!r}")
        if not _VALUE.fullmatch(value):
            raise OutboundRefused(f"expected printable ASCII in the header {name}, found other")


def failure_of(reply: Reply) -> Failed:
    """What an answer that is not 2xx means. It never repeats the answer's body."""
    try:
        said = f"{reply.status} {HTTPStatus(reply.status).phrase}"
    except ValueError:
        said = str(reply.status)
    if 300 <= reply.status < 400:
        detail = f"expected an answer 2xx, found {said}; redirects are not followed"
    else:
        detail = f"expected an answer 2xx, found {said}"
    may_help = reply.status >= 500 or reply.status in _WORTH_TRYING
    return Failed(Failure.REQUEST_FAILED, detail, retryable=may_help)


def outcome_of(reply: Reply, call: StepCall) -> StepResult:
    """As `failure_of`; but a receiver that says when to come again is asked again then."""
    failure = failure_of(reply)
    after = reply.headers.get("retry-after", "")
    if not failure.retryable or not _SECONDS.fullmatch(after):
        return failure
    return _rest(call, float(after)) or failure


def outcome_from(error: OutboundRefused | Unreachable, call: StepCall) -> StepResult:
    """What a request without an answer means."""
    if isinstance(error, OutboundRefused):
        return Failed(Failure.ADDRESS_REFUSED, error.detail, retryable=False)
    failure = Failed(Failure.REQUEST_FAILED, error.detail)
    return (_rest(call, error.rest_s) or failure) if isinstance(error, Resting) else failure


def _rest(call: StepCall, rest_s: float) -> Waiting | None:
    """Come again after a while, without using up an attempt; but not for ever."""
    known = call.token.get("rests") if isinstance(call.token, dict) else None
    rests = known if isinstance(known, int) else 0
    if rests >= _RESTS_MAX or rest_s > call.timeout_s:
        return None
    return Waiting(max(1.0, rest_s), {"rests": rests + 1})


def part(tree: JsonObject, name: str) -> JsonObject:
    """The object under a name of a step's input; an empty one when there is none."""
    found = tree.get(name)
    return found if isinstance(found, dict) else {}
