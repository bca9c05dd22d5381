"""Rows that tests of backends write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from carag.backends import Rows
from carag.policy import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable


def rows(keys: Iterable[int], words: int | Iterable[int], *, dim: int = 4) -> Rows:
    """Rows that are always public and about nobody; each key has a vector of its own."""
    listed = list(keys)
    vectors = np.array([np.random.default_rng(key).standard_normal(dim) for key in listed])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    each = [words] * len(listed) if isinstance(words, int) else list(words)
    return Rows(
        np.array(listed, np.int64),
        vectors.astype(np.float32),
        np.array(each, np.uint32),
        np.zeros(len(listed), np.uint32),
        np.full(len(listed), NEVER, np.uint32),
        np.zeros(len(listed), np.uint32),
    )
