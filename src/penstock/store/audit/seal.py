"""Decide what a seal is: the leaves of the events that came since the last one, and what they fill.

    rows after the last seal ── next_seal ──▶ leaves · tiles that are full now · the tree as it is

Pure. A row whose place is wrong stops the sealing: signing it would make the damage look right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from penstock.base.errors import AuditDamaged
from penstock.store.audit.entry import entry_hash
from penstock.store.audit.merkle import HASH, Frontier, Node

SEAL_EVENTS_MAX = 10_000


class SealedRange(NamedTuple):
    """One seal as it is kept."""

    first: int
    last: int
    leaves: bytes


@dataclass(frozen=True, slots=True)
class Seal:
    """What to keep, and the tree that it leads to."""

    first: int
    leaves: bytes
    nodes: list[Node]
    frontier: Frontier

    @property
    def last(self) -> int:
        return self.frontier.size


class Checkpoints(Protocol):
    """Where signed notes are kept outside the database."""

    def newest(self, most: int) -> list[str]: ...

    def keep(self, size: int, note: str) -> None: ...

    def drop(self, size: int) -> None: ...


def next_seal(frontier: Frontier, rows: Sequence[tuple[int, int, bytes]]) -> Seal:
    """The seal over rows of (position, received in microseconds, hash) that follow the tree."""
    first = frontier.size + 1
    for expected, (position, _, row_leaf) in enumerate(rows, first):
        if position != expected:
            raise AuditDamaged(f"expected an event at position {expected}, found {position}")
        if len(row_leaf) != HASH:
            raise AuditDamaged(f"expected a hash of {HASH} bytes at position {position}")
    leaves = b"".join([entry_hash(*row) for row in rows])
    grown = frontier.copy()
    nodes = grown.grow(leaves)
    return Seal(first, leaves, nodes, grown)


def leaves_between(seals: Iterable[SealedRange], first: int, last: int) -> bytes:
    """The leaves of positions `first` to `last`, as far as seals in order hold them unbroken."""
    found: list[bytes] = []
    wanted = first
    for seal in seals:
        if seal.first > wanted or seal.last < wanted:
            break
        start = (wanted - seal.first) * HASH
        end = (min(seal.last, last) - seal.first + 1) * HASH
        found.append(seal.leaves[start:end])
        wanted = seal.last + 1
    return b"".join(found)
