"""The tree is RFC 6962's: the recursive definitions are the oracle, pymerkle a second one."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit.tlog.merkle import (
    EMPTY_ROOT,
    Frontier,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    node_hash,
    peak_positions,
    stored_hash_count,
    stored_hash_index,
    verify_consistency,
    verify_inclusion,
)
from carag.errors import InvalidArgument

LEAVES = [leaf_hash(f"entry {n}".encode()) for n in range(300)]


def split(n):
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def mth(hashes):
    """RFC 6962 section 2.1."""
    if not hashes:
        return hashlib.sha256(b"").digest()
    if len(hashes) == 1:
        return hashes[0]
    k = split(len(hashes))
    return node_hash(mth(hashes[:k]), mth(hashes[k:]))


def path(m, hashes):
    """RFC 6962 section 2.1.1."""
    if len(hashes) == 1:
        return []
    k = split(len(hashes))
    return [*path(m, hashes[:k]), mth(hashes[k:])] if m < k else [*path(m - k, hashes[k:]), mth(hashes[:k])]


def subproof(m, hashes, known):
    """RFC 6962 section 2.1.2."""
    if m == len(hashes):
        return [] if known else [mth(hashes)]
    k = split(len(hashes))
    if m <= k:
        return [*subproof(m, hashes[:k], known), mth(hashes[k:])]
    return [*subproof(m - k, hashes[k:], False), mth(hashes[:k])]


def node(level, n):
    return mth(LEAVES[n << level : (n + 1) << level])


def flip(data):
    return bytes([data[0] ^ 1]) + data[1:]


def test_empty_root_is_the_published_one():
    """The root of no leaves is SHA-256 of nothing."""
    assert EMPTY_ROOT.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert Frontier().root() == EMPTY_ROOT


def test_leaf_and_node_hashes_are_domain_separated():
    """A leaf is hashed after 0x00, a node after 0x01, so neither passes for the other."""
    left, right = LEAVES[:2]
    assert leaf_hash(left + right) == hashlib.sha256(b"\0" + left + right).digest()
    assert node_hash(left, right) == hashlib.sha256(b"\1" + left + right).digest()


def test_growing_gives_the_recursive_root_at_every_size():
    """The frontier's root is MTH at every size, and it can be rebuilt from the peaks alone."""
    frontier = Frontier()
    for size in range(130):
        assert mth(LEAVES[:size]) == frontier.root()
        peaks = [node(level, n) for level, n in peak_positions(size)]
        assert frontier.peaks == tuple(peaks)
        assert Frontier(size, peaks).root() == frontier.root()
        frontier.append(LEAVES[size])


def test_nodes_are_completed_in_storage_order():
    """Appending yields every perfect subtree exactly once, at consecutive storage indices."""
    frontier, indices = Frontier(), []
    for leaf in LEAVES[:130]:
        for level, n, value in frontier.append(leaf):
            assert node(level, n) == value
            indices.append(stored_hash_index(level, n))
        assert stored_hash_count(frontier.size) == len(indices)
    assert list(range(len(indices))) == indices


def test_copy_is_independent():
    """Appending to a copy leaves the original frontier as it was."""
    frontier = Frontier(3, [node(1, 0), node(0, 2)])
    frontier.copy().append(LEAVES[3])
    assert (frontier.size, frontier.root()) == (3, mth(LEAVES[:3]))


def test_frontier_refuses_the_wrong_number_of_peaks():
    """A frontier of three leaves has two peaks."""
    with pytest.raises(InvalidArgument, match="2 peaks"):
        Frontier(3, [LEAVES[0]])


def test_proofs_equal_the_definition_for_all_small_sizes():
    """Inclusion and consistency proofs are the RFC's, hash for hash, and verify."""
    for size in range(1, 34):
        root = mth(LEAVES[:size])
        for m in range(size):
            proof = inclusion_proof(node, m, size)
            assert path(m, LEAVES[:size]) == proof
            assert verify_inclusion(LEAVES[m], m, size, proof, root)
            proof = consistency_proof(node, m + 1, size)
            assert subproof(m + 1, LEAVES[:size], True) == proof
            assert verify_consistency(m + 1, size, proof, mth(LEAVES[: m + 1]), root)


