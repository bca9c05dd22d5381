"""What all benchmarks share does what its examples say, and leaves a page without its marks alone."""

from __future__ import annotations

import doctest
import importlib

import pytest

from bench import harness
from carag.errors import InvalidArgument


@pytest.mark.parametrize(
    "module",
    ["harness", "ann.curves", "circulars.gold", "metric.measures", "metric.retrieval", "metric.advice"],
)
def test_the_examples_run(module: str) -> None:
    ran = doctest.testmod(
        importlib.import_module(f"bench.{module}"), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert 0 == ran.failed < ran.attempted


def test_works_take_turns_and_the_least_time_counts() -> None:
    """The first of them changes with each question, so that none always follows the same other."""
    called: list[int] = []
    assert 2 == len(harness.in_turn([lambda: called.append(0), lambda: called.append(1)], times=2, first=3))
    assert [1, 0, 1, 0] == called


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="put the two lines in"):
        harness.replaced("# A page\n", "new", "python -m bench.x", "bench.x")
