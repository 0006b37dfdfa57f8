"""Add up the ledger: what was accepted, where it is now, and what nobody can explain.

    accepted     what writers acknowledged: each numbers its messages, so the highest number counts;
                 and what appends were answered for
    stored       the head of the log, which is gapless
    in flight    messages on disk whose segment is not settled
    unexplained  accepted - stored - duplicates - dead - in flight; anything but 0 is an alarm

The left side comes from the writers and the right side from the log and the disk, so a segment that
vanished, or a row that did, shows. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.transport.on_disk import Pending


@dataclass(frozen=True, slots=True)
class SourceLine:
    """What the ledger knows of one source."""

    tenant_id: str
    source: str
    stored: int
    duplicates: int
    dead: int
    lag_average_ms: int | None
    lag_last_ms: int
    lag_max_ms: int
    last_event_at: datetime | None


@dataclass(frozen=True, slots=True)
class Books:
    """What the database says, read in one snapshot after the disk."""

    head: int
    appended: int  # events that appends were answered for; those have no writer and no segment
    duplicates: int
    dead: int
    refused: int
    writers: Mapping[str, int]  # writer -> highest acknowledged number among settled segments
    settled: frozenset[str]  # of the segments asked about
    sources: Sequence[SourceLine]


@dataclass(frozen=True, slots=True)
class LedgerReport:
    """The whole account at one moment."""

    accepted: int
    stored: int
    duplicates: int
    dead_lettered: int
    in_flight: int
    refused: int
    unexplained: int
    sources: Sequence[SourceLine]


def account(pending: Pending, books: Books) -> LedgerReport:
    """Balance what is on disk with what is in the books."""
    acknowledged = dict(books.writers)
    in_flight = 0
    for name in pending.segments:
        acknowledged[name.writer] = max(acknowledged.get(name.writer, 0), name.start + name.lines)
        if name.text not in books.settled:
            in_flight += name.lines
    for writer, (start, lines) in pending.open.items():
        # An open segment that was sealed and settled since we looked counts in the books already.
        if books.writers.get(writer, 0) <= start:
            acknowledged[writer] = max(acknowledged.get(writer, 0), start + lines)
            in_flight += lines
    accepted = sum(acknowledged.values()) + books.appended
    explained = books.head + books.duplicates + books.dead + in_flight
    return LedgerReport(
        accepted=accepted,
        stored=books.head,
        duplicates=books.duplicates,
        dead_lettered=books.dead,
        in_flight=in_flight,
        refused=books.refused,
        unexplained=accepted - explained,
        sources=books.sources,
    )
