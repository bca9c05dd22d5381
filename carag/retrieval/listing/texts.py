"""Join the passages of a document into the texts that they were cut from, as far as the session may use them.

Where a passage that it may not use lies between two others, the text ends: nothing shows what is missing.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from carag.store.values import StoredChunk


_GAP: Final = 200
"""The most characters between two passages that are joined: the chunker leaves out only white space."""


@dataclass(slots=True)
class Run:
    """A text without gaps, and the passages that it is from."""

    text: str = ""
    starts: list[int] = field(default_factory=list)
    """For each passage, where its own part of the text begins, after what it shares with the passage before."""
    chunks: list[StoredChunk] = field(default_factory=list)

    def pieces(self, start: int, end: int) -> list[tuple[StoredChunk, str]]:
        """Return the passages of a span of the text, each with its part."""
        found = []
        for at in range(max(bisect_right(self.starts, start) - 1, 0), len(self.starts)):
            if self.starts[at] >= end:
                break
            last = self.starts[at + 1] if at + 1 < len(self.starts) else len(self.text)
            found.append((self.chunks[at], self.text[max(start, self.starts[at]) : min(end, last)]))
        return found


def runs_of(chunks: Iterable[StoredChunk]) -> list[Run]:
    """Join the passages of one document, given in its order."""
    runs: list[Run] = []
    for one in chunks:
        last = runs[-1].chunks[-1] if runs else None
        if last is None or not last.start <= one.start <= last.end + _GAP or not _joins(last, one):
            runs.append(Run())
        run = runs[-1]
        if run.chunks and last is not None:
            shared = max(last.end - one.start, 0)
            run.text += "\n" * max(one.start - last.end, 0)
        else:
            shared = 0
        run.starts.append(len(run.text))
        run.text += one.text[shared:]
        run.chunks.append(one)
    return runs


def _joins(last: StoredChunk, one: StoredChunk) -> bool:
    """Tell whether a passage continues another: what both have is the same, and no other is between them."""
    shared = last.end - one.start
    return one.number == last.number + 1 and (shared <= 0 or last.text.endswith(one.text[:shared]))