@given(st.integers(1, 300), st.data())
def test_prove_then_verify(size, data):
    """What is proved verifies, for any index and any older size."""
    m = data.draw(st.integers(0, size - 1))
    root = mth(LEAVES[:size])
    assert verify_inclusion(LEAVES[m], m, size, inclusion_proof(node, m, size), root)
    old_root = mth(LEAVES[: m + 1])
    assert verify_consistency(m + 1, size, consistency_proof(node, m + 1, size), old_root, root)


def test_the_path_of_the_newest_leaf_is_the_peaks_before_it():
    """A log can prove the record it just wrote from its frontier alone."""
    for size in range(1, 130):
        before = [node(level, n) for level, n in peak_positions(size - 1)]
        assert inclusion_proof(node, size - 1, size) == before[::-1]


def test_pymerkle_agrees_on_roots_and_inclusion():
    """An independent implementation has the same roots and the same inclusion paths."""
    pymerkle = pytest.importorskip("pymerkle", reason="pymerkle is the optional second oracle")
    tree = pymerkle.InmemoryTree(algorithm="sha256")
    assert tree.get_root() == EMPTY_ROOT
    for size in range(1, 66):
        tree.append_entry(f"entry {size - 1}".encode())
        assert mth(LEAVES[:size]) == tree.get_root()
        for index in range(0, size, 3):
            assert tree.prove_inclusion(index + 1, size).path[1:] == inclusion_proof(node, index, size)


INCLUSION_MUTATIONS = {
    "altered leaf": lambda leaf, i, proof, root: (flip(leaf), i, proof, root),
    "altered root": lambda leaf, i, proof, root: (leaf, i, proof, flip(root)),
    "altered sibling": lambda leaf, i, proof, root: (leaf, i, [flip(proof[0]), *proof[1:]], root),
    "altered last hash": lambda leaf, i, proof, root: (leaf, i, [*proof[:-1], flip(proof[-1])], root),
    "removed first hash": lambda leaf, i, proof, root: (leaf, i, proof[1:], root),
    "removed last hash": lambda leaf, i, proof, root: (leaf, i, proof[:-1], root),
    "added hash": lambda leaf, i, proof, root: (leaf, i, [*proof, proof[-1]], root),
    "prefixed hash": lambda leaf, i, proof, root: (leaf, i, [leaf, *proof], root),
    "trailing root": lambda leaf, i, proof, root: (leaf, i, [*proof, root], root),
    "swapped hashes": lambda leaf, i, proof, root: (leaf, i, [*proof[1::-1], *proof[2:]], root),
    "index + 1": lambda leaf, i, proof, root: (leaf, i + 1, proof, root),
    "index - 1": lambda leaf, i, proof, root: (leaf, i - 1, proof, root),
    "31-byte hash": lambda leaf, i, proof, root: (leaf, i, [proof[0][:31], *proof[1:]], root),
    "33-byte hash": lambda leaf, i, proof, root: (leaf, i, [proof[0] + b"\0", *proof[1:]], root),
    "text for a hash": lambda leaf, i, proof, root: (leaf, i, ["a" * 32, *proof[1:]], root),
}


@pytest.mark.parametrize("mutation", INCLUSION_MUTATIONS.values(), ids=INCLUSION_MUTATIONS)
def test_a_mutated_inclusion_proof_fails(mutation):
    """No altered inclusion proof verifies, for any leaf of any tree up to 20 leaves."""
    for size in range(3, 21):
        root = mth(LEAVES[:size])
        for index in range(size):
            proof = inclusion_proof(node, index, size)
            if len(proof) >= 2:
                leaf, i, mutated, top = mutation(LEAVES[index], index, proof, root)
                assert not verify_inclusion(leaf, i, size, mutated, top)


