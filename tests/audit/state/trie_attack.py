"""An attack on the index state: rebuild the tree from the proofs of one's own receipts, and test guesses at others.

The attacker holds proofs of labels he may see and believes to know the place of every label he can name. Two of his
proofs are the same from the root down to where their labels part; what his own labels do not explain on the way, other
labels do. A guessed label parts from his nearest one at a depth of its own: is that one of the unexplained?
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from carag.audit import StateProof

PLACE_BITS = 256


class Known(NamedTuple):
    """A label the attacker was shown."""

    chunk: str
    proof: StateProof


class TrieAttack:
    """What proofs tell of labels that were not shown.

    Parameters
    ----------
    known : iterable of Known
        From the attacker's own receipts, all of one state.
    place : callable
        The place he believes a label to have, of its chunk id and first minute.
    """

    def __init__(self, known: Iterable[Known], place: Callable[[str, int], int]) -> None:
        self._place = place
        own = sorted((place(one.chunk, one.proof.since), one.proof) for one in known)
        self._places = [where for where, _ in own]
        self._ways = [list(zip(proof.path[::-1], proof.sides[::-1], strict=True)) for _, proof in own]

    def score(self, chunk: str, since: int) -> float:
        """Return how much it looks as if a label with this chunk id and first minute were there, 0 to 1."""
        where = self._place(chunk, since)
        right = bisect_left(self._places, where)
        around = [at for at in (right - 1, right) if 0 <= at < len(self._places)]
        nearest = max(around, key=lambda at: _common(self._places[at], where))
        parts = _common(self._places[nearest], where)
        depth, index, end = -1, 0, len(self._ways[nearest])
        for other in {nearest - 1, nearest + 1} & set(range(len(self._places))):
            # Of all his labels the two beside it part from it last.
            branch = _common(self._places[nearest], self._places[other])
            shared = _shared(self._ways[nearest], self._ways[other])
            if branch < parts and branch > depth:
                depth, index = branch, shared + 1
            elif branch > parts:
                end = min(end, shared)
        unexplained = [side for _, side in self._ways[nearest][index:end]]
        return 1.0 if parts in _shallowest(self._places[nearest], depth + 1, unexplained) else 0.0


def _common(one: int, other: int) -> int:
    """Count the bits two places share from the first."""
    return PLACE_BITS - (one ^ other).bit_length()


def _shared(one: Sequence[tuple[bytes, str]], other: Sequence[tuple[bytes, str]]) -> int:
    """Count the siblings two ways share from the root down."""
    same = (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(same, min(len(one), len(other)))


def _shallowest(where: int, depth: int, sides: Sequence[str]) -> set[int]:
    """Give each sibling the first depth that its side allows: a left one stands where the place has a 1."""
    found = set()
    for side in sides:
        while depth < PLACE_BITS and (where >> (PLACE_BITS - 1 - depth) & 1) != (side == "L"):
            depth += 1
        found.add(depth)
        depth += 1
    return found
