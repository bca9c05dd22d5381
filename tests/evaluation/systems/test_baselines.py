"""The baseline graph returns what its search reached, and never raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from carag.evaluation.row import K
from carag.evaluation.systems.baselines import Hnsw

if TYPE_CHECKING:
    from tests.evaluation.conftest import Small


def test_the_callback_never_raises_for_too_few(small: Small) -> None:
    """hnswlib does; if no row or one row is admitted, that is returned."""
    walk = Hnsw(small.truth.vectors, seed=0)
    query = small.truth.vectors[0]
    nothing = np.zeros(len(small.truth), bool)
    assert not walk.nearest_of(query, K, nothing)[0].size
    one = nothing.copy()
    one[5] = True
    assert set(walk.nearest_of(query, K, one)[0].tolist()) <= {5}
