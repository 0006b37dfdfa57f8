"""Hold a rejected message as it is kept: verbatim, with its reason and how often it came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One rejected message."""

    id: str
    tenant_id: str
    reason: str
    detail: str
    pointer: str
    type: str | None
    source: str | None
    event_id: str | None
    raw: bytes
    via: str
    first_seen_at: datetime
    last_seen_at: datetime
    count: int
    redriven_at: datetime | None
    redriven_id: str | None


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Which dead letters are meant; None means any."""

    reason: str | None = None
    source: str | None = None
    type: str | None = None
    via: str | None = None
    ids: tuple[str, ...] | None = None
    redriven: bool | None = False


@dataclass(frozen=True, slots=True)
class LetterGroup:
    """Dead letters of one cause."""

    reason: str
    type: str | None
    source: str | None
    pointer: str
    detail: str
    messages: int
    letters: int
    first_seen_at: datetime
    last_seen_at: datetime
    sample_id: str


@dataclass(frozen=True, slots=True)
class LetterPage:
    """One page, newest first."""

    letters: Sequence[DeadLetter]
    next_cursor: str | None
    has_more: bool
    limit: int


@dataclass(frozen=True, slots=True)
class RedriveReport:
    """What a redrive did, or would do."""

    would_pass: int
    would_fail: int
    redriven: int
    still_failing: Sequence[tuple[str, str]]  # id, reason
