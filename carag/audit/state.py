"""The index state a record names: one root hash over every chunk with its text and its policy word.

Leaves are canonical JSON, ``{"c": chunk id, "p": word, "t": SHA-256 of the text}``, sorted by chunk id, in
the same RFC 6962 tree as the log. So one hash in a record fixes which text carried which word, and an
inclusion proof can show it for a single chunk without the rest.
"""

from __future__ import annotations

from carag.audit.canonical import b64url, encode
from carag.audit.merkle import Frontier, leaf_hash
from carag.errors import InvalidArgument

__all__ = ["StateTree", "state_leaf"]


def state_leaf(chunk: str, text_hash: bytes, word: int) -> bytes:
    """Return the entry of one chunk, which is hashed as a leaf."""
    return encode({"c": chunk, "p": word, "t": b64url(text_hash)})


class StateTree:
    """Accumulates chunks into the root hash, in logarithmic memory.

    Examples
    --------
    >>> tree = StateTree()
    >>> tree.append("0000000000-26-000001:00000", bytes(32), 0x0800_0001)
    >>> tree.root().hex()[:16]
    '8adf426f458cac27'
    """

    def __init__(self) -> None:
        self._frontier = Frontier()
        self._last = ""

    def append(self, chunk: str, text_hash: bytes, word: int) -> None:
        """Add the next chunk.

        Raises
        ------
        InvalidArgument
            If chunks do not come in strictly rising order of their ids: the root must not depend on luck.
        """
        if chunk <= self._last:
            raise InvalidArgument(f"chunk {chunk!r} comes after {self._last!r}; want rising ids, each once")
        self._frontier.append(leaf_hash(state_leaf(chunk, text_hash, word)))
        self._last = chunk

    def root(self) -> bytes:
        """Return the root hash so far."""
        return self._frontier.root()
