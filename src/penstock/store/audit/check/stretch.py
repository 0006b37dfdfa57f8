"""Check the rows of a stretch of the log against their own hashes, their seals and their tags.

    rows (COPY) ── read_row ──▶ own hash?  sealed leaf?  next position?
    tag rows ─────────────────▶ exactly those that the rows say?

What comes back is the leaves of the stretch: as sealed where there is a seal, so that one changed
row is one damage and not a hundred roots that no longer fit. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from penstock.store.audit.check.report import DAMAGES_MAX, Damage, at
from penstock.store.audit.entry import Row, entry_hash, position_of, read_row, unescaped
from penstock.store.audit.merkle import HASH, TILE, perfect_root
from penstock.store.audit.seal import SealedRange

TagRow: TypeAlias = tuple[int, str, str]  # position, tenant, key:value


class Tile(NamedTuple):
    """Up to 256 leaves, or the one hash over 256 of them."""

    is_root: bool
    hashes: bytes


@dataclass(slots=True)
class Findings:
    """What the check of a stretch found; stretches in order make up the log."""

    tiles: list[Tile] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    events: int = 0
    tag_rows: int = 0
    received_us: int = -(2**63)  # when the last event came
    doubtful: list[int] = field(default_factory=list)  # places whose leaf nobody can tell

    def add(self, more: Findings) -> None:
        """Take in what the following positions gave."""
        self.tiles += more.tiles
        self.damages += more.damages[: max(0, DAMAGES_MAX - len(self.damages))]
        self.doubtful += more.doubtful[: max(0, DAMAGES_MAX - len(self.doubtful))]
        self.events += more.events
        self.tag_rows += more.tag_rows
        self.received_us = max(self.received_us, more.received_us)


class Leaves:
    """The sealed leaves of positions `first` to `last`, as far as seals hold them."""

    def __init__(self, seals: Sequence[SealedRange], first: int, last: int) -> None:
        self.first, self.last = first, last
        self.joined = bytearray((last - first + 1) * HASH)
        self.known = bytearray(last - first + 1)
        self.damages: list[Damage] = []
        for seal in seals:
            self._take(seal)

    def _take(self, seal: SealedRange) -> None:
        count = seal.last - seal.first + 1
        if count < 1 or len(seal.leaves) != count * HASH:
            detail = f"the seal of positions {seal.first} to {seal.last} has not one hash for each"
            self.damages.append(at(max(seal.first, 1), detail))
            return
        low, high = max(seal.first, self.first), min(seal.last, self.last)
        here, there = low - self.first, low - seal.first
        self.joined[here * HASH : (high - self.first + 1) * HASH] = seal.leaves[
            there * HASH : (high - seal.first + 1) * HASH
        ]
        self.known[here : high - self.first + 1] = b"\x01" * (high - low + 1)

    def sealed(self, place: int) -> bytes | None:
        """The leaf at a place of the stretch, counted from 0."""
        return bytes(self.joined[place * HASH : (place + 1) * HASH]) if self.known[place] else None

    def fill(self, place: int, found: bytes) -> None:
        """Take what the row says where no seal says anything."""
        self.joined[place * HASH : (place + 1) * HASH] = found

    def uncovered(self, sealed: int) -> Iterable[Damage]:
        """Positions that a checkpoint covers, or none does, against what the seals say."""
        for name, wanted, low, high in (
            ("is in no seal", 0, self.first, min(self.last, sealed)),
            ("is sealed but under no checkpoint", 1, max(self.first, sealed + 1), self.last),
        ):
            place = self.known.find(wanted, low - self.first, max(0, high - self.first + 1))
            if low <= high and place >= 0:
                yield at(self.first + place, name)


def check_rows(
    lines: Iterable[bytes],
    tags: Sequence[TagRow],
    leaves: Leaves,
    *,
    sealed: int,
    received_us: int = -(2**63),
) -> Findings:
    """Check the rows of one stretch, which come in the order of positions.

    `sealed` is the size of the newest checkpoint, `received_us` when the event before came.
    """
    check = _Check(leaves, received_us)
    for line in lines:
        check.take(line)
    check.end()
    damages = [*leaves.damages, *leaves.uncovered(sealed), *check.damages]
    damages += tag_damages(check.promised, tags)
    return Findings(
        damages=sorted(damages)[:DAMAGES_MAX],
        events=check.events,
        tag_rows=len(tags),
        received_us=check.received_us,
        doubtful=check.doubtful[:DAMAGES_MAX],
    )


class _Check:
    """Goes through the rows of a stretch one by one."""

    def __init__(self, leaves: Leaves, received_us: int) -> None:
        self._leaves = leaves
        self._expected = leaves.first
        self.received_us = received_us
        self.events = 0
        self.damages: list[Damage] = []
        self.doubtful: list[int] = []
        self.promised: list[TagRow] = []

    def take(self, line: bytes) -> None:
        self.events += 1
        position = position_of(line)
        if position < self._expected:
            self.damages.append(at(position, "there is more than one event"))
            return
        self._skip_to(position)
        self._expected = position + 1
        try:
            row = read_row(line)
        except ValueError as error:
            self.damages.append(at(position, f"the row is none of ours: {error}"))
            self._doubt(position)
            return
        self._compare(row)
        if row.tags:
            tenant = unescaped(row.tenant_id).decode()
            self.promised += [(position, tenant, f"{key}:{row.tags[key]}") for key in row.tags]

    def end(self) -> None:
        """There are no more rows: the stretch must be at its end."""
        self._skip_to(self._leaves.last + 1)

    def _compare(self, row: Row) -> None:
        place, leaf = row.position - self._leaves.first, row.leaf
        own = entry_hash(row.position, row.received_us, leaf)
        sealed = self._leaves.sealed(place)
        if row.hash != leaf:
            self.damages.append(at(row.position, "the row does not match its own hash"))
        elif sealed is not None and sealed != own:
            self.damages.append(at(row.position, "the row and its time are not what was sealed"))
            self.doubtful.append(row.position)
        elif row.received_us < self.received_us:
            self.damages.append(at(row.position, "it was received before the one before it"))
        if sealed is None:
            self._leaves.fill(place, own)
        self.received_us = max(self.received_us, row.received_us)

    def _skip_to(self, position: int) -> None:
        if position > self._expected:
            self.damages.append(at(self._expected, "there is no event", last=position - 1))
            for missing in range(self._expected, position):
                self._doubt(missing)

    def _doubt(self, position: int) -> None:
        if not self._leaves.known[position - self._leaves.first]:
            self.doubtful.append(position)


def tag_damages(promised: Sequence[TagRow], kept: Sequence[TagRow]) -> list[Damage]:
    """Where the tag rows are not exactly those that the events say."""
    ours, theirs = set(promised), set(kept)
    if len(theirs) == len(kept) and ours == theirs:
        return []
    found = {at(row[0], "a tag of the event has no row") for row in ours - theirs}
    found |= {at(row[0], "there is a tag row that no event says") for row in theirs - ours}
    twice = sorted((Counter(kept) - Counter(theirs)).keys())
    found |= {at(row[0], "there is a tag row more than once") for row in twice}
    return sorted(found)


def tiles_between(leaves: Leaves, sizes: Iterable[int]) -> list[Tile]:
    """The tiles of a stretch that starts with one; whole where a checkpoint's size cuts it."""
    cut = {(size - 1) // TILE for size in sizes if size % TILE}
    tiles = []
    for start in range(0, leaves.last - leaves.first + 1, TILE):
        joined = bytes(leaves.joined[start * HASH : (start + TILE) * HASH])
        whole = len(joined) == TILE * HASH and (leaves.first - 1 + start) // TILE not in cut
        tiles.append(Tile(whole, perfect_root(joined) if whole else joined))
    return tiles
