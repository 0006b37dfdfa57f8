"""Conclude from what the stretches gave whether the log is the one that was signed.

    tiles in order ── Frontier ──▶ root at each checkpoint's size = the signed one?
                              └──▶ the kept nodes = those worked out?
    head, rows, seals, checkpoints: do they end at the same place?

Pure. What was signed outside the database is believed; what the database says is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.store.audit.check.report import AuditReport, Damage, at
from penstock.store.audit.check.stretch import Findings, Tile
from penstock.store.audit.checkpoint import Checkpoint, VerifierKey, read_note
from penstock.store.audit.entry import micros_of
from penstock.store.audit.merkle import HASH, TILE_LEVELS, Frontier, Node


@dataclass(frozen=True, slots=True)
class Facts:
    """What the database says about its log, at one instant."""

    head: int
    head_at: bytes  # as text: it may be anything
    first: int | None
    last: int | None
    count: int
    seal_first: int | None
    seal_last: int | None
    seals: int
    sealed: int  # how many positions the seals say they hold
    note: str | None  # the newest checkpoint


@dataclass(frozen=True, slots=True)
class Anchors:
    """The checkpoints that can be believed, by size, and what is wrong with the others."""

    outside: Mapping[int, Checkpoint]
    inside: Checkpoint | None
    damages: tuple[Damage, ...]

    @property
    def sealed(self) -> int:
        """Up to where somebody has signed."""
        return max([*self.outside, self.inside.size if self.inside else 0], default=0)

    def sizes(self) -> list[int]:
        """Every size that was signed, in order."""
        return sorted({*self.outside, *([self.inside.size] if self.inside else [])})

    def roots(self, size: int) -> Iterator[bytes]:
        """Every root that was signed for a size."""
        if size in self.outside:
            yield self.outside[size].root
        if self.inside is not None and self.inside.size == size:
            yield self.inside.root


def read_anchors(notes: Iterable[tuple[str, str]], inside: str | None, key: VerifierKey) -> Anchors:
    """Check every signature; `notes` are those outside, with the names of their files."""
    outside: dict[int, Checkpoint] = {}
    damages: list[Damage] = []
    for name, note in notes:
        try:
            checkpoint = read_note(note, key, cosigned=True)
        except ValueError as error:
            place = int(name[:20]) if name[:20].isdecimal() else 0
            damages.append(at(place, f"the checkpoint {name} is none of ours: {error}"))
            continue
        known = outside.setdefault(checkpoint.size, checkpoint)
        if known.root != checkpoint.root:
            damages.append(at(1, f"{name} and another checkpoint differ", last=checkpoint.size))
    try:
        newest = read_note(inside, key) if inside is not None else None
    except ValueError as error:
        newest = None
        last = max(outside, default=0)
        damages.append(at(last, f"the checkpoint in the database is none of ours: {error}"))
    return Anchors(outside, newest, tuple(damages))


def reach(facts: Facts, anchors: Anchors) -> int:
    """The last position to look at; a lone row far away does not stretch it for ever."""
    return max(anchors.sealed, min(facts.last or 0, anchors.sealed + facts.count))


def conclude(
    facts: Facts,
    anchors: Anchors,
    findings: Sequence[Findings],
    nodes: Sequence[Node],
    beyond: int | None,
) -> AuditReport:
    """Put together what was found; the damages come in order of position."""
    damages = {*anchors.damages, *_ends(facts, anchors, beyond)}
    for each in findings:
        damages.update(each.damages)
    damages.update(_head_time(facts, max((each.received_us for each in findings), default=0)))
    tree = _Tree(anchors, {place for each in findings for place in each.doubtful})
    for each in findings:
        for tile in each.tiles:
            tree.take(tile)
    damages.update(tree.damages)
    # A root over something damaged is no damage of its own.
    damages |= {
        found
        for found in _node_damages(tree.nodes, nodes)
        if not any(d.position <= found.last and found.position <= d.last for d in damages)
    }
    return AuditReport(
        events=sum(each.events for each in findings),
        sealed=anchors.sealed,
        tag_rows=sum(each.tag_rows for each in findings),
        seals=facts.seals,
        checkpoints=len(anchors.outside),
        root=tree.root.hex(),
        damages=tuple(sorted(damages)),
    )


class _Tree:
    """The tree of the log as it grows, compared with every checkpoint on the way."""

    def __init__(self, anchors: Anchors, doubtful: Collection[int]) -> None:
        self._anchors = anchors
        self._doubtful = doubtful
        self._sizes = anchors.sizes()
        self._frontier = Frontier()
        self._right = 0  # the largest size whose root is the signed one
        self.nodes: list[Node] = []
        self.damages: list[Damage] = []
        self.root = self._frontier.root()

    def take(self, tile: Tile) -> None:
        if tile.is_root:
            self._add(tile.hashes, TILE_LEVELS)
            return
        for start in range(0, len(tile.hashes), HASH):
            self._add(tile.hashes[start : start + HASH], 0)

    def _add(self, found: bytes, level: int) -> None:
        sealed = self._anchors.inside.size if self._anchors.inside else 0
        filled = list(self._frontier.add(found, level))
        size = self._frontier.size
        if level == TILE_LEVELS and size <= sealed:
            self.nodes.append(Node(1, (size >> TILE_LEVELS) - 1, found))
        if size <= sealed:
            self.nodes += filled
        while self._sizes and self._sizes[0] <= size:
            self._compare(self._sizes.pop(0))

    def _compare(self, size: int) -> None:
        root = self._frontier.root()
        self.root = root if size == self._anchors.sealed else self.root
        if all(signed == root for signed in self._anchors.roots(size)):
            self._right = size
        elif not self.damages and not any(self._right < n <= size for n in self._doubtful):
            detail = "the log does not lead to the root that was signed"
            self.damages.append(at(self._right + 1, detail, last=size))


def _ends(facts: Facts, anchors: Anchors, beyond: int | None) -> Iterator[Damage]:
    """Where the head, the rows, the seals and the checkpoints do not end together."""
    last, sealed = facts.last or 0, anchors.inside.size if anchors.inside else 0
    if facts.first is not None and facts.first < 1:
        yield at(facts.first, "there is an event before the first position")
    if beyond is not None:
        yield at(beyond, "there is an event beyond all others")
    if facts.head != last:
        detail = f"the head is at {facts.head}, the last event at {last}"
        yield at(min(facts.head, last) + 1, detail)
    if max(anchors.outside, default=0) > sealed:
        yield at(sealed + 1, "it was signed, and the database has no checkpoint of it",
                 last=max(anchors.outside))  # fmt: skip
    if (facts.seal_last or 0) != sealed:
        detail = f"the seals end at {facts.seal_last or 0}, the checkpoint at {sealed}"
        yield at(min(facts.seal_last or 0, sealed) + 1, detail)
    if facts.seals and (facts.seal_first != 1 or facts.sealed != facts.seal_last):
        yield at(1, "the seals do not hold every position once", last=facts.seal_last)


def _head_time(facts: Facts, received_us: int) -> Iterator[Damage]:
    """The head's time is that of the newest lot, which may have held no new event."""
    try:
        is_late = micros_of(facts.head_at) >= received_us
    except ValueError:
        is_late = False
    if facts.count and not is_late:
        yield at(facts.last or 0, "the head's time is before that of the last event")


def _node_damages(ours: Sequence[Node], theirs: Sequence[Node]) -> Iterator[Damage]:
    """The first tile root of each level that is not what the leaves lead to."""
    kept = {(node.level, node.number): node.hash for node in theirs}
    told: set[int] = set()
    for node in ours:
        if kept.pop((node.level, node.number), b"") != node.hash and node.level not in told:
            told.add(node.level)
            yield _over(node.level, node.number, "the root kept over it is not what it leads to")
    for level, number in sorted(kept)[:1]:
        yield _over(level, number, "a root is kept that nothing leads to")


def _over(level: int, number: int, detail: str) -> Damage:
    """A damage of everything under one tile root; where that is, even if its place is absurd."""
    bits = TILE_LEVELS * min(max(level, 0), 7)
    first = (number << bits) + 1
    return at(first, detail, last=first + (1 << bits) - 1)
