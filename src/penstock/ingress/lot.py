"""Hold what is settled in one transaction: judged messages and the segments they came from.

    Judged ── rows.write ──▶ Row | Rejected ──▶ Lot ── Intake.settle ──▶ Receipt

    lines = stored + duplicates + dead, always

A lot holds rows that are written out already, never the events they were written from: a thousand
trees of objects are slower to walk a second time than to make, and a line of bytes is not.

`Intake` is the port through which ingress hands over; the store implements it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol, TypeAlias

from penstock.ingress.verdict import Rejected, Verdict


class Judged(NamedTuple):
    """One message and its verdict."""

    raw: bytes
    verdict: Verdict


class Row(NamedTuple):
    """One accepted event, written out: what it is told apart and counted by, and its lines."""

    raw: bytes  # as it came, for the dead letter if its id is taken
    tenant_id: str
    id: str
    type: str
    source: str
    occurred_at: datetime
    content_hash: bytes
    line: bytes  # of the log, after position and time
    tags: tuple[bytes, ...]  # lines of the tags, after the position


Written: TypeAlias = Row | Rejected  # what a message becomes in the store


@dataclass(frozen=True, slots=True)
class SegmentMark:
    """Which segment messages came from, and how far its writer had acknowledged by its end."""

    segment: str
    writer: str
    end: int
    messages: Sequence[Written]


@dataclass(frozen=True, slots=True)
class Lot:
    """Messages to settle together: from segments, or straight from a writer without a queue."""

    segments: Sequence[SegmentMark] = ()
    writer: str = ""
    messages: Sequence[Written] = ()
    epoch: int | None = None  # None: not fenced


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a lot."""

    stored: int = 0
    duplicates: int = 0
    dead: int = 0
    last_position: int = 0
    already_settled: tuple[str, ...] = field(default=())


class Intake(Protocol):
    """Whatever can settle a lot: all of it or nothing."""

    def settle(self, lot: Lot) -> Receipt: ...

    def close(self) -> None: ...
