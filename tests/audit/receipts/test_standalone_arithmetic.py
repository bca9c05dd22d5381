"""The arithmetic of scripts/verify_receipt.py: Ed25519 is that of RFC 8032, and Merkle trees are those of RFC 9162."""

from __future__ import annotations

import hashlib
import itertools

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from carag.audit.tlog import merkle
from tests.audit.receipts.page import script

# -- signatures


def test_the_published_vectors_verify():
    """RFC 8032 section 7.1, tests 1 to 3."""
    vectors = [
        (
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
            "d25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
            "387b2eaeb4302aeeb00d291612bb0c00",
        ),
        (
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            "af82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
            "4a7c15e9716ed28dc027beceea1ec40a",
        ),
    ]
    for public, message, signature in vectors:
        arguments = [bytes.fromhex(part) for part in (public, message, signature)]
        assert script.ed25519_verify(*arguments)
        assert not script.ed25519_verify(arguments[0], arguments[1] + b"x", arguments[2])


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=80), st.data())
def test_it_agrees_with_cryptography(seed, message, data):
    """On honest signatures, and on ones with a flipped bit anywhere."""
    key = Ed25519PrivateKey.from_private_bytes(seed)
    public, signature = key.public_key().public_bytes_raw(), key.sign(message)
    assert script.ed25519_verify(public, message, signature)
    bit = data.draw(st.integers(0, 511))
    flipped = (int.from_bytes(signature, "little") ^ 1 << bit).to_bytes(64, "little")
    assert not script.ed25519_verify(public, message, flipped)


def test_a_signature_has_one_form():
    """S + L would verify as well, were it not refused; so would short, long and empty ones be a crash."""
    key = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
    public, signature = key.public_key().public_bytes_raw(), key.sign(b"m")
    s = int.from_bytes(signature[32:], "little")
    assert not script.ed25519_verify(public, b"m", signature[:32] + (s + script.L).to_bytes(32, "little"))
    for other in (b"", signature[:63], signature + b"\0", bytes(64)):
        assert not script.ed25519_verify(public, b"m", other)
    assert script.point_decode((script.P + 1).to_bytes(32, "little")) is None
    assert script.point_decode(((1 << 255) | 1).to_bytes(32, "little")) is None


# -- trees


def test_its_roots_are_the_definitions():
    """RFC 9162 section 2.1.1, for every size up to 40."""

    def mth(leaves):
        if len(leaves) < 2:
            return leaves[0] if leaves else hashlib.sha256(b"").digest()
        k = 1 << (len(leaves) - 1).bit_length() - 1
        return script.node_hash(mth(leaves[:k]), mth(leaves[k:]))

    leaves = [script.leaf_hash(bytes([n])) for n in range(40)]
    for size in range(41):
        assert script.tree_root(leaves[:size]) == mth(leaves[:size])


def test_paths_hold_where_ours_hold():
    """Every small proof, whole, cut and lengthened, under every index and size that somebody might claim for it."""
    leaves = [script.leaf_hash(bytes([n])) for n in range(9)]
    node = lambda level, n: script.tree_root(leaves[n << level : (n + 1) << level])  # noqa: E731
    claims = list(itertools.product(range(-1, 11), range(11)))
    held = 0
    for size in range(1, 10):
        root = script.tree_root(leaves[:size])
        for index in range(size):
            path = merkle.inclusion_proof(node, index, size)
            old_root = script.tree_root(leaves[: index + 1])
            steps = merkle.consistency_proof(node, index + 1, size)
            for (one, other), change in itertools.product(
                claims, (lambda p: p, lambda p: p[:-1], lambda p: [*p, p[0] if p else leaves[0]])
            ):
                arguments = (leaves[index], one, other, change(path), root)
                holds = merkle.verify_inclusion(*arguments)
                held += holds
                assert script.inclusion_holds(*arguments) == holds
                arguments = (one, other, change(steps), old_root, root)
                holds = merkle.verify_consistency(*arguments)
                held += holds
                assert script.consistency_holds(*arguments) == holds
    assert held > 90


def test_every_honest_path_holds():
    """Of every tree of up to 34 leaves, wherever its right edge runs: every inclusion, and every extension."""
    leaves = [script.leaf_hash(bytes([n])) for n in range(34)]
    roots = [script.tree_root(leaves[:size]) for size in range(35)]
    node = lambda level, n: script.tree_root(leaves[n << level : (n + 1) << level])  # noqa: E731
    for size in range(1, 35):
        for index in range(size):
            path = merkle.inclusion_proof(node, index, size)
            assert script.inclusion_holds(leaves[index], index, size, path, roots[size])
            path = merkle.consistency_proof(node, index + 1, size)
            assert script.consistency_holds(index + 1, size, path, roots[index + 1], roots[size])
