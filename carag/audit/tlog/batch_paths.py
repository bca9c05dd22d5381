"""Compute inclusion proofs of newly added leaves from the tree's frontier before and after, without look-ups.

A leaf's siblings are perfect subtrees inside its own peak, then all peaks to the right folded into one hash, then the
peaks to the left. The subtrees inside its peak are nodes that the batch completed, or earlier peaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.audit.tlog.merkle import node_hash, peak_positions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from carag.audit.tlog.merkle import Frontier, Node


class BatchPaths:
    """Inclusion paths for the leaves between two sizes of a tree; ``completed`` are the nodes that they completed."""

    __slots__ = ("_bounds", "_known", "_peaks", "_suffixes")

    def __init__(self, before: Frontier, after: Frontier, completed: Iterable[Node]) -> None:
        self._known = dict(zip(peak_positions(before.size), before.peaks, strict=True))
        self._known.update(((level, n), value) for level, n, value in completed)
        self._peaks = after.peaks
        self._bounds = [(level, (n + 1) << level) for level, n in peak_positions(after.size)]
        suffixes = list(self._peaks[-1:])
        for peak in self._peaks[-2:0:-1]:
            suffixes.append(node_hash(peak, suffixes[-1]))
        self._suffixes = suffixes[::-1]  # folded peaks, from the second on
        if len(self._peaks) < 2:
            self._suffixes = []

    def path(self, index: int) -> list[bytes]:
        """Return the inclusion proof of a leaf added between the two sizes, its sibling first."""
        place = next(place for place, (_, end) in enumerate(self._bounds) if index < end)
        known = self._known
        path = [known[level, (index >> level) ^ 1] for level in range(self._bounds[place][0])]
        path += self._suffixes[place : place + 1]
        path += self._peaks[:place][::-1]
        return path