def test_the_size_is_bound_by_the_signature_not_by_the_path():
    """A path also fits some other sizes, which is why a proof is only as good as its signed checkpoint."""
    proof, root = inclusion_proof(node, 0, 3), mth(LEAVES[:3])
    assert verify_inclusion(LEAVES[0], 0, 4, proof, root)
    assert not verify_inclusion(LEAVES[0], 0, 2, proof, root)


CONSISTENCY_MUTATIONS = {
    "altered first hash": lambda m, proof, old, new: (m, [flip(proof[0]), *proof[1:]], old, new),
    "altered last hash": lambda m, proof, old, new: (m, [*proof[:-1], flip(proof[-1])], old, new),
    "removed first hash": lambda m, proof, old, new: (m, proof[1:], old, new),
    "removed last hash": lambda m, proof, old, new: (m, proof[:-1], old, new),
    "added hash": lambda m, proof, old, new: (m, [*proof, proof[-1]], old, new),
    "trailing root": lambda m, proof, old, new: (m, [*proof, new], old, new),
    "swapped hashes": lambda m, proof, old, new: (m, [*proof[1::-1], *proof[2:]], old, new),
    "swapped roots": lambda m, proof, old, new: (m, proof, new, old),
    "altered old root": lambda m, proof, old, new: (m, proof, flip(old), new),
    "altered new root": lambda m, proof, old, new: (m, proof, old, flip(new)),
    "old size + 1": lambda m, proof, old, new: (m + 1, proof, old, new),
    "old size - 1": lambda m, proof, old, new: (m - 1, proof, old, new),
    "31-byte hash": lambda m, proof, old, new: (m, [proof[0][:31], *proof[1:]], old, new),
    "33-byte hash": lambda m, proof, old, new: (m, [proof[0] + b"\0", *proof[1:]], old, new),
    "both roots put in the path": lambda m, proof, old, new: (m, [new, old], old, new),
}


@pytest.mark.parametrize("mutation", CONSISTENCY_MUTATIONS.values(), ids=CONSISTENCY_MUTATIONS)
def test_a_mutated_consistency_proof_fails(mutation):
    """No altered consistency proof verifies, for any two sizes up to 20 leaves."""
    for size in range(3, 21):
        new_root = mth(LEAVES[:size])
        for old in range(1, size):
            proof = consistency_proof(node, old, size)
            if len(proof) >= 2:
                m, mutated, old_root, top = mutation(old, proof, mth(LEAVES[:old]), new_root)
                assert not verify_consistency(m, size, mutated, old_root, top)


def test_equal_sizes_need_equal_roots_and_no_proof():
    """A tree is consistent with itself, and with nothing else of its size."""
    root = mth(LEAVES[:5])
    assert verify_consistency(5, 5, [], root, root)
    assert not verify_consistency(5, 5, [], root, flip(root))
    assert not verify_consistency(5, 5, [root], root, root)


@pytest.mark.parametrize(("index", "size"), [(0, 0), (3, 3), (-1, 3), (5, 2)])
def test_there_is_no_proof_outside_the_tree(index, size):
    """Asking for a leaf that is not there is the caller's mistake, and no such proof verifies."""
    with pytest.raises(InvalidArgument):
        inclusion_proof(node, index, size)
    assert not verify_inclusion(LEAVES[0], index, size, [], LEAVES[0])


@pytest.mark.parametrize(("old", "new"), [(0, 3), (4, 3), (-1, 2)])
def test_there_is_no_consistency_from_nothing_or_backwards(old, new):
    """The empty tree is a prefix of everything and a larger one of none, so neither is proved."""
    with pytest.raises(InvalidArgument):
        consistency_proof(node, old, new)
    assert not verify_consistency(old, new, [], LEAVES[0], LEAVES[0])
