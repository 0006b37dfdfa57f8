"""Read what a server answers to published events.

    202, 207          one Outcome or EventRefused per event
    400, 413, 422 …   problem+json: every event of the request is refused for that reason
    401, 403          AccessDenied
    408, 429, 5xx     QueueUnavailable: nothing is known to be stored, the same ids may come again
    anything else     NotFound: whatever answers there is no Penstock

Pure: the same status, headers and body always read the same. A batch answer that leaves an event
out counts as no answer, because an event without an answer must never pass for a stored one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from penstock.base.clock import format_instant
from penstock.base.errors import (
    AccessDenied,
    EventRefused,
    Fault,
    NotFound,
    NotInProfile,
    PenstockError,
    QueueUnavailable,
)
from penstock.envelope import codec
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.publish.port import Outcome, Result

_TOO_LARGE = 413
_DISK_FULL = 507
_AGAIN = (408, 429)
_ELSEWHERE = (404, 405)  # the server knows no such route
_ANSWER_BYTES_MAX = 64_000_000
_ANSWER_NODES_MAX = 10_000_000
_ANSWER_DEPTH_MAX = 48  # an event of the deepest kind with the answer around it


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer, and when it came."""

    status: int
    body: bytes
    at: datetime
    retry_after: str | None = None

    @property
    def too_large(self) -> bool:
        return self.status == _TOO_LARGE


def read_answer(answer: Answer, sent: Sequence[JsonObject]) -> list[Result]:
    """One result per event that was sent, in order; raises when there is none to be had."""
    tree = _tree(answer.body)
    if 200 <= answer.status < 300:
        return _taken(answer, tree, sent)
    if answer.status in (401, 403):
        detail = _text(tree, "detail") or f"expected an accepted token, found {answer.status}"
        raise AccessDenied(detail, known=answer.status == 403, remedy=_text(tree, "remedy"))
    if answer.status in _AGAIN or answer.status >= 500:
        raise QueueUnavailable(
            _text(tree, "detail") or f"expected 202 from the server, found {answer.status}",
            disk_full=answer.status == _DISK_FULL,
            retry_after_s=retry_after_s(answer.retry_after, answer.at),
        )
    if answer.status in _ELSEWHERE or _text(tree, "code") is None:
        raise _stranger(answer, f"status {answer.status}")
    return [_refused(tree) for _ in sent]


def retry_after_s(header: str | None, now: datetime) -> int:
    """Whole seconds that a Retry-After header asks for; 0 when it asks for none."""
    text = (header or "").strip()
    if re.fullmatch(r"[0-9]{1,9}", text):
        return int(text)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return 0
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0, math.ceil((until - now).total_seconds()))


def _taken(answer: Answer, tree: JsonObject, sent: Sequence[JsonObject]) -> list[Result]:
    data = tree.get("data")
    if not isinstance(data, dict):
        raise _stranger(answer, "no data")
    accepted_at = _text(data, "acceptedAt") or format_instant(answer.at)
    if "results" not in data and len(sent) == 1:
        return [_outcome(answer, data, sent[0], accepted_at)]
    listed = data.get("results")
    found: dict[JsonValue, JsonObject] = {}
    for item in listed if isinstance(listed, list) else []:
        if isinstance(item, dict) and isinstance(item.get("index"), int):
            found[item["index"]] = item
    if set(found) != set(range(len(sent))):
        raise _stranger(answer, f"{len(found)} results for {len(sent)} events")
    return [_result(answer, found[index], event, accepted_at) for index, event in enumerate(sent)]


def _result(answer: Answer, item: JsonObject, event: JsonObject, accepted_at: str) -> Result:
    if item.get("status") == "rejected":
        problem = item.get("problem")
        return _refused(problem if isinstance(problem, dict) else {})
    return _outcome(answer, item, event, accepted_at)


def _outcome(answer: Answer, data: JsonObject, event: JsonObject, accepted_at: str) -> Outcome:
    stored = data.get("event")
    stored = stored if isinstance(stored, dict) else event
    event_id = _text(data, "id") or _text(stored, "id") or _text(event, "id") or ""
    status = data.get("status")
    if status == "accepted":
        return Outcome(event_id, "accepted", accepted_at, stored)
    if status == "duplicate":
        return Outcome(event_id, "duplicate", accepted_at, stored)
    raise _stranger(answer, f"status {status!r} of an event")


def _refused(problem: JsonObject) -> EventRefused:
    errors = problem.get("errors")
    return EventRefused(
        _text(problem, "detail") or _text(problem, "title") or "the server gave no reason",
        reason=_text(problem, "code") or EventRefused.code,
        remedy=_text(problem, "remedy"),
        faults=tuple(
            Fault(_text(fault, "pointer") or "", _text(fault, "detail") or "")
            for fault in (errors if isinstance(errors, list) else [])
            if isinstance(fault, dict)
        ),
        dead_letter_id=_text(problem, "deadLetterId"),
    )


def _tree(body: bytes) -> JsonObject:
    try:
        tree = codec.decode(
            body,
            bytes_max=_ANSWER_BYTES_MAX,
            nodes_max=_ANSWER_NODES_MAX,
            depth_max=_ANSWER_DEPTH_MAX,
        )
    except NotInProfile:
        return {}
    return tree if isinstance(tree, dict) else {}


def _text(tree: JsonObject, key: str) -> str | None:
    value = tree.get(key)
    return value if isinstance(value, str) and value else None


def _stranger(answer: Answer, found: str) -> PenstockError:
    start = answer.body[:120].decode("utf-8", "replace")
    return NotFound(
        f"expected a Penstock server, found {found}: {start!r}",
        remedy="Check PENSTOCK_URL: it is the address that `penstock up` prints, without a path.",
    )
