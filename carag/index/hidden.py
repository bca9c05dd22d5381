"""Define what a search reports about rows that its policy refuses, for callers who are allowed to know of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HiddenRows:
    """Of the rows nearest to each query under a wider policy, those that the search's own policy refuses.

    Examples
    --------
    >>> from carag.index import Index
    >>> from carag.policy import Mask, policy_word
    >>> index = Index(2)
    >>> keys = index.add([[1, 0], [0, 1], [1, 1]], [policy_word(bits) for bits in (1, 2, 1)])
    >>> result = index.search([0, 1], 1, Mask(required=1), also_hidden=2)
    >>> result.keys.tolist(), result.hidden.keys.tolist(), result.hidden.words.tolist()
    ([[2]], [[1, -1]], [[134217730, 0]])
    """

    keys: NDArray[np.int64]
    """(nq, also_hidden) nearest first; -1 beyond ``counts``."""
    similarities: NDArray[np.float32]
    """(nq, also_hidden) cosine; -inf beyond ``counts``."""
    words: NDArray[np.uint32]
    """(nq, also_hidden) the word of each row when it was found; 0 beyond ``counts``."""
    counts: NDArray[np.int64]
    """(nq,) number of the nearest rows that are refused."""

    def __len__(self) -> int:
        """Count the queries."""
        return len(self.counts)

    def __repr__(self) -> str:
        return f"<HiddenRows of {len(self)} queries: {self.counts.sum()} rows>"

    @classmethod
    def among(
        cls,
        keys: NDArray[np.int64],
        similarities: NDArray[np.float32],
        words: NDArray[np.uint32],
        refused: NDArray[np.uint8],
    ) -> HiddenRows:
        """Keep the rows that are refused; all four arrays are ``(nq, also_hidden)``."""
        order = np.argsort(1 - refused, axis=1, kind="stable")
        counts = refused.sum(axis=1, dtype=np.int64)
        is_one = np.arange(refused.shape[1]) < counts[:, np.newaxis]
        return cls(
            np.where(is_one, np.take_along_axis(keys, order, axis=1), np.int64(-1)),
            np.where(is_one, np.take_along_axis(similarities, order, axis=1), np.float32(-np.inf)),
            np.where(is_one, np.take_along_axis(words, order, axis=1), np.uint32(0)),
            counts,
        )
