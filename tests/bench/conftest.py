"""The benchmarks are no part of the package: they are imported from the checkout."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def bench() -> Iterator[Callable[[str], ModuleType]]:
    """``bench("truth")`` imports ``bench.ann.truth``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield lambda name: importlib.import_module(f"bench.ann.{name}")
