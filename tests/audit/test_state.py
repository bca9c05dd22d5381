"""The index state's root: the same for the same chunks, another for any other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit import StateTree, state_leaf
from carag.audit.merkle import inclusion_proof, leaf_hash, node_hash, verify_inclusion
from carag.errors import InvalidArgument

CHUNKS = st.dictionaries(
    st.text("abc012:#-", min_size=1, max_size=12),
    st.tuples(st.binary(min_size=32, max_size=32), *[st.integers(0, 2**32 - 1)] * 3),
    min_size=1,
    max_size=20,
)


def state(chunks):
    tree = StateTree()
    for chunk in sorted(chunks):
        tree.append(chunk, *chunks[chunk])
    return tree.root()


@given(CHUNKS, st.data())
def test_the_root_proves_each_chunk_and_its_word(chunks, data):
    """With the root alone one can check that a chunk carried a word, and that it carried no other."""
    leaves = [leaf_hash(state_leaf(chunk, *chunks[chunk])) for chunk in sorted(chunks)]

    def node(level, n):
        return leaves[n] if level == 0 else node_hash(node(level - 1, 2 * n), node(level - 1, 2 * n + 1))

    index = data.draw(st.integers(0, len(leaves) - 1))
    chunk = sorted(chunks)[index]
    text, word, since, until = chunks[chunk]
    proof = inclusion_proof(node, index, len(leaves))
    assert verify_inclusion(
        leaf_hash(state_leaf(chunk, text, word, since, until)), index, len(leaves), proof, state(chunks)
    )
    other = leaf_hash(state_leaf(chunk, text, word ^ 1, since, until))
    assert not verify_inclusion(other, index, len(leaves), proof, state(chunks))


@given(CHUNKS)
def test_any_change_moves_the_root(chunks):
    """A word, a minute, a text, a chunk more or less: each is another state."""
    chunk, (text, word, since, until) = next(iter(chunks.items()))
    others = [
        {**chunks, chunk: (text, word ^ 1 << 30, since, until)},
        {**chunks, chunk: (text, word, since ^ 1, until)},
        {**chunks, chunk: (text, word, since, until ^ 1)},
        {**chunks, chunk: (bytes([text[0] ^ 1]) + text[1:], word, since, until)},
        {**chunks, "zz": (text, word, since, until)},
        {name: value for name, value in chunks.items() if name != chunk},
    ]
    assert state(chunks) not in [state(other) for other in others]


@pytest.mark.parametrize("second", ["a", "b"])
def test_chunks_come_in_order_and_once(second):
    """The root depends on the chunks alone, so another order or a repetition is refused."""
    tree = StateTree()
    tree.append("b", bytes(32), 1)
    with pytest.raises(InvalidArgument, match="rising ids"):
        tree.append(second, bytes(32), 1)
