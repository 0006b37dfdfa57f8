"""The tree is that of RFC 9162: any steps lead to one root, and a proof holds for its leaf only."""

from __future__ import annotations

import random
from hashlib import sha256

import pytest

from penstock.base.errors import AuditDamaged
from penstock.store.audit.merkle import (
    EMPTY,
    TILE,
    Frontier,
    Tiles,
    consistency_path,
    frontier_of,
    inclusion_path,
    is_consistent,
    leaf,
    node,
    perfect_root,
    root_by_inclusion,
)

RNG = random.Random(20260301)
LEAVES = [RNG.randbytes(32) for _ in range(66_000)]
SIZES = (1, 2, 3, 7, 8, 255, 256, 257, 1_000, 65_535, 65_536, 65_537, 66_000)


def root_by_definition(leaves: list[bytes]) -> bytes:
    """RFC 9162, section 2.1.1, word by word."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return node(root_by_definition(leaves[:split]), root_by_definition(leaves[split:]))


def kept(size: int) -> tuple[Frontier, Tiles]:
    """A tree of the first `size` leaves, and its tiles."""
    tree = Frontier()
    nodes = {(n.level, n.number): n.hash for n in tree.grow(b"".join(LEAVES[:size]))}

    def tile(level: int, index: int) -> bytes:
        first = index * TILE
        if level == 0:
            return b"".join(LEAVES[:size][first : first + TILE])
        return b"".join(nodes.get((level, first + n), b"") for n in range(TILE))

    return tree, tile


def test_known_vectors_of_certificate_transparency() -> None:
    entries = [b"", b"\x00", b"\x10", b"\x20\x21", b"\x30\x31", b"\x40\x41\x42\x43"]
    entries += [
        bytes.fromhex("5051525354555657"),
        bytes.fromhex("606162636465666768696a6b6c6d6e6f"),
    ]
    tree = Frontier()

    roots = []
    for each in entries:
        tree.grow(leaf(each))
        roots.append(tree.root().hex())

    assert roots[0] == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert roots[1] == "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"
    assert roots[7] == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"


@pytest.mark.parametrize("size", SIZES)
def test_the_root_is_the_one_of_the_definition(size: int) -> None:
    assert kept(size)[0].root() == root_by_definition(LEAVES[:size])


def test_an_empty_tree_has_the_root_of_nothing() -> None:
    assert Frontier().root() == EMPTY == root_by_definition([])


@pytest.mark.parametrize("size", SIZES)
def test_a_tree_is_taken_up_again_from_its_tiles(size: int) -> None:
    _, tiles = kept(size)

    again = frontier_of(size, tiles)
    again.grow(b"".join(LEAVES[size : size + 300]))

    assert again.root() == root_by_definition(LEAVES[: size + 300][: again.size])


def test_any_steps_lead_to_the_same_root_and_the_same_tiles() -> None:
    rng = random.Random(5)
    tree, nodes, at = Frontier(), [], 0
    while at < 3_000:
        step = rng.randint(1, 700)
        nodes += tree.grow(b"".join(LEAVES[at : at + step]))
        at += step

    whole = Frontier()
    assert nodes == whole.grow(b"".join(LEAVES[:at]))
    assert tree.root() == whole.root()


def test_a_copy_grows_without_its_origin() -> None:
    tree = Frontier()
    tree.grow(b"".join(LEAVES[:5]))
    root = tree.root()

    tree.copy().grow(b"".join(LEAVES[5:9]))

    assert (tree.size, tree.root()) == (5, root)


def test_a_full_subtree_counts_as_its_leaves() -> None:
    tree = Frontier()
    assert list(tree.add(perfect_root(b"".join(LEAVES[:256])), 8)) == []
    tree.grow(b"".join(LEAVES[256:300]))

    assert tree.root() == root_by_definition(LEAVES[:300])


@pytest.mark.parametrize("size", SIZES)
def test_every_leaf_has_a_proof_that_no_other_leaf_has(size: int) -> None:
    tree, tiles = kept(size)
    for index in {0, size - 1, size // 2, *RNG.sample(range(size), min(size, 12))}:
        path = inclusion_path(index, size, tiles)

        assert root_by_inclusion(LEAVES[index], index, size, path) == tree.root()
        assert len(path) <= size.bit_length()
        assert root_by_inclusion(bytes(32), index, size, path) != tree.root()
        assert root_by_inclusion(LEAVES[index], index + 1, size, path) != tree.root()
        assert root_by_inclusion(LEAVES[index], index, size, [*path, bytes(32)]) is None
        if path:
            assert root_by_inclusion(LEAVES[index], index, size, path[:-1]) != tree.root()


@pytest.mark.parametrize("size", SIZES)
def test_every_earlier_tree_is_shown_to_be_the_start_of_the_later_one(size: int) -> None:
    tree, tiles = kept(size)
    for before in {1, size, size // 2 or 1, *RNG.sample(range(1, size + 1), min(size, 6))}:
        path = consistency_path(before, size, tiles)
        root_before = root_by_definition(LEAVES[:before])

        assert is_consistent(before, root_before, size, tree.root(), path)
        assert not is_consistent(before, bytes(32), size, tree.root(), path)
        assert not is_consistent(before, root_before, size, bytes(32), path)
        assert not is_consistent(before, root_before, size, tree.root(), [*path, bytes(32)])


@pytest.mark.parametrize(("index", "size"), [(-1, 4), (4, 4), (0, 0)])
def test_a_leaf_outside_the_tree_has_no_proof(index: int, size: int) -> None:
    with pytest.raises(ValueError, match="expected a leaf"):
        inclusion_path(index, size, kept(4)[1])
    assert root_by_inclusion(bytes(32), index, size, []) is None


@pytest.mark.parametrize("before", [0, 5])
def test_a_size_outside_the_tree_has_no_proof(before: int) -> None:
    with pytest.raises(ValueError, match="expected a size"):
        consistency_path(before, 4, kept(4)[1])
    assert not is_consistent(before, bytes(32), 4, bytes(32), [])


def test_a_tree_whose_tiles_are_gone_is_damaged() -> None:
    with pytest.raises(AuditDamaged, match="expected 4 hashes"):
        frontier_of(4, lambda _level, _index: bytes(96))
