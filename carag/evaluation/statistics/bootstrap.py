"""Draw the weights of a cluster bootstrap: filers with replacement, then questions within each filer drawn.

Questions about one filer share its filings and its wording, and one question is asked in many sessions, so rows are far
from independent: an interval that assumed independence would be several times too narrow. (Davison and Hinkley,
Bootstrap Methods and their Application, 1997, section 3.8: two-stage resampling.)

Every sum adds integers below 2**53 held in float64, so it is exact: neither the order of rows nor the linear algebra
library changes a bit. Draws are the raw stream of PCG64, which numpy promises not to change (NEP 19).
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


REPLICATES: Final = 2_000
"""How many times the questions are drawn again."""
SEED: Final = 20_260_331
"""Seed of the draws: the last day of the paper's window. No other seed was tried."""

_BLOCK: Final = 200
"""Replicates drawn at once, to bound memory. A different size would use the random stream in a different order."""


def bootstrap_weights(
    filers: Sequence[int], *, replicates: int = REPLICATES, seed: int = SEED
) -> NDArray[np.float64]:
    """Count how often each question is drawn in each replicate.

    ``filers`` gives the filer of each question in ascending order, so that the questions of a filer are adjacent.

    Raise InvalidArgument if the filers are empty or not ascending, or `replicates` < 1.
    """
    if not filers or replicates < 1 or list(filers) != sorted(filers):
        raise InvalidArgument(
            f"there are {len(filers)} questions and {replicates} replicates; want at least one of each, with filers "
            "in ascending order"
        )
    sizes = np.array([len(list(same)) for _, same in groupby(filers)])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    stream = np.random.PCG64(seed)
    blocks = [
        _block(stream, sizes, starts, min(_BLOCK, replicates - first))
        for first in range(0, replicates, _BLOCK)
    ]
    return np.concatenate(blocks)


def _block(
    stream: np.random.PCG64, sizes: NDArray[np.int64], starts: NDArray[np.int64], replicates: int
) -> NDArray[np.float64]:
    """Draw a block of replicates: first all their filers, then the questions of each filer drawn."""
    total = int(sizes.sum())
    chosen = _below(stream, np.full(replicates * len(sizes), len(sizes)))
    many = sizes[chosen]
    questions = np.repeat(starts[chosen], many) + _below(stream, np.repeat(many, many))
    replicate = np.repeat(np.repeat(np.arange(replicates), len(sizes)), many)
    counted = np.bincount(replicate * total + questions, minlength=replicates * total)
    return counted.reshape(replicates, total).astype(np.float64)


def _below(stream: np.random.PCG64, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw a whole number below each bound, with a relative bias of at most bound / 2**53."""
    raw = np.asarray(stream.random_raw(len(bounds)), dtype=np.uint64)
    return ((raw >> np.uint64(11)).astype(np.float64) * 2.0**-53 * bounds).astype(np.int64)
