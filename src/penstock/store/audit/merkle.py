"""Grow a Merkle tree over the log, and prove with it what the log holds (RFC 9162, section 2).

    leaf(entry) = SHA-256(0x00 ‖ entry)         node(left, right) = SHA-256(0x01 ‖ left ‖ right)

    Frontier    the roots of the full subtrees of a tree: all that is needed to let it grow
    inclusion   that one leaf is in a tree         consistency   that a tree is the start of another

Proofs read the tree through `Tiles`: 256 hashes at a time, level 0 the leaves, level 1 the roots
over 256 leaves each, and so on. Pure: who keeps the tiles is somebody else's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple, TypeAlias

from penstock.base.errors import AuditDamaged

TILE = 256  # hashes in a full tile
TILE_LEVELS = 8  # levels of the tree between a tile and the one above it
HASH = 32
EMPTY = sha256(b"").digest()  # the root of a tree without leaves

Tiles: TypeAlias = Callable[[int, int], bytes]  # level and index of a tile -> its hashes, joined


class Node(NamedTuple):
    """The root of one full tile: `level` counts tiles, so level 1 stands over 256 leaves."""

    level: int
    number: int
    hash: bytes


def leaf(entry: bytes) -> bytes:
    """The hash of one entry."""
    return sha256(b"\x00" + entry).digest()


def node(left: bytes, right: bytes) -> bytes:
    """The hash over two subtrees."""
    return sha256(b"\x01" + left + right).digest()


def perfect_root(hashes: bytes) -> bytes:
    """The root over a power of two of joined hashes."""
    width = len(hashes) // HASH
    level = [hashes[at : at + HASH] for at in range(0, len(hashes), HASH)]
    while width > 1:
        level = [sha256(b"\x01" + level[at] + level[at + 1]).digest() for at in range(0, width, 2)]
        width //= 2
    return level[0]


class Frontier:
    """The full subtrees that make up a tree of `size` leaves, the largest first."""

    __slots__ = ("_stack", "size")

    def __init__(self, size: int = 0, hashes: Sequence[bytes] = ()) -> None:
        """The frontier of a tree of `size` leaves, whose full subtrees have these roots."""
        levels = [bit for bit in reversed(range(size.bit_length())) if size >> bit & 1]
        self.size = size
        self._stack = list(zip(levels, hashes, strict=True))

    def add(self, found: bytes, level: int = 0) -> Iterator[Node]:
        """Let the tree grow by one full subtree; the tiles that this fills come back.

        The tree's size must be a multiple of the subtree's.
        """
        self.size += 1 << level
        while self._stack and self._stack[-1][0] == level:
            found = node(self._stack.pop()[1], found)
            level += 1
            if level % TILE_LEVELS == 0:
                yield Node(level // TILE_LEVELS, (self.size >> level) - 1, found)
        self._stack.append((level, found))

    def grow(self, leaves: bytes) -> list[Node]:
        """Let the tree grow by joined leaf hashes; the tiles that this fills, in order."""
        return [
            filled
            for at in range(0, len(leaves), HASH)
            for filled in self.add(leaves[at : at + HASH])
        ]

    def copy(self) -> Frontier:
        """The same tree, to let it grow without touching this one."""
        twin = Frontier()
        twin.size, twin._stack = self.size, self._stack.copy()
        return twin

    def root(self) -> bytes:
        """The root of the tree as it is now."""
        if not self._stack:
            return EMPTY
        _, found = self._stack[-1]
        for _, left in reversed(self._stack[:-1]):
            found = node(left, found)
        return found


def frontier_of(size: int, tiles: Tiles) -> Frontier:
    """The frontier of a tree that is kept in tiles."""
    hashes: list[bytes] = []
    start = 0
    for bit in reversed(range(size.bit_length())):
        if size >> bit & 1:
            hashes.append(_subtree(bit, start >> bit, tiles))
            start += 1 << bit
    return Frontier(size, hashes)


def inclusion_path(index: int, size: int, tiles: Tiles) -> list[bytes]:
    """The hashes that lead from leaf `index` to the root of the tree of that size."""
    if not 0 <= index < size:
        raise ValueError(f"expected a leaf below {size}, found {index}")
    path: list[bytes] = []
    low, high = 0, size
    while high - low > 1:
        middle = low + _split(high - low)
        if index < middle:
            path.append(_root(middle, high, tiles))
            high = middle
        else:
            path.append(_root(low, middle, tiles))
            low = middle
    return path[::-1]


def consistency_path(before: int, size: int, tiles: Tiles) -> list[bytes]:
    """The hashes that show the tree of size `before` to be the start of the tree of that size."""
    if not 0 < before <= size:
        raise ValueError(f"expected a size from 1 to {size}, found {before}")
    path: list[bytes] = []
    low, high, whole = 0, size, True
    while before != high:
        middle = low + _split(high - low)
        if before <= middle:
            path.append(_root(middle, high, tiles))
            high = middle
        else:
            path.append(_root(low, middle, tiles))
            low, whole = middle, False
    if not whole:
        path.append(_root(low, high, tiles))
    return path[::-1]


def root_by_inclusion(found: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root that a proof leads to, or None when it has not the form of one."""
    if not 0 <= index < size:
        return None
    at, last = index, size - 1
    for step in path:
        if last == 0:
            return None
        if at & 1 or at == last:
            found = node(step, found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = node(found, step)
        at, last = at >> 1, last >> 1
    return found if last == 0 else None


def is_consistent(
    before: int, root_before: bytes, size: int, root: bytes, path: Sequence[bytes]
) -> bool:
    """Whether the proof shows that the tree of size `before` became the tree of that size."""
    if not 0 < before <= size:
        return False
    if before == size:
        return not path and root_before == root
    steps = [root_before, *path] if before & (before - 1) == 0 else list(path)
    if not steps:
        return False
    at, last = before - 1, size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    old = new = steps[0]
    for step in steps[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            old, new = node(step, old), node(step, new)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            new = node(new, step)
        at, last = at >> 1, last >> 1
    return old == root_before and new == root and last == 0


def _split(width: int) -> int:
    """The largest power of two below `width`."""
    return 1 << (width - 1).bit_length() - 1


def _root(low: int, high: int, tiles: Tiles) -> bytes:
    """The root over leaves from `low` on and before `high`; `low` is a multiple of what follows."""
    width = high - low
    if width & (width - 1) == 0:
        bit = width.bit_length() - 1
        return _subtree(bit, low >> bit, tiles)
    middle = low + _split(width)
    return node(_root(low, middle, tiles), _root(middle, high, tiles))


def _subtree(bit: int, index: int, tiles: Tiles) -> bytes:
    """The root of the full subtree of 2^bit leaves at `index`."""
    level, within = divmod(bit, TILE_LEVELS)
    first = index << within
    hashes = tiles(level, first // TILE)
    start = first % TILE * HASH
    hashes = hashes[start : start + (HASH << within)]
    if len(hashes) != HASH << within:
        raise AuditDamaged(
            f"expected {1 << within} hashes at level {level} from {first}, found less"
        )
    return perfect_root(hashes)
