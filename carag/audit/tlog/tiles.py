"""Name and read the tiles of a log's tree (`c2sp.org/tlog-tiles`): 256 hashes each, from which any proof can be made.

A tile ``<L>/<N>`` holds the hashes of the perfect subtrees ``(8 * L, 256 * N)`` to ``(8 * L, 256 * N + 255)``. It never
changes once full; before that it is served as ``<N>.p/<W>``, with the first ``W`` of its hashes. A bundle
``entries/<N>`` holds the records themselves.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.audit.tlog.merkle import NodeReader


TILE_WIDTH: Final = 256
"""Hashes of a full tile."""
_HEIGHT: Final = 8
"""Levels of the tree in a tile."""
_MAX_LEVEL: Final = 63
_ENTRIES: Final = -1
"""Stands in place of a level: the records whose hashes are in the tiles of level 0."""
_PATH: Final = re.compile(r"(entries|0|[1-9]\d?)/((?:x\d{3}/)*\d{3})(?:\.p/([1-9]\d{0,2}))?", re.ASCII)
"""Level, index in groups of three digits, width; each number has one spelling."""


class Tile(NamedTuple):
    """One tile of the tree."""

    level: int
    n: int
    width: int = TILE_WIDTH

    @classmethod
    def parse(cls, path: str) -> Self | None:
        """Read a path as the specification spells it; None for any other path.

        Examples
        --------
        >>> Tile.parse("0/x001/x234/067"), Tile.parse("1/000.p/5"), Tile.parse("0/x000/001")
        (Tile(level=0, n=1234067, width=256), Tile(level=1, n=0, width=5), None)
        """
        if (found := _PATH.fullmatch(path)) is None:
            return None
        level = _ENTRIES if found[1] == "entries" else int(found[1])
        if level > _MAX_LEVEL:
            return None
        groups = found[2].replace("x", "").split("/")
        if len(groups) > 6 or (len(groups) > 1 and groups[0] == "000"):
            return None
        width = TILE_WIDTH if found[3] is None else int(found[3])
        if found[3] is not None and width >= TILE_WIDTH:
            return None
        return cls(level, int("".join(groups)), width)

    @property
    def is_entries(self) -> bool:
        """Whether it is a bundle of records, not of hashes."""
        return self.level == _ENTRIES

    def is_in(self, size: int) -> bool:
        """Tell whether a log of ``size`` records has every hash or record of the tile."""
        return TILE_WIDTH * self.n + self.width <= size >> (_HEIGHT * max(self.level, 0))

    def read(self, node: NodeReader) -> bytes:
        """Return the hashes, one after the other."""
        first = TILE_WIDTH * self.n
        return b"".join(node(_HEIGHT * self.level, first + place) for place in range(self.width))

    def bundle(self, body: Callable[[int], bytes]) -> bytes:
        """Return the records, each after its length in two bytes, big-endian."""
        first = TILE_WIDTH * self.n
        return b"".join(
            len(one).to_bytes(2, "big") + one for one in map(body, range(first, first + self.width))
        )
