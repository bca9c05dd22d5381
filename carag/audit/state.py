"""The index state a record names: one root hash over every open label, of every chunk with its text.

Leaves are canonical JSON, ``{"c": chunk id, "f": minute from which the word holds, "p": word, "t": SHA-256 of the
text, "u": minute until which it does}``, sorted by chunk id and then by time, in the same RFC 6962 tree as the
log. So one hash in a record fixes which text carried which word when, and an inclusion proof can show it for a
single label without the rest.
"""

from __future__ import annotations

from typing import Final

from carag.audit.canonical import b64url, encode
from carag.audit.merkle import Frontier, leaf_hash
from carag.errors import InvalidArgument

__all__ = ["StateTree", "state_leaf"]


_NEVER: Final = 0xFFFF_FFFF


def state_leaf(chunk: str, text_hash: bytes, word: int, since: int = 0, until: int = _NEVER) -> bytes:
    """Return the entry of one label, which is hashed as a leaf."""
    return encode({"c": chunk, "f": since, "p": word, "t": b64url(text_hash), "u": until})


class StateTree:
    """Accumulates labels into the root hash, in logarithmic memory.

    Examples
    --------
    >>> tree = StateTree()
    >>> tree.append("0000000000-26-000001:00000", bytes(32), 0x0800_0001, 28_000_000)
    >>> tree.root().hex()[:16]
    '7d7074ebf66ed423'
    """

    def __init__(self) -> None:
        self._frontier = Frontier()
        self._last = ("", -1)

    def append(self, chunk: str, text_hash: bytes, word: int, since: int = 0, until: int = _NEVER) -> None:
        """Add the next label.

        Raises
        ------
        InvalidArgument
            If labels do not come in strictly rising order of chunk id and minute: the root must not depend on luck.
        """
        if (chunk, since) <= self._last:
            raise InvalidArgument(
                f"chunk {chunk!r} from {since} comes after {self._last}; want rising ids and minutes, each once"
            )
        self._frontier.append(leaf_hash(state_leaf(chunk, text_hash, word, since, until)))
        self._last = (chunk, since)

    def root(self) -> bytes:
        """Return the root hash so far."""
        return self._frontier.root()
