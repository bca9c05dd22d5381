"""Rows with chosen keys, for tests of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from carag.backends import Rows, rows_of
from carag.policy import VERSION_WORD

if TYPE_CHECKING:
    from collections.abc import Iterable


def rows(keys: Iterable[int], words: int | Iterable[int], *, dim: int = 4) -> Rows:
    """Make rows that are always public and about no entity; each key has a vector of its own."""
    listed = list(keys)
    vectors = [np.random.default_rng(key).standard_normal(dim) for key in listed]
    each = np.broadcast_to(words if isinstance(words, int) else list(words), (len(listed),))
    made = rows_of(vectors, np.full(len(listed), VERSION_WORD), range(len(listed)))
    # A backend must refuse duplicate keys and unlabelled words itself.
    return made._replace(keys=np.array(listed, np.int64), words=each.astype(np.uint32))
