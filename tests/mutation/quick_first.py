"""A plugin for pytest: slow tests come last, so that a mutant seldom waits for one to be noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

SLOW = 0.3
"""Seconds. Quicker ones stay in order, so that what a file sets up for all of them is set up once."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by what mutmut has measured, once it has."""
    measured = Path("mutmut-stats.json")
    if measured.exists():
        seconds = json.loads(measured.read_text())["duration_by_test"]
        items.sort(key=lambda item: max(SLOW, seconds.get(item.nodeid, 0)))
