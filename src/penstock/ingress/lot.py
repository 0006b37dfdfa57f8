"""Hold what is settled in one transaction: judged messages and the segments they came from.

    Lot ── Intake.settle ──▶ Receipt          lines = stored + duplicates + dead, always

`Intake` is the port through which ingress hands over; the store implements it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from penstock.ingress.verdict import Verdict


class Judged(NamedTuple):
    """One message and its verdict."""

    raw: bytes
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class SegmentMark:
    """Which segment messages came from, and how far its writer had acknowledged by its end."""

    segment: str
    writer: str
    end: int
    judged: Sequence[Judged]


@dataclass(frozen=True, slots=True)
class Lot:
    """Messages to settle together: from segments, or straight from a writer without a queue."""

    segments: Sequence[SegmentMark] = ()
    writer: str = ""
    judged: Sequence[Judged] = ()
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
