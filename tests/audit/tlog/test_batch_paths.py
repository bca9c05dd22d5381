"""Paths made from the frontier alone are the paths that a look-up in the whole tree gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit.tlog.batch_paths import BatchPaths
from carag.audit.tlog.merkle import Frontier, inclusion_proof, leaf_hash, verify_inclusion


@given(st.integers(0, 300), st.integers(1, 70))
def test_every_path_of_a_batch_is_the_trees_own(size, count):
    """For any log and any batch on top of it."""
    tree, before = {}, Frontier()
    for n in range(size):
        tree.update({(node.level, node.n): node.hash for node in before.append(leaf_hash(b"%d" % n))})
    after, completed = before.copy(), []
    for n in range(size, size + count):
        completed += after.append(leaf_hash(b"%d" % n))
    tree.update({(node.level, node.n): node.hash for node in completed})
    paths = BatchPaths(before, after, completed)
    for n in range(size, size + count):
        path = paths.path(n)
        assert path == inclusion_proof(lambda level, at: tree[level, at], n, size + count)
        assert verify_inclusion(leaf_hash(b"%d" % n), n, size + count, path, after.root())


def test_it_knows_nothing_of_older_leaves():
    """A leaf from before the batch has siblings that are not at hand: an error, never a wrong path."""
    before = Frontier()
    for n in range(4):
        before.append(leaf_hash(b"%d" % n))
    after = before.copy()
    completed = after.append(leaf_hash(b"4"))
    with pytest.raises(KeyError):
        BatchPaths(before, after, completed).path(0)
