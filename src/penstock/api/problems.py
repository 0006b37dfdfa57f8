"""Say what went wrong as `application/problem+json` (RFC 9457), with a code and a remedy.

    PenstockError ── problem_of ──▶ Problem ── answer ──▶ response
    RequestRefused (HTTP itself) ──────▲

The table below is the whole mapping from codes to statuses. A refused event's code is its rejection
reason, the one its dead letter carries. 429, 503 and 507 mean "not stored, try again" and say when.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.responses import Response

from penstock.base.errors import (
    AccessDenied,
    AppendConflict,
    EventRefused,
    Fault,
    NotInProfile,
    PenstockError,
    QueueUnavailable,
    StoreUnavailable,
)
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.ingress.verdict import Reason, Rejected
from penstock.triggers.check import TriggerInvalid

_STATUS = {
    "not_in_profile": 400,
    "query_invalid": 400,
    "query_too_slow": 422,
    "not_found": 404,
    "condition_invalid": 422,
    "append_conflict": 409,
    "schema_invalid": 422,
    "schema_conflict": 409,
    "schema_breaking": 409,
    "reducer_failed": 422,
    "not_sealed": 409,
    "trigger_invalid": 422,
    "trigger_reads_personal": 422,
    "trigger_conflict": 412,
    "audit_damaged": 500,
    "store_unavailable": 503,
    "setup_incomplete": 503,
    "workflow_invalid": 422,
    "workflow_conflict": 409,
    "workflow_changed": 412,
    "workflow_disabled": 409,
    "parameters_invalid": 422,
    "run_key_invalid": 422,
    "run_key_conflict": 409,
    "schedule_invalid": 422,
}
_REASON_STATUS: dict[str, int] = {
    Reason.TOO_LARGE: 413,
    Reason.NOT_UTF8: 400,
    Reason.MALFORMED_JSON: 400,
    Reason.DUPLICATE_KEY: 400,
    Reason.TOO_DEEP: 400,
    Reason.TOO_MANY_NODES: 400,
    Reason.NUL_CHARACTER: 400,
    Reason.LONE_SURROGATE: 400,
    Reason.NUMBER_OUT_OF_RANGE: 400,
    Reason.PAYLOAD_TOO_LARGE: 413,
}
_TITLES = {
    400: "The request cannot be read",
    401: "No token, or one that is not known",
    403: "Not allowed",
    404: "Nothing here",
    405: "No such method here",
    408: "The body took too long",
    409: "It conflicts with what is there",
    412: "Changed since it was read",
    413: "Too large",
    415: "This kind of body is not understood",
    421: "Not a name of this server",
    422: "Understood, but refused",
    500: "The server failed",
    503: "Not now; try again",
    507: "No room; try again",
}
_RETRY_AFTER_S = 2
_INTERNAL = "The server failed. Its log has a line with this request's id; nothing else is known."


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that went wrong, ready to be sent."""

    status: int
    code: str
    detail: str
    remedy: str
    faults: tuple[Fault, ...] = ()
    dead_letter_id: str | None = None
    members: Mapping[str, JsonValue] = field(default_factory=dict)  # beside those of every problem
    headers: Mapping[str, str] = field(default_factory=dict)

    def to_json(self, instance: str | None = None) -> JsonObject:
        """The members of the problem document."""
        errors: list[JsonValue] = [{"pointer": f.pointer, "detail": f.detail} for f in self.faults]
        found: JsonObject = {
            "type": f"urn:penstock:problem:{self.code}",
            "title": _TITLES.get(self.status, "The request was refused"),
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            "remedy": self.remedy,
            "errors": errors,
        }
        if self.dead_letter_id is not None:
            found["deadLetterId"] = self.dead_letter_id
        if instance is not None:
            found["instance"] = instance
        return found | dict(self.members)


class RequestRefused(Exception):
    """A request that fails as HTTP, before anybody looks at what it says."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        remedy: str,
        faults: tuple[Fault, ...] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem = Problem(status, code, detail, remedy, faults, headers=headers or {})


INTERNAL = Problem(500, "internal", _INTERNAL, PenstockError.remedy)


def problem_of(error: PenstockError) -> Problem:
    """The problem that an error of ours is to a caller."""
    if isinstance(error, EventRefused):
        status = _reason_status(error.reason)
        return Problem(
            status, error.reason, error.detail, error.remedy, error.faults, error.dead_letter_id
        )
    if isinstance(error, NotInProfile):
        status = _reason_status(error.reason)
        return Problem(status, error.reason, error.detail, error.remedy, error.faults)
    if isinstance(error, QueueUnavailable):
        status, headers = 507 if error.disk_full else 503, _retry(error.retry_after_s)
    elif isinstance(error, AccessDenied):
        status, headers = (403 if error.known else 401), _challenge(error)
    elif error.code in _STATUS:
        status = _STATUS[error.code]
        headers = _retry(_RETRY_AFTER_S) if isinstance(error, StoreUnavailable) else {}
    else:
        return INTERNAL
    return Problem(
        status,
        error.code,
        error.detail,
        error.remedy,
        error.faults,
        members=_members(error),
        headers=headers,
    )


def problem_of_rejected(rejected: Rejected) -> Problem:
    """The problem that a rejected event is to its publisher."""
    return Problem(
        _reason_status(rejected.reason),
        rejected.reason,
        rejected.detail,
        rejected.remedy or EventRefused.remedy,
        rejected.faults or (Fault(rejected.pointer, rejected.detail),),
        rejected.dead_letter_id,
    )


def answer(problem: Problem, instance: str | None = None) -> Response:
    """The problem as a response."""
    body = encode(problem.to_json(instance))
    return Response(body, problem.status, problem.headers, "application/problem+json")


def _members(error: PenstockError) -> dict[str, JsonValue]:
    """What a problem says beside what all of them say."""
    if isinstance(error, TriggerInvalid):
        return error.flattened()
    if not isinstance(error, AppendConflict):
        return {}
    positions: list[JsonValue] = [str(position) for position in error.positions]
    clause = "failIfExists" if error.exists else "query"
    return {"conflictingPositions": positions, "clause": clause}


def _reason_status(reason: str) -> int:
    return _REASON_STATUS.get(reason, 422)


def _retry(seconds: int) -> dict[str, str]:
    return {"Retry-After": str(seconds)}


def _challenge(error: AccessDenied) -> dict[str, str]:
    wrong = ', error="insufficient_scope"' if error.known else ""
    return {"WWW-Authenticate": f'Bearer realm="penstock"{wrong}'}
