"""The result of a checked search: that of an index search, with what was asked and dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from carag.errors import InvalidArgument

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from carag.backends.protocol import IndexState
    from carag.index import Plan


@dataclass(frozen=True, slots=True)
class CheckedStats:
    """How a search was answered, and which parts of the backend's answer were dropped."""

    plans: tuple[Plan, ...]
    """One per query; never ``AUTO``."""
    admissible: int
    """Number of admissible rows, without the ``lagged`` ones."""
    rows: int
    """Live rows of the backend."""
    state: IndexState | None
    """As of the epoch that was searched; None for an index in this process."""
    lagged: int = 0
    """Rows found that the label store has closed since; they were dropped."""
    refilled: int = 0
    """Requests for more rows, because some were dropped or the engine's order near the last one is uncertain."""
    retried: bool = False
    """Whether a short answer was requested again with an exact plan."""


@dataclass(frozen=True, slots=True, eq=False)
class CheckedResult:
    """The nearest admissible rows of each query, nearest first, ties by smaller key; like :class:`carag.Index`'s."""

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
        """What the wider policy admits, hidden or not; raise InvalidArgument if the search did not look for it."""
        if self.beside is None:
            raise InvalidArgument("this search did not look for hidden rows; set also_hidden to their number")
        return self.beside

    def __len__(self) -> int:
        """Count the queries."""
        return len(self.counts)
