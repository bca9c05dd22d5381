"""A plugin for pytest: a mutant is noticed as soon as may be, and by the same examples each time.

Slow tests come last, and what Hypothesis finds it does not make smaller: nobody reads it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import Phase, settings

if TYPE_CHECKING:
    import pytest

SLOW = 0.3
"""Seconds. Quicker ones stay in order, so that what a file sets up for all of them is set up once."""

settings.register_profile(
    "mutants", deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
)


def pytest_configure() -> None:
    """Take the place of the profile of tests/conftest.py, which is read before."""
    settings.load_profile("mutants")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by what mutmut has measured, once it has."""
    measured = Path("mutmut-stats.json")
    if measured.exists():
        seconds = json.loads(measured.read_text())["duration_by_test"]
        items.sort(key=lambda item: max(SLOW, seconds.get(item.nodeid, 0)))
