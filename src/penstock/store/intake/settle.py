"""Decide what becomes of a lot: which events are new, which are duplicates, which conflict.

    same (tenant, id), same content    ─▶ duplicate
    same (tenant, id), other content   ─▶ dead letter `id_conflict`
    else                               ─▶ a new row at the next position

Pure: what the log already holds is an argument, so the PostgreSQL intake and the in-memory twin
settle alike, and lines = stored + duplicates + dead holds by construction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from penstock.ingress.lot import Row, Written
from penstock.ingress.verdict import Rejected, conflict

Key = tuple[str, str]  # tenant, id


@dataclass(slots=True)
class SourceTally:
    """What one lot did for one source."""

    stored: int = 0
    duplicates: int = 0
    dead: int = 0
    lag_total_ms: int = 0
    lag_last_ms: int = 0
    lag_max_ms: int = 0
    last_event_at: datetime | None = None


@dataclass(slots=True)
class LetterTally:
    """One dead letter and how often this lot saw it."""

    rejected: Rejected
    count: int = 1


@dataclass(frozen=True, slots=True)
class Settlement:
    """What to write."""

    fresh: list[Row] = field(default_factory=list)
    letters: dict[str, LetterTally] = field(default_factory=dict)
    sources: dict[Key, SourceTally] = field(default_factory=dict)  # by tenant and source
    lines: int = 0
    duplicates: int = 0
    dead: int = 0


def keys_of(messages: Iterable[Written]) -> list[Key]:
    """The (tenant, id) of every accepted event, to look up in the log."""
    return [(row.tenant_id, row.id) for row in messages if isinstance(row, Row)]


def settle(messages: Iterable[Written], known: Mapping[Key, bytes], *, now: datetime) -> Settlement:
    """Sort a lot into new events, duplicates and dead letters, in the order it came."""
    fresh: list[Row] = []
    letters: dict[str, LetterTally] = {}
    sources: dict[Key, SourceTally] = {}
    seen = dict(known)
    lines = duplicates = dead = 0
    for message in messages:
        lines += 1
        if isinstance(message, Row):
            _, tenant_id, event_id, _, source, occurred_at, content_hash, *_ = message
            before = seen.get((tenant_id, event_id))
            tally = _tally(sources, tenant_id, source)
            if before is None:
                seen[tenant_id, event_id] = content_hash
                fresh.append(message)
                _count_fresh(tally, occurred_at, now)
                continue
            if before == content_hash:
                duplicates += 1
                tally.duplicates += 1
                continue
            refused = conflict(message.raw, message)
        else:
            refused = message
        dead += 1
        _tally(sources, refused.tenant_id, refused.source or "unknown").dead += 1
        _count_letter(letters, refused)
    return Settlement(fresh, letters, sources, lines, duplicates, dead)


def tally_letters(rejected: Iterable[Rejected]) -> dict[str, LetterTally]:
    """Each distinct letter once, with how often it came."""
    letters: dict[str, LetterTally] = {}
    for item in rejected:
        _count_letter(letters, item)
    return letters


def _tally(sources: dict[Key, SourceTally], tenant_id: str, source: str) -> SourceTally:
    tally = sources.get((tenant_id, source))
    if tally is None:
        tally = sources[tenant_id, source] = SourceTally()
    return tally


def _count_fresh(tally: SourceTally, occurred_at: datetime, now: datetime) -> None:
    lag_ms = max(0, int((now - occurred_at).total_seconds() * 1000))
    tally.stored += 1
    tally.lag_total_ms += lag_ms
    tally.lag_last_ms = lag_ms
    tally.lag_max_ms = max(tally.lag_max_ms, lag_ms)
    tally.last_event_at = occurred_at


def _count_letter(letters: dict[str, LetterTally], rejected: Rejected) -> None:
    known = letters.get(rejected.dead_letter_id)
    if known is None:
        letters[rejected.dead_letter_id] = LetterTally(rejected)
    else:
        known.count += 1
