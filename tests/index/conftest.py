"""Builders shared by the tests of the index."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from carag.index import Index
from carag.policy import policy_word

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

ROOT = Path(__file__).parents[2]


def _build(n: int = 50, dim: int = 8, seed: int = 0, **parameters: Any) -> Index:
    rng = np.random.default_rng(seed)
    index = Index(dim, **({"M": 8, "ef_construction": 40, "seed": seed} | parameters))
    index.add(rng.standard_normal((n, dim)), policy_word(rng.integers(0, 8, n)))
    return index


@pytest.fixture
def build() -> Callable[..., Index]:
    """``build(n, dim, seed, **parameters)`` makes a random index with 3-bit words."""
    return _build


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """``bench("conformance")`` imports ``bench.ann.conformance``, which is not part of the package."""
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"bench.ann.{name}")
