"""Hash, grow, prove and verify the Merkle tree of RFC 6962 over SHA-256.

These are pure functions of hashes and sizes. Functions that make proofs take a :data:`NodeReader`, which returns the
hash of a *perfect* subtree by ``(level, n)``: the subtree over leaves ``n * 2**level`` to ``(n + 1) * 2**level - 1``.
Perfect subtrees never change once complete, so a log stores each of them once and every proof takes a few look-ups.
Section numbers are RFC 9162's, whose tree is the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from carag.errors import InvalidArgument

HASH_SIZE: Final = 32
"""Bytes of a SHA-256 hash."""
EMPTY_ROOT: Final = hashlib.sha256(b"").digest()
"""The root of the tree without leaves (section 2.1.1)."""

NodeReader: TypeAlias = Callable[[int, int], bytes]
"""Returns the hash of the perfect subtree ``(level, n)``."""


class Node(NamedTuple):
    """A perfect subtree and its hash."""

    level: int
    n: int
    hash: bytes


def leaf_hash(entry: bytes) -> bytes:
    """Hash an entry: ``SHA-256(0x00 || entry)`` (section 2.1.1)."""
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash two subtrees: ``SHA-256(0x01 || left || right)`` (section 2.1.1)."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def stored_hash_index(level: int, n: int) -> int:
    """Return the storage index of a perfect subtree: its position in the order of completion.

    This is the numbering of ``golang.org/x/mod/sumdb/tlog``: a leaf, then every subtree that it completes.
    """
    for _ in range(level):
        n = 2 * n + 1
    index = level
    while n:
        index += n
        n >>= 1
    return index


def stored_hash_count(size: int) -> int:
    """Count the perfect subtrees of a tree of ``size`` leaves: ``2 * size`` less one per peak."""
    return 2 * size - size.bit_count()


def peak_positions(size: int) -> list[tuple[int, int]]:
    """List the largest perfect subtrees that cover ``size`` leaves, left to right."""
    peaks, start = [], 0
    for level in reversed(range(size.bit_length())):
        if size >> level & 1:
            peaks.append((level, start >> level))
            start += 1 << level
    return peaks


class Frontier:
    """The right edge of a growing tree: enough to append and to compute the root, in log(size) hashes.

    ``peaks`` has one hash for each of :func:`peak_positions`.
    """

    __slots__ = ("_peaks", "size")

    def __init__(self, size: int = 0, peaks: Iterable[bytes] = ()) -> None:
        self.size = size
        self._peaks = list(peaks)
        if len(self._peaks) != size.bit_count():
            raise InvalidArgument(f"{size} leaves have {size.bit_count()} peaks, got {len(self._peaks)}")

    @property
    def peaks(self) -> tuple[bytes, ...]:
        """Hashes of the perfect subtrees, left to right."""
        return tuple(self._peaks)

    def copy(self) -> Frontier:
        """Return an independent frontier of the same tree."""
        return Frontier(self.size, self._peaks)

    def append(self, leaf: bytes) -> list[Node]:
        """Add a leaf hash; return it and the subtrees it completes, in storage order."""
        n, level, current = self.size, 0, leaf
        completed = [Node(0, n, leaf)]
        while n & 1:
            n, level = n >> 1, level + 1
            current = node_hash(self._peaks.pop(), current)
            completed.append(Node(level, n, current))
        self._peaks.append(current)
        self.size += 1
        return completed

    def root(self) -> bytes:
        """Fold the peaks, right to left, into the root hash."""
        if not self._peaks:
            return EMPTY_ROOT
        root = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            root = node_hash(peak, root)
        return root


def inclusion_proof(node: NodeReader, index: int, size: int) -> list[bytes]:
    """Prove that leaf ``index`` is in the tree of ``size`` leaves (section 2.1.3.1).

    Raises InvalidArgument unless ``0 <= index < size``.
    """
    if not 0 <= index < size:
        raise InvalidArgument(f"want 0 <= index < size, got index {index} and size {size}")
    start, end, path = 0, size, list[bytes]()
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(_subtree_hash(node, middle, end))
            end = middle
        else:
            path.append(_subtree_hash(node, start, middle))
            start = middle
    return path[::-1]


def consistency_proof(node: NodeReader, old: int, new: int) -> list[bytes]:
    """Prove that the tree of ``old`` leaves is a prefix of the tree of ``new`` leaves (section 2.1.4.1).

    Raises InvalidArgument unless ``0 < old <= new``: there is nothing to prove about the empty tree.
    """
    if not 0 < old <= new:
        raise InvalidArgument(f"want 0 < old <= new, got old {old} and new {new}")
    start, end, path = 0, new, list[bytes]()
    while end > old:
        middle = start + _split(end - start)
        if old <= middle:
            path.append(_subtree_hash(node, middle, end))
            end = middle
        else:
            path.append(_subtree_hash(node, start, middle))
            start = middle
    if start:  # otherwise the old tree is a subtree of the new one, and its root is already known
        path.append(_subtree_hash(node, start, end))
    return path[::-1]


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Check an inclusion proof (section 2.1.3.2)."""
    if not 0 <= index < size or not _are_hashes([leaf, root, *proof]):
        return False
    fn, sn, current = index, size - 1, leaf
    for sibling in proof:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            current = node_hash(sibling, current)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            current = node_hash(current, sibling)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and current == root


def verify_consistency(old: int, new: int, proof: Sequence[bytes], old_root: bytes, new_root: bytes) -> bool:
    """Check a consistency proof (section 2.1.4.2)."""
    if not 0 < old <= new or not _are_hashes([old_root, new_root, *proof]):
        return False
    if old == new:
        return not proof and old_root == new_root
    hashes = list(proof)
    if old & (old - 1) == 0:  # a power of two: the old root itself starts the path
        hashes.insert(0, old_root)
    if not hashes:
        return False
    fn, sn = old - 1, new - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    from_old = from_new = hashes[0]
    for sibling in hashes[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            from_old, from_new = node_hash(sibling, from_old), node_hash(sibling, from_new)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            from_new = node_hash(from_new, sibling)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and from_old == old_root and from_new == new_root


def _split(width: int) -> int:
    """Return the largest power of two smaller than ``width`` (``k`` in section 2.1.1)."""
    return 1 << (width - 1).bit_length() - 1


def _subtree_hash(node: NodeReader, start: int, end: int) -> bytes:
    width = end - start
    if width & (width - 1) == 0:
        level = width.bit_length() - 1
        return node(level, start >> level)
    middle = start + _split(width)
    return node_hash(
        node(_split(width).bit_length() - 1, start // _split(width)), _subtree_hash(node, middle, end)
    )


def _are_hashes(values: Iterable[object]) -> bool:
    return all(isinstance(value, bytes) and len(value) == HASH_SIZE for value in values)
