"""Define the results and statistics of a search by words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from carag.index._core import ffi

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from carag.index._core import CData


class AdmissibleChunks(NamedTuple):
    """Admissible chunks, ascending by the key of the label that admits each."""

    keys: NDArray[np.int64]
    """(n,) keys of the labels; if a chunk has several, the smallest."""
    chunks: NDArray[np.int64]
    documents: NDArray[np.int64]


class TermCounts(NamedTuple):
    """Exact counts over the admissible chunks."""

    chunks: int
    length: int
    """The chunks' total number of tokens, with headings counted in each chunk."""
    frequencies: tuple[int, ...]
    """For each term asked for, in the order given, the number of chunks that contain it."""


@dataclass(frozen=True, slots=True)
class TextStats:
    """What a search by words counted, and what it read.

    The first three numbers depend on admissible chunks alone. The others say how much was read and vary with hidden
    text that contains the terms: they are for the operator of the index, not for the person who searches.
    """

    admissible: int
    length: int
    """Their total number of tokens."""
    matched: int | None
    """Number of these chunks that contain a term; None if they were not counted."""
    parts: int
    """Number of parts (a document's chunks that were added together) with an admissible chunk that contains a term."""
    parts_skipped: int
    """Number of these parts that were not scored, because none of their chunks could be among the ``k``."""
    runs: int
    """Number of pairs of a term and a part that were read."""
    postings: int
    """Number of pairs of a term and a chunk that were scored."""
    runs_skipped: int
    """Number of pairs of a term and a part that were left out, because nothing in the part is admissible."""
    chunks: int
    """Number of chunks in the index."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextResult:
    """Admissible chunks, highest score first, ties by smaller key.

    Examples
    --------
    >>> from carag import Mask, TextIndex, policy_word
    >>> index = TextIndex()
    >>> index.add([1, 2], [7, 7], [["net", "sales"], ["cost"]])
    >>> index.label([1, 2], [1, 2], [policy_word(1)] * 2)
    >>> result = index.search(["sales", "profit"], 5, Mask())
    >>> result, result.frequencies
    (<TextResult of 1 chunks: 2 admissible>, (1, 0))
    """

    keys: NDArray[np.int64]
    """(n,) keys of the labels that admitted each chunk."""
    chunks: NDArray[np.int64]
    documents: NDArray[np.int64]
    scores: NDArray[np.float64]
    """(n,) above 0."""
    frequencies: tuple[int, ...]
    """For each term asked for, in the order given, the number of admissible chunks that contain it."""
    stats: TextStats

    def __len__(self) -> int:
        """Count the chunks found."""
        return len(self.keys)

    def __repr__(self) -> str:
        return f"<TextResult of {len(self)} chunks: {self.stats.admissible:,} admissible>"


def copied(numbers: CData, count: int) -> NDArray[np.int64]:
    """Copy numbers out of memory that the core will release."""
    return np.frombuffer(ffi.buffer(numbers, 8 * count), np.int64).copy()


def found_result(found: CData, terms: int, *, is_counted: bool) -> TextResult:
    """Copy what the core found; its own memory is released with ``found``."""
    stats = found.stats
    return TextResult(
        keys=copied(found.keys, found.count),
        chunks=copied(found.chunks, found.count),
        documents=copied(found.documents, found.count),
        scores=copied(found.scores, found.count).view(np.float64),
        frequencies=tuple(copied(found.frequencies, terms).tolist()),
        stats=TextStats(
            admissible=stats.admissible,
            length=stats.length,
            matched=stats.matched if is_counted else None,
            parts=stats.parts,
            parts_skipped=stats.parts_skipped,
            runs=stats.runs,
            postings=stats.postings,
            runs_skipped=stats.runs_skipped,
            chunks=stats.chunks,
        ),
    )
