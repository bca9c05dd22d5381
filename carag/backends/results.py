"""Define what a checked search found: a search result of the index, which also says what was asked and dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from carag.errors import InvalidArgument

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from carag.backends.protocol import IndexState
    from carag.index import Plan

__all__ = ["CheckedResult", "CheckedStats"]


@dataclass(frozen=True, slots=True)
class CheckedStats:
    """How a search was answered, and what of a backend's answer was not believed."""

    plans: tuple[Plan, ...]
    """Of each query; never ``AUTO``."""
    admissible: int
    """Number of admissible rows, without those that were ``lagged``."""
    rows: int
    """Live rows of the backend."""
    state: IndexState
    """Of the epoch that was searched."""
    lagged: int = 0
    """Rows found that the label store has closed since; they were dropped."""
    refilled: int = 0
    """How often more rows were asked for: rows were dropped, or near the last one the engine's order is in doubt."""
    retried: bool = False
    """Whether a short answer was asked for again with an exact plan."""


@dataclass(frozen=True, slots=True, eq=False)
class CheckedResult:
    """The nearest admissible rows of each query, nearest first, ties by smaller key; as the index's own result."""

    keys: NDArray[np.int64]
    """(nq, k); -1 beyond ``counts``."""
    similarities: NDArray[np.float32]
    """(nq, k) cosine, as :class:`carag.Index` computes it; -inf beyond ``counts``."""
    counts: NDArray[np.int64]
    """(nq,) always ``min(k, admissible)``."""
    stats: CheckedStats
    beside: CheckedResult | None = None

    @property
    def wider(self) -> CheckedResult:
        """What the wider policy admits, refused or not.

        Raises
        ------
        InvalidArgument
            If the search looked for no hidden rows.
        """
        if self.beside is None:
            raise InvalidArgument(
                "this search did not look for hidden rows; search with also_hidden, how many"
            )
        return self.beside

    def __len__(self) -> int:
        """Count the queries."""
        return len(self.counts)
