"""A plugin for pytest: a mutant is noticed as soon as may be, and by the same examples each time.

What noticed another mutant of the same function comes first and what is slow last; and what Hypothesis finds it does
not make smaller: nobody reads it.
"""

from __future__ import annotations

import json
import os
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
    measured, noticed = Path("mutmut-stats.json"), _noticed()
    if measured.exists():
        seconds = json.loads(measured.read_text())["duration_by_test"]
        before = set(noticed.read_text().splitlines()) if noticed.exists() else set()
        items.sort(key=lambda item: max(SLOW, seconds.get(item.nodeid, 0)))
        items.sort(key=lambda item: seconds.get(item.nodeid, 0) if item.nodeid in before else float("inf"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down who noticed."""
    if report.failed:
        with _noticed().open("a") as noticed:
            noticed.write(f"{report.nodeid}\n")


def _noticed() -> Path:
    """Name the file of those who noticed a mutant of this one's function."""
    return Path(f"noticed-{os.environ.get('MUTANT_UNDER_TEST', '').partition('__mutmut_')[0]}")
